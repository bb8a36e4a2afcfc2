// SPDX-License-Identifier: LGPL-2.1-or-later
// Call sites that grow, each with its course, its fit, and what survives of it
// by when it was born.

const CARDS = 12;

function growing(process) {
  return process.sites.map((site, row) => ({site, row}))
    .filter(({site}) => site.growth_bytes_per_s && !site.suppressed_by &&
                        GROWING.has(site.class) && site.class !== 'minor')
    .slice(0, CARDS);
}

function siteCards(page, host) {
  const run = page.run;
  const list = growing(run.process);
  fill(host, ...list.map(({site, row}) =>
    siteCard(page, site, row)));
  if (list.length === 0) {
    host.append(element('p', {class: 'note'},
      'No call site was seen to grow. The table below has all of them.'));
  }
}

/* What holds it and others; null: nothing that is known. */
function togetherOf(process, site) {
  return process.held_together.find((each) =>
    each.sites.includes(site.id)) || null;
}

function siteCard(page, site, row) {
  const card = element('article', {class: 'card site',
    'aria-label': `${site.class}: ${clean(site.where, 200)}`});
  const words = [];
  if (site.reason) {
    words.push(site.reason);
  }
  if (site.held && site.held.line) {
    words.push(`held by ${site.held.line}`);
  }
  const together = togetherOf(page.run.process, site);
  if (together) {
    words.push(together.sentence);
  }
  if (site.pattern) {
    words.push(`${site.pattern.name}: ${site.pattern.cause} ${site.pattern.remedy}`);
  }
  card.append(
    element('h3', {}, badge(site.class), ' ',
      element('span', {class: 'where'}, clean(site.where, 300)),
      callersLine(page.run, site, row)),
    sourceOf(page.run, site, row) || '',
    element('p', {class: 'headline'},
      element('b', {'data-figure': 'growth'},
        `${intervalText(site.growth_bytes_per_s, 60)}/min`), ' ',
      element('span', {class: 'note'}, boundsText(site.growth_bytes_per_s)),
      site.growth_bytes_per_unit
        ? element('span', {}, ` · ${intervalText(site.growth_bytes_per_unit, 1)}` +
                              ' a unit of work') : null,
      ` · ${bytesText(site.live_bytes)} live · ${site.space}` +
      (site.device === null ? '' : ` of GPU ${site.device}`)),
    ...words.map((each) => element('p', {class: 'note'}, clean(each))),
    courseOf(page.run, site, row), survivorsOf(site));
  return card;
}

/** "‹ handle ‹ main" */
function callersLine(run, site, row) {
  const names = callersOf(run, site, row);
  return names.length === 0 ? null : element('span', {class: 'callers'},
    names.map((name) => ` ‹ ${clean(name, 80)}`).join(''));
}

/** What stands in the line of a frame, where a pack has it. */
function sourceLine(frame) {
  return frame && frame.source
    ? element('code', {class: 'source'}, clean(frame.source, 400)) : null;
}

/* Of the frame that a call site is named by. */
function sourceOf(run, site, row) {
  const stack = run.stacksOf(row)[0];
  const frames = stack ? stack.frames.map((number) =>
    run.process.frames[number]) : [];
  return sourceLine(frames.find((frame) => frame.source && frame.function &&
    site.where.endsWith(` ${frame.function}`)));
}

/* The fit has the slope of the report and goes through the mean of what it was
 * judged by. */
function fitOf(run, site, live) {
  const first = run.bucketAt(Math.max(run.began, site.first_s));
  const interval = site.growth_bytes_per_s;
  const middle = (run.ends[first] + run.ends[run.last]) / 2;
  const mean = d3.mean(live.slice(first));
  const at = (slope) => [run.ends[first], run.ends[run.last]].map((t) =>
    [t, Math.max(0, mean + slope * (t - middle))]);
  return {
    from: run.ends[first], line: at(interval.estimate),
    low: known(interval.low) ? at(interval.low) : null,
    high: known(interval.high) ? at(interval.high) : null,
  };
}

function courseOf(run, site, row) {
  const live = run.seriesOf(row);
  const plot = element('div', {class: 'plot small'});
  const interval = site.growth_bytes_per_s;
  const label = `Live bytes of ${clean(site.where, 120)}: ` +
      `${bytesText(live[0])} to ${bytesText(site.live_bytes)} in ` +
      `${durationText(run.duration)}; fit ` +
      `${interval ? intervalText(interval, 60) : '?'} a minute.`;
  onWidth(plot, (width) => {
    const height = 150;
    const fit = interval ? fitOf(run, site, live) : null;
    const most = d3.max([...live, ...(fit ? fit.line.map((p) => p[1]) : []),
      1]) * 1.08;
    const x = d3.scaleLinear([0, run.ends[run.last] || 1],
      [MARGIN.left, width - MARGIN.right]);
    const y = d3.scaleLinear([0, most], [height - MARGIN.bottom, 8]).clamp(true);
    const svg = d3.create('svg').attr('viewBox', [0, 0, width, height])
      .attr('width', width).attr('height', height).attr('role', 'img')
      .attr('aria-label', label);
    svg.append('g').attr('class', 'axis')
      .attr('transform', `translate(0,${height - MARGIN.bottom})`)
      .call(timeAxis(x, width));
    svg.append('g').attr('class', 'axis')
      .attr('transform', `translate(${MARGIN.left},0)`)
      .call(d3.axisLeft(y).tickValues(byteTicks(most, 3)).tickFormat(bytesText)
        .tickSizeOuter(0));
    if (fit && fit.low && fit.high) {
      const corners = [fit.low[0], fit.high[1], fit.low[1], fit.high[0]];
      svg.append('path').attr('class', 'band')
        .attr('d', d3.line()(corners.map(([t, v]) => [x(t), y(v)])) + 'Z');
    }
    svg.append('path').attr('class', 'course').attr('stroke', colorOf(site.space))
      .attr('d', d3.line().x((value, i) => x(run.ends[i])).y((value) => y(value))(
        Array.from(live)));
    if (fit) {
      svg.append('path').attr('class', 'fit')
        .attr('d', d3.line()(fit.line.map(([t, v]) => [x(t), y(v)])));
    }
    plot.replaceChildren(svg.node());
  });
  return element('div', {}, plot, figuresOf('The same as a table', () => {
    const step = Math.max(1, Math.ceil(run.ends.length / 30));
    const rows = [];
    for (let i = step - 1; i <= run.last; i += step) {
      rows.push([durationText(run.ends[i]), bytesText(live[i])]);
    }
    return plainTable('Live bytes', ['until', 'live'], rows);
  }));
}

function survivorsOf(site) {
  const born = site.born_alive_by_tenth_bytes;
  const most = d3.max(born);
  if (!(most > 0)) {
    return null;
  }
  const label = 'What is live, by the tenth of the run in which it was born: ' +
      born.map(bytesText).join(', ');
  const bars = element('div', {class: 'survivors', role: 'img',
    'aria-label': label, title: label}, ...born.map((bytes) => {
    const bar = element('i', {});
    bar.style.setProperty('height', `${Math.max(bytes > 0 ? 2 : 0,
      bytes / most * 100)}%`);
    return bar;
  }));
  return element('div', {}, bars, element('p', {class: 'note axis-note'},
    'live, by the tenth of the run in which it was born: ',
    element('b', {}, `${bytesText(born[0])} … ${bytesText(born[9])}`)));
}
