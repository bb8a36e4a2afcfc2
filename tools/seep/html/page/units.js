// SPDX-License-Identifier: LGPL-2.1-or-later
// Numbers for people, rounded as tools/seep/words/units.c rounds them.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

function unitOf(bytes) {
  let value = Math.abs(bytes);
  let unit = 0;
  while (unit + 1 < UNITS.length && value >= 1023.95) {
    value /= 1024;
    unit++;
  }
  return unit;
}

function fixed(bytes, unit, decimals, sign) {
  let scaled = bytes / 1024 ** unit;
  if (Math.abs(scaled) < (decimals === 1 ? 0.05 : 0.5)) {
    scaled = 0; // neither "-0" nor "+0"
    sign = false;
  }
  return (sign && scaled > 0 ? '+' : '') + scaled.toFixed(decimals);
}

function decimalsOf(bytes, unit) {
  return unit === 0 || Math.abs(bytes / 1024 ** unit) >= 99.95 ? 0 : 1;
}

function known(value) {
  return value !== null && value !== undefined && Number.isFinite(value);
}

/** "40.5 MiB" */
function bytesText(bytes) {
  if (!known(bytes)) {
    return '?';
  }
  const unit = unitOf(bytes);
  const number = fixed(bytes, unit, decimalsOf(bytes, unit), false);
  return `${number.replace(/\.0$/, '')} ${UNITS[unit]}`;
}

/** "+40.5 MiB" */
function changeText(bytes) {
  if (!known(bytes)) {
    return '?';
  }
  const unit = unitOf(bytes);
  return `${fixed(bytes, unit, decimalsOf(bytes, unit), true)} ${UNITS[unit]}`;
}

/** "+53.3 ±9.2 MiB", of an interval times @scale; an open bound has no ±. */
function intervalText(interval, scale) {
  if (!interval || !known(interval.estimate)) {
    return '?';
  }
  const estimate = interval.estimate * scale;
  if (!known(interval.low) || !known(interval.high)) {
    return changeText(estimate);
  }
  const half = (interval.high - interval.low) / 2 * scale;
  const larger = Math.max(Math.abs(estimate), half);
  const unit = unitOf(larger);
  const decimals = decimalsOf(larger, unit);
  return `${fixed(estimate, unit, decimals, true)} ` +
      `±${fixed(half, unit, decimals, false)} ${UNITS[unit]}`;
}

/** "44.1 to 62.5 MiB/min", of bytes per second. */
function boundsText(interval) {
  if (!interval || !known(interval.low) || !known(interval.high)) {
    return '';
  }
  const unit = unitOf(Math.max(Math.abs(interval.low),
                               Math.abs(interval.high)) * 60);
  const decimals = decimalsOf(interval.high * 60, unit);
  return `${fixed(interval.low * 60, unit, decimals, false)} to ` +
      `${fixed(interval.high * 60, unit, decimals, false)} ${UNITS[unit]}/min`;
}

/** "7 h 35 min", "45.3 s" */
function durationText(seconds) {
  if (!known(seconds) || seconds < 0 || seconds > 1e12) {
    return '?';
  }
  if (seconds < 0.9995) {
    return `${(seconds * 1000).toFixed(0)} ms`;
  }
  if (seconds < 59.95) {
    return `${seconds.toFixed(1)} s`;
  }
  const two = (number) => String(number).padStart(2, '0');
  const whole = Math.floor(seconds + 0.5);
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) {
    return `${minutes} min ${two(whole % 60)} s`;
  }
  return minutes < 24 * 60
    ? `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`
    : `${Math.floor(minutes / 1440)} d ${two(Math.floor(minutes / 60) % 24)} h`;
}

/** The same for ticks of an axis, which are round: "45 s", "2 min". */
function tickText(seconds) {
  return seconds === 0 ? '0'
    : durationText(seconds).replace(/\.0 s$/, ' s').replace(/ 00 \w+$/, '');
}

/* What a forecast is of, by its name in JSON. */
const FULL = {cgroup: 'cgroup', ram: 'machine', 'address-space': 'address space',
  data: 'data segment'};

/** "cgroup full in" */
function fullText(forecast) {
  return `${forecast.what === 'device' ? `GPU ${forecast.device}`
    : FULL[forecast.what] || 'memory'} full in`;
}

/** "1 h 05 min", "40 min 10 s or more" */
function fullTimeText({seconds, if_suspect: least}) {
  return least ? `${durationText(seconds.low)} or more`
    : durationText(seconds.estimate);
}

/** "1 h 02 min to 1 h 09 min" */
function fullBoundsText({seconds}) {
  return `${durationText(seconds.low)} to ` +
      `${known(seconds.high) ? durationText(seconds.high) : 'never'}`;
}

function countText(count) {
  return known(count)
    ? Math.round(count).toString().replace(/\B(?=(\d{3})+$)/g, ',')
    : '?';
}

/** Growth as the table of the text has it: "?" was not to be told, "-" is
 * none. */
function growthText(site, interval, scale) {
  return GROWING.has(site.class) || site.class === 'insufficient-data'
    ? intervalText(interval, scale) : '-';
}

const GROWING = new Set(['leak', 'suspect', 'warming', 'aging', 'minor',
  'backing']);

function percentText(share) {
  if (!known(share)) {
    return '?';
  }
  const percent = share * 100;
  return percent > 0 && percent < 0.1 ? '< 0.1 %'
    : `${percent.toFixed(percent >= 99.95 || percent === 0 ? 0 : 1)} %`;
}
