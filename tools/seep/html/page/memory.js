// SPDX-License-Identifier: LGPL-2.1-or-later
// Memory over time: spaces stacked, what else is resident, limits, marks; and
// the window of time that the rest of the page is about.

const FAR = 3; // above so many times what is used a limit is not drawn
const MARGIN = {top: 18, right: 14, bottom: 26, left: 66};

/* The parts of the host's memory, from below. */
function hostLayers(run) {
  const timeline = run.process.timeline;
  const layers = Object.keys(timeline.spaces).filter(isHost).map((space) => ({
    key: space, label: space, color: colorOf(space), at: timeline.spaces[space],
  }));
  const moments = timeline.moments;
  const parts = [
    ['allocator', 'kept by the allocator', 'allocator_overhead_bytes'],
    ['unexplained', 'not seen by any hook', 'unexplained_bytes'],
  ];
  for (const [key, label, field] of parts) {
    if (moments.some((moment) => moment[field] > 0)) {
      layers.push({key, label, color: colorOf(key),
        at: onGrid(run, (moment) => moment[field])});
    }
  }
  if (moments.some((moment) => known(moment.held_bytes))) {
    layers.push({key: 'shared', label: 'files and shared', color: colorOf('shared'),
      at: onGrid(run, (moment) => known(moment.held_bytes) &&
          known(moment.private_bytes)
        ? Math.max(0, moment.held_bytes - moment.private_bytes -
                      moment.own_bytes) : null)});
    layers.push({key: 'own', label: 'seep itself', color: colorOf('own'),
      at: onGrid(run, (moment) => moment.own_bytes)});
  }
  return layers.filter((layer) => d3.max(layer.at) > 0);
}

function deviceLayers(run) {
  const timeline = run.process.timeline;
  return Object.keys(timeline.spaces).filter((space) => ON_DEVICE.has(space))
    .map((space) => ({key: space, label: space, color: colorOf(space),
      at: timeline.spaces[space]}));
}

/* What samples told, at the end of each bucket, linear between them; 0 before
 * the first. */
function onGrid(run, figureOf) {
  const told = run.process.timeline.moments
    .map((moment) => [moment.t_s, figureOf(moment)])
    .filter(([, value]) => known(value));
  const right = d3.bisector((pair) => pair[0]).right;
  return run.ends.map((end) => {
    const i = right(told, end);
    if (told.length === 0) {
      return 0;
    }
    if (i === 0) {
      return told[0][1];
    }
    if (i === told.length) {
      return told[i - 1][1];
    }
    const [before, low] = told[i - 1];
    const [after, high] = told[i];
    return low + (high - low) * (end - before) / (after - before);
  });
}

/* What is full first of a kind of memory, if it is told when; each GPU has its
 * own, and a chart of several none. */
function forecastOf(run, kind) {
  const {verdict, devices} = run.process;
  const forecast = kind.rss ? verdict.forecast
    : devices.length === 1 ? devices[0].forecast : null;
  return forecast && forecast.answer === 'time' && !forecast.if_suspect &&
      (forecast.what === 'device') !== kind.rss && forecast.seconds.estimate > 0
    ? forecast : null;
}

function limitsOf(run) {
  const memory = run.process.memory;
  const limits = [];
  if (memory.cgroup_limit_bytes) {
    limits.push(['limit of the cgroup', memory.cgroup_limit_bytes]);
  }
  if (memory.machine_bytes) {
    limits.push(['memory of the machine', memory.machine_bytes]);
  }
  return limits;
}

function memoryChart(page, host) {
  const run = page.run;
  const kinds = [{name: 'host', layers: hostLayers(run), rss: true}];
  const gpu = deviceLayers(run);
  if (gpu.length > 0) {
    kinds.push({name: 'GPU', layers: gpu, rss: false});
  }
  let kind = kinds[0];
  const hidden = new Set();
  const plot = element('div', {class: 'plot'});
  const legend = element('div', {class: 'legend', role: 'group',
    'aria-label': 'Parts of the chart'});
  const alternative = element('div');
  const choice = kinds.length > 1
    ? element('div', {class: 'segments', role: 'group',
      'aria-label': 'Whose memory'}, ...kinds.map((each) =>
      element('button', {type: 'button', 'aria-pressed': each === kind,
        onclick: (event) => {
          kind = each;
          press(event.target);
          renew();
        }}, each.name))) : null;

  function renew() {
    legend.replaceChildren(...legendOf(run, kind, hidden, renew));
    alternative.replaceChildren(figuresOf('The same as a table',
      () => memoryTable(run, kind)));
    draw(plot.clientWidth);
  }

  function draw(width) {
    if (width > 0) {
      drawMemory(page, plot, width, kind, hidden);
    }
  }

  fill(host, choice, plot, legend, windowFields(page), alternative);
  renew();
  onWidth(plot, draw, plot.clientWidth);
  page.onWindow(() => draw(plot.clientWidth));
}

/** Of a group of buttons of which one holds, this one now does. */
function press(button) {
  for (const each of button.parentNode.children) {
    each.setAttribute('aria-pressed', each === button);
  }
}

function legendOf(run, kind, hidden, redraw) {
  const keys = kind.layers.slice().reverse().map((layer) =>
    element('button', {type: 'button', 'aria-pressed': !hidden.has(layer.key),
      title: 'Show or hide',
      onclick: () => {
        if (!hidden.delete(layer.key)) {
          hidden.add(layer.key);
        }
        redraw();
      }},
    swatch(layer.color), `${layer.label} `,
    element('b', {}, bytesText(layer.at[run.last]))));
  const rss = run.process.memory.rss;
  if (kind.rss && rss) {
    keys.unshift(element('span', {class: 'key'}, swatch('var(--rss)', true),
      'RSS ', element('b', {}, bytesText(rss.last_bytes))));
  }
  const forecast = forecastOf(run, kind);
  if (forecast) {
    keys.push(element('span', {class: 'key', 'data-key': 'forecast'},
      swatch('var(--bad)', true), `${fullText(forecast)} `,
      element('b', {}, fullTimeText(forecast)),
      ` (${fullBoundsText(forecast)})`));
  }
  for (const [name, bytes] of kind.rss ? limitsOf(run) : []) {
    const far = rss && bytes >= FAR * Math.max(rss.first_bytes, rss.last_bytes);
    keys.push(element('span', {class: 'key'}, swatch('var(--limit)', true),
      `${name} `, element('b', {}, bytesText(bytes)),
      far ? ' (far above)' : null));
  }
  return keys;
}

function swatch(color, line) {
  const made = element('i', {class: line ? 'swatch line' : 'swatch',
    'aria-hidden': 'true'});
  made.style.setProperty('background', color);
  return made;
}

function memoryTable(run, kind) {
  const step = Math.max(1, Math.ceil(run.ends.length / 40));
  const rss = onGrid(run, rssOf);
  const rows = [];
  for (let i = step - 1; i <= run.last; i += step) {
    rows.push([durationText(run.ends[i]),
      ...(kind.rss ? [bytesText(rss[i])] : []),
      ...kind.layers.map((layer) => bytesText(layer.at[i]))]);
  }
  return plainTable('Memory by the end of each part of the run',
    ['until', ...(kind.rss ? ['resident and in swap'] : []),
      ...kind.layers.map((layer) => layer.label)], rows);
}

function rssOf(moment) {
  return moment.held_bytes;
}

/* Stacked by hand where d3.stack would want objects. */
function stacked(run, layers) {
  const sum = new Float64Array(run.last + 1);
  return layers.map((layer) => {
    const low = Float64Array.from(sum);
    for (let i = 0; i <= run.last; i++) {
      sum[i] += layer.at[i] || 0;
    }
    return {layer, low, high: Float64Array.from(sum)};
  });
}

/* From the start of the run, where nothing was live, or as in the first
 * bucket: edges are one more than buckets. */
function areaOf(run, x, y) {
  return d3.area().curve(d3.curveMonotoneX)
    .x((i) => x(i < 0 ? 0 : run.ends[i]))
    .y0(([, i]) => i).y1(([, i]) => i);
}

function timeAxis(x, width) {
  return d3.axisBottom(x).ticks(Math.max(2, Math.floor(width / 110)))
    .tickFormat(tickText).tickSizeOuter(0);
}

/* Ticks at round numbers of the unit of the largest. */
function byteTicks(most, count) {
  const unit = 1024 ** unitOf(most);
  return d3.ticks(0, most / unit, count).map((tick) => tick * unit);
}

function byteAxis(y, most) {
  return d3.axisLeft(y).tickValues(byteTicks(most, 5)).tickFormat(bytesText)
    .tickSizeOuter(0);
}

function drawMemory(page, plot, width, kind, hidden) {
  const run = page.run;
  const height = width < 600 ? 240 : 320;
  const layers = stacked(run, kind.layers.filter((layer) =>
    !hidden.has(layer.key)));
  const rss = kind.rss ? run.process.timeline.moments
    .filter((moment) => known(rssOf(moment))) : [];
  const top = d3.max([...layers.map((each) => d3.max(each.high)),
    ...rss.map(rssOf), 1]);
  const limits = (kind.rss ? limitsOf(run) : [])
    .filter(([, bytes]) => bytes < FAR * top);
  const forecast = forecastOf(run, kind);
  const right = width - MARGIN.right - (forecast ? aheadOf(width) : 0);
  const x = d3.scaleLinear([0, run.ends[run.last] || 1], [MARGIN.left, right]);
  const ahead = forecast ? waysAhead(forecast, x.invert(width - MARGIN.right) -
    x.invert(right), rss.length > 0 ? rssOf(rss[rss.length - 1])
    : d3.max(layers, (each) => each.high[run.last])) : null;
  const most = d3.max([top, ...limits.map(([, bytes]) => bytes),
    ...(ahead ? [ahead.line[1][1]] : [])]) * 1.04;
  const y = d3.scaleLinear([0, most], [height - MARGIN.bottom, MARGIN.top]);
  const svg = d3.create('svg').attr('viewBox', [0, 0, width, height])
    .attr('width', width).attr('height', height)
    .attr('role', 'img').attr('aria-label', memoryLabel(run, kind));

  svg.append('g').attr('class', 'axis')
    .attr('transform', `translate(0,${height - MARGIN.bottom})`)
    .call(timeAxis(x, width));
  svg.append('g').attr('class', 'axis grid')
    .attr('transform', `translate(${MARGIN.left},0)`)
    .call(byteAxis(y, most))
    .call((g) => g.selectAll('.tick line').clone()
      .attr('class', 'gridline').attr('x2', width - MARGIN.left - MARGIN.right));
  for (const {layer, low, high} of layers) {
    svg.append('path').attr('fill', layer.color).attr('class', 'layer')
      .attr('data-layer', layer.key)
      .attr('d', d3.area().x((value, i) => x(i === 0 ? 0 : run.ends[i - 1]))
        .y0((value, i) => y(low[Math.max(0, i - 1)]))
        .y1((value, i) => y(high[Math.max(0, i - 1)]))
        .curve(d3.curveMonotoneX)(Array(run.last + 2)));
  }
  if (rss.length > 1) {
    svg.append('path').attr('class', 'rss')
      .attr('d', d3.line().x((moment) => x(moment.t_s))
        .y((moment) => y(rssOf(moment)))(rss));
  }
  for (const [name, bytes] of limits) {
    svg.append('line').attr('class', 'limit').attr('x1', MARGIN.left)
      .attr('x2', width - MARGIN.right).attr('y1', y(bytes)).attr('y2', y(bytes));
    svg.append('text').attr('class', 'limit-name').attr('x', width - MARGIN.right)
      .attr('y', y(bytes) - 4).text(name);
  }
  if (ahead) {
    drawForecast(svg, run, x, y, ahead, forecast, width);
  }
  drawMarks(svg, run, x, height, right);
  drawBrush(page, svg, x, y, right, height, layers, rss);
  plot.replaceChildren(svg.node());
}

/* Room for what is to come, in pixels. */
function aheadOf(width) {
  return Math.max(40, Math.min(190, width * 0.14));
}

/* From @now bytes on, for @room seconds or until it is full: what goes on as the
 * forecast says, and the soonest and the latest that it may. */
function waysAhead(forecast, room, now) {
  const left = forecast.limit_bytes - forecast.used_bytes;
  const after = (seconds, t) => now + (known(seconds) ? left * t / seconds : 0);
  const {estimate, low, high} = forecast.seconds;
  const until = Math.min(room, estimate);
  return {
    line: [[0, now], [until, after(estimate, until)]],
    band: [[0, now], [until, after(low, until)], [until, after(high, until)]],
    isFull: estimate <= room,
  };
}

function drawForecast(svg, run, x, y, ahead, forecast, width) {
  const end = run.ends[run.last];
  const place = ([t, bytes]) => [x(end + t), Math.max(y(bytes), MARGIN.top)];
  const [endX, endY] = place(ahead.line[1]);
  svg.append('path').attr('class', 'band')
    .attr('d', `${d3.line()(ahead.band.map(place))}Z`);
  svg.append('path').attr('class', 'forecast')
    .attr('d', d3.line()(ahead.line.map(place)));
  if (ahead.isFull) {
    svg.append('circle').attr('class', 'full').attr('r', 4).attr('cx', endX)
      .attr('cy', endY);
  }
  if (width >= 900) {
    [fullText(forecast), fullTimeText(forecast)].forEach((text, i) =>
      svg.append('text').attr('class', 'forecast-text')
        .attr('x', width - MARGIN.right).attr('y', endY + 20 + 15 * i).text(text));
  }
}

function memoryLabel(run, kind) {
  const memory = run.process.memory;
  const parts = kind.layers.map((layer) =>
    `${layer.label} ${bytesText(layer.at[0])} to ` +
    `${bytesText(layer.at[run.last])}`).join(', ');
  const rss = kind.rss && memory.rss
    ? `RSS went from ${bytesText(memory.rss.first_bytes)} to ` +
      `${bytesText(memory.rss.last_bytes)}. ` : '';
  const forecast = forecastOf(run, kind);
  return `Memory of the ${kind.name} over ${durationText(run.duration)}. ` +
      `${rss}${parts}.` + (forecast ? ` ${fullText(forecast)} ` +
        `${fullTimeText(forecast)}.` : '');
}

/** When work began, and what the program marked. */
function drawMarks(svg, run, x, height, right) {
  const lines = run.process.marks.map((mark) => [mark.t_s, mark.name]);
  if (run.process.process.work_began && run.began > 0) {
    lines.unshift([run.process.process.work_began.at_s, 'work begins']);
  }
  let free = -Infinity;
  for (const [at, name] of lines.slice(0, 200)) {
    const shown = clean(name, 24);
    svg.append('line').attr('class', 'mark').attr('x1', x(at)).attr('x2', x(at))
      .attr('y1', MARGIN.top - 4).attr('y2', height - MARGIN.bottom);
    const room = 8 + 6.5 * shown.length;
    const turned = x(at) + room > right; // it would be cut
    if (turned ? x(at) - room > free : x(at) > free) {
      svg.append('text').attr('class', 'mark-name')
        .attr('x', x(at) + (turned ? -3 : 3))
        .attr('text-anchor', turned ? 'end' : 'start')
        .attr('y', MARGIN.top - 6).text(shown);
      free = x(at) + (turned ? 0 : room);
    }
  }
}

function drawBrush(page, svg, x, y, right, height, layers, rss) {
  const run = page.run;
  let moved = false; // by the page: then nobody chose
  const brush = d3.brushX()
    .extent([[MARGIN.left, MARGIN.top], [right, height - MARGIN.bottom]])
    .on('end', () => {
      if (moved) {
        return;
      }
      const at = d3.event.selection;
      page.setWindow(at ? [x.invert(at[0]), x.invert(at[1])] : null);
    });
  const group = svg.append('g').attr('class', 'brush').call(brush);
  if (page.window) {
    moved = true;
    group.call(brush.move, page.window.map((t) => x(t)));
    moved = false;
  }
  const cross = svg.append('line').attr('class', 'cross')
    .attr('y1', MARGIN.top).attr('y2', height - MARGIN.bottom)
    .attr('visibility', 'hidden');
  group.on('mousemove', () => {
    const at = d3.mouse(svg.node())[0];
    const i = run.bucketAt(x.invert(at));
    const lines = layers.slice().reverse().map(({layer}) =>
      `${layer.label}: ${bytesText(layer.at[i])}`);
    const near = rss.length > 0 ? rss[Math.min(rss.length - 1,
      d3.bisector((moment) => moment.t_s).left(rss, run.ends[i]))] : null;
    cross.attr('visibility', null).attr('x1', x(run.ends[i]))
      .attr('x2', x(run.ends[i]));
    tip.show(d3.event, element('b', {}, durationText(run.ends[i])),
      ...(near ? [`RSS: ${bytesText(rssOf(near))}`] : []), ...lines);
  }).on('mouseleave', () => {
    cross.attr('visibility', 'hidden');
    tip.hide();
  });
}

/* The window for who has no mouse, and marks to choose it by. */
function windowFields(page) {
  const run = page.run;
  const most = run.ends[run.last];
  const from = element('input', {type: 'number', min: 0, max: most, step: 'any',
    id: 'window-from', 'aria-label': 'Window from, in seconds'});
  const to = element('input', {type: 'number', min: 0, max: most, step: 'any',
    id: 'window-to', 'aria-label': 'Window to, in seconds'});
  const set = () => {
    const low = from.value === '' ? 0 : Number(from.value);
    const high = to.value === '' ? most : Number(to.value);
    if (high > low) {
      page.setWindow([Math.max(0, low), Math.min(most, high)]);
    }
  };
  from.addEventListener('change', set);
  to.addEventListener('change', set);
  page.onWindow(() => {
    from.value = page.window ? page.window[0].toFixed(1) : '';
    to.value = page.window ? page.window[1].toFixed(1) : '';
  });
  const marks = element('select', {'aria-label': 'Window between marks',
    onchange: (event) => {
      const [low, high] = event.target.value.split(' ').map(Number);
      page.setWindow(event.target.value === '' ? null : [low, high]);
    }}, element('option', {value: ''}, 'phases …'),
  ...phasesOf(run).map((phase) => element('option',
    {value: `${phase.from} ${phase.to}`}, clean(phase.name, 60))));
  return element('div', {class: 'window'},
    element('span', {}, 'Window '), from, ' to ', to, ' s ', marks,
    element('button', {type: 'button', id: 'window-whole',
      onclick: () => page.setWindow(null)}, 'whole run'),
    element('span', {class: 'note'},
      'Drag on the chart: flame graphs and the table follow.'));
}

/** From one mark to the next, the first hundred. */
function phasesOf(run) {
  const most = run.ends[run.last];
  const marks = run.process.marks.slice(0, 100);
  const phases = marks.map((mark, i) => ({
    name: `${mark.name} (${durationText(mark.t_s)})`,
    from: mark.t_s,
    to: i + 1 < marks.length ? marks[i + 1].t_s : most,
  })).filter((phase) => phase.to > phase.from);
  if (run.began > 0) {
    phases.unshift({name: 'start-up', from: 0, to: run.began},
      {name: 'since the work began', from: run.began, to: most});
  }
  return phases;
}
