// SPDX-License-Identifier: LGPL-2.1-or-later
// The answer on top, and below everything what the report rests on. Sentences
// are those of the JSON document; here are figures only.

function figure(name, value, note, key) {
  return element('div', {class: 'figure'},
    element('dt', {}, name),
    element('dd', {'data-figure': key}, value),
    note ? element('dd', {class: 'note'}, note) : null);
}

function forecastFigure(forecast) {
  if (!forecast || forecast.answer === 'unknown') {
    return null;
  }
  if (forecast.answer === 'never') {
    return figure('memory full', 'not at this rate', null, 'forecast');
  }
  return figure(fullText(forecast), fullTimeText(forecast),
    `${fullBoundsText(forecast)}; ${bytesText(forecast.used_bytes)} of ${bytesText(forecast.limit_bytes)} ` +
    'used', 'forecast');
}

function verdictPart(page, host) {
  const {process, verdict, memory, words} = page.run.process;
  const facts = [];
  if (verdict.growth_bytes_per_s) {
    facts.push(figure('grows by',
      `${intervalText(verdict.growth_bytes_per_s, 60)}/min`,
      boundsText(verdict.growth_bytes_per_s), 'growth'));
  }
  if (verdict.growth_bytes_per_unit) {
    facts.push(figure('a unit of work',
      intervalText(verdict.growth_bytes_per_unit, 1),
      `${countText(process.units)} units`, 'growth-per-unit'));
  }
  facts.push(forecastFigure(verdict.forecast));
  if (memory.rss) {
    facts.push(figure('RSS', bytesText(memory.rss.last_bytes),
      `from ${bytesText(memory.rss.first_bytes)}`, 'rss'));
  }
  if (memory.tracked) {
    facts.push(figure('live in blocks', bytesText(memory.tracked.last_bytes),
      `from ${bytesText(memory.tracked.first_bytes)}`, 'tracked'));
  }
  if (known(verdict.hidden_bytes_per_s) && !verdict.growth_bytes_per_s) {
    facts.push(figure('could hide',
      `${bytesText(verdict.hidden_bytes_per_s * 60)}/min`,
      'the most that can grow unseen', 'hidden'));
  }
  facts.push(figure('recorded', durationText(process.duration_s), words.state,
    'duration'));
  const [spent, share] = words.cost.split(', ');
  facts.push(figure('cost of seep', share || spent,
    share ? `${spent}, ${words.mode}` : words.mode, 'cost'));
  host.className = `verdict ${/^[a-z-]+$/.test(verdict.class)
    ? verdict.class : ''}`;
  fill(host,
    element('h1', {}, badge(verdict.class), ' ',
      element('span', {class: 'command'}, clean(words.command || process.exe,
        300))),
    element('p', {class: 'sentence', id: 'sentence'},
      clean(verdict.sentence || '')),
    words.forecast ? element('p', {id: 'forecast-sentence'},
      clean(words.forecast)) : null,
    element('dl', {class: 'figures-row'}, ...facts.filter(Boolean)),
    listOf('reasons', 'Why', verdict.reasons),
    listOf('advice', 'Next', verdict.advice),
    labelsOf(process));
}

function listOf(id, title, texts) {
  return texts.length === 0 ? null : element('div', {class: 'list'},
    element('h2', {}, title),
    element('ul', {id}, ...texts.map((text) =>
      element('li', {}, ...inWords(clean(text))))));
}

/* An option is not broken after its dashes. */
function inWords(text) {
  return text.split(/(\s--\S+)/).map((part) => /^\s--/.test(part)
    ? element('span', {class: 'option'}, part) : part);
}

function labelsOf(process) {
  const labels = Object.entries(process.labels || {});
  return labels.length === 0 ? null : element('p', {class: 'chips', id: 'labels'},
    ...labels.map(([key, value]) => element('span', {class: 'chip'},
      `${clean(key, 60)}=${clean(value, 100)}`)));
}

const BALANCE = [
  ['rss', 'RSS', ''], ['tracked', '= tracked', 'blocks that seep knows'],
  ['allocator_overhead', '+ allocator', 'what it keeps beyond them'],
  ['unexplained', '+ unexplained', 'not seen by any hook'],
  ['shared', '+ shared', 'files and shared memory'],
  ['own', '+ seep', 'its recording, mapped'],
  ['swap', 'in swap', ''], ['cgroup', 'cgroup', 'of all its processes'],
];

function extentRow(name, extent, note) {
  return [name, bytesText(extent.first_bytes), bytesText(extent.last_bytes),
    intervalText({
      estimate: extent.slope_bytes_per_s,
      low: extent.slope_bytes_per_s - extent.slope_error_bytes_per_s,
      high: extent.slope_bytes_per_s + extent.slope_error_bytes_per_s,
    }, 60), note];
}

function balanceTable(memory) {
  const rows = BALANCE.filter(([key]) => memory[key])
    .map(([key, name, note]) => extentRow(name, memory[key], note));
  for (const [space, figures] of Object.entries(memory.spaces)) {
    rows.push([`  ${space}`, bytesText(figures.first_bytes),
      bytesText(figures.last_bytes),
      changeText(figures.slope_bytes_per_s * 60), 'live blocks']);
  }
  return plainTable('Where the memory is',
    ['memory', 'first', 'last', 'growth/min', ''], rows);
}

function deviceTables(devices) {
  return devices.map((device) => {
    const notes = {
      used: `of ${bytesText(device.total_bytes)}, ` +
        `${bytesText(device.free_bytes)} free, ` +
        `${bytesText(device.low_free_bytes)} at the lowest`,
      '= tracked': `at the peak ${bytesText(device.peak_bytes)}, after ` +
        durationText(device.peak_s),
    };
    const {forecast} = device;
    return element('div', {}, plainTable(`GPU ${device.ordinal}`,
      ['memory', 'first', 'last', 'growth/min', ''],
      [['used', device.used], ['= tracked', device.tracked],
        ['+ unexplained', device.unexplained]]
        .filter(([, extent]) => extent)
        .map(([name, extent]) => extentRow(name, extent, notes[name] || ''))),
    forecast && forecast.answer === 'time'
      ? element('p', {class: 'note'}, `${fullText(forecast)} ` +
        `${fullTimeText(forecast)} (${fullBoundsText(forecast)})`) : null);
  });
}

function aboutPart(page, host) {
  const {process, memory, marks, counters, words, devices, nameless, site_total:
    total} = page.run.process;
  const facts = [
    ['command', words.command], ['pid', process.pid], ['host', process.host],
    ['started', process.started], ['state', words.state],
    ['recorded', durationText(process.duration_s)], ['sampling', words.mode],
    ['cost', words.cost], ['events lost', countText(words.lost_events)],
    ['units of work', process.units], ['allocator', process.allocator],
    ['Python', process.python ? process.python.version : null],
    ['call sites', total], ['seep', process.seep_version],
    ['recording', process.recording],
    ...process.unread.map((each) => ['unread', `${each.file}: ${each.reason}`]),
  ].filter(([, value]) => known(value) || typeof value === 'string');
  const losses = counters.filter((each) => each.kind === 'loss');
  const rest = counters.filter((each) => each.kind !== 'loss');
  const rows = (list) => list.map((each) => [each.words,
    countText(each.value)]);
  fill(host, ...[
    element('div', {class: 'columns'},
      element('div', {class: 'scroll', tabindex: 0}, balanceTable(memory),
        ...deviceTables(devices)),
      element('dl', {class: 'facts'}, ...facts.flatMap(([name, value]) => [
        element('dt', {}, name), element('dd', {}, clean(value, 600))]))),
    element('div', {id: 'losses'}, losses.length === 0
      ? element('p', {class: 'good'}, 'Nothing was lost.')
      : plainTable('Lost, or less exact than it looks', ['what', 'how often'],
        rows(losses))),
    rest.length > 0 ? figuresOf('What else was counted', () =>
      plainTable('Counted', ['what', 'how often'], rows(rest))) : null,
    marks.length > 0 ? figuresOf(`${marks.length} marks`, () => plainTable(
      'Marks', ['time', 'name', 'units by then'], marks.map((mark) => [
        durationText(mark.t_s), clean(mark.name, 200),
        countText(mark.units)]))) : null,
    (nameless || []).length > 0 ? plainTable('Files that gave no names',
      ['file', 'why'], nameless.map((file) => [clean(file.path, 300),
        clean(file.reason, 300)])) : null,
  ].filter(Boolean));
}

/** Families of processes, which have sentences of their own. */
function familiesPart(report, host) {
  fill(host, ...report.families
    .filter((family) => family.sentence && family.processes > 1)
    .map((family) => element('p', {class: 'family'}, badge(family.class), ' ',
      clean(family.sentence))));
  host.hidden = host.children.length === 0;
}
