// SPDX-License-Identifier: LGPL-2.1-or-later
// Flame graphs and icicles of stacks, of a measure and a window of time.
//
// Invariant: the width of a frame is the sum of the stacks that go through it,
// and what is too narrow to be drawn still counts in its callers.

const ROW = 20;
const NARROW = 0.7; // pixels; below it a frame is not drawn

const MEASURES = {
  growth: {name: 'growth', words: 'live at the end of the window and not at ' +
    'its beginning'},
  end: {name: 'live at the end', words: 'live at the end of the window'},
  peak: {name: 'live at the peak', words: 'live when the most was'},
  allocated: {name: 'allocated', words: 'allocated in the window, freed or not'},
};

const KINDS = {merged: 'Python and native', python: 'Python', native: 'native'};

/** The buckets of the page's window: [first, last]. Growth over the whole run
 * counts from where the report's does: when the work began. */
function bucketsOf(run, range, measure) {
  if (range) {
    return [range[0] <= 0 ? 0 : run.bucketAt(range[0]) + 1,
      Math.max(run.bucketAt(range[0]), run.bucketAt(range[1]))];
  }
  return [measure === 'growth' && run.began > 0
    ? Math.min(run.bucketAt(run.began) + 1, run.last) : 0, run.last];
}

/* Over the whole run what grows is what the report says of a call site: what
 * was loaded once is no growth, though it was not there at the start. */
function growingRows(run) {
  const rows = run.process.sites.map((site, row) => row)
    .filter((row) => GROWING.has(run.process.sites[row].class) &&
                     !run.process.sites[row].suppressed_by);
  return rows.length > 0 ? new Set(rows) : null;
}

/** A function of a stack to its bytes; @rows: of these alone. */
function measureOf(run, measure, range, rows) {
  const [first, last] = bucketsOf(run, range, measure);
  if (measure === 'allocated') {
    return (stack) => allocatedIn(run, stack, Math.min(first, last), last);
  }
  if (measure === 'end') {
    return (stack) => liveAt(run, stack, last);
  }
  if (measure === 'peak') {
    const peaks = {};
    return (stack) => {
      const here = isHost(stack.space) ? 'host' : stack.space;
      if (!(here in peaks)) {
        peaks[here] = peakIn(run, first, last,
          here === 'host' ? isHost : (space) => space === here);
      }
      return liveAt(run, stack, peaks[here]);
    };
  }
  return (stack) => rows && !rows.has(stack.row) ? 0
    : Math.max(0, liveAt(run, stack, last) - liveAt(run, stack, first - 1));
}

/* What frames are called, and whether they are wanted, by their number. */
function keysOf(run, kind, lines) {
  return run.process.frames.map((frame) => {
    if (kind !== 'merged' && frame.kind !== kind) {
      return null;
    }
    return lines || !frame.function ? frameLabel(frame)
      : `${frame.function || frameLabel(frame)}\n` +
        baseName(frame.file || frame.module || '');
  });
}

function newNode(frame, key) {
  return {frame, key, self: 0, before: 0, now: 0, children: new Map()};
}

/** Put the stacks of @run into the tree at @root, as @side of its figures. */
function growTree(root, run, options, side) {
  const bytesOf = measureOf(run, options.measure, options.window, options.rows);
  const keys = keysOf(run, options.kind, options.lines);
  for (const stack of run.stacks) {
    const bytes = options.space === '' || options.space === stack.space
      ? bytesOf(stack) : 0;
    if (!(bytes > 0)) {
      continue;
    }
    let node = root;
    root[side] += bytes;
    const count = stack.frames.length;
    for (let i = 0; i < count; i++) {
      const number = stack.frames[options.inverted ? i : count - 1 - i];
      const key = keys[number];
      if (key === null) {
        continue;
      }
      if (key === node.key && !run.process.frames[number].function) {
        continue; // code without names calls itself: one frame says as much
      }
      let child = node.children.get(key);
      if (child === undefined) {
        child = newNode(run.process.frames[number], key);
        node.children.set(key, child);
      }
      child[side] += bytes;
      node = child;
    }
    node[`self_${side}`] = (node[`self_${side}`] || 0) + bytes;
  }
}

/* A tree of which each node has what is its own: of two runs, the more. */
function finishTree(node) {
  node.self = Math.max(node.self_now || 0, node.self_before || 0);
  node.list = Array.from(node.children.values());
  node.list.forEach(finishTree);
  return node;
}

function flameTree(options) {
  const root = newNode(null, 'all');
  growTree(root, options.run, options, 'now');
  if (options.before) {
    growTree(root, options.before, options, 'before');
  }
  const tree = d3.hierarchy(finishTree(root), (node) => node.list)
    .sum((node) => node.self)
    .sort((a, b) => b.value - a.value || (a.data.key < b.data.key ? -1 : 1));
  return d3.partition()(tree);
}

function hashOf(text) {
  let hash = 0;
  for (let i = 0; i < text.length && i < 300; i++) {
    hash = (hash * 31 + text.charCodeAt(i)) | 0;
  }
  return Math.abs(hash);
}

/* Python's frames are blue, native ones of one library have one warm tone. */
function flameColor(node, options) {
  const {frame} = node.data;
  if (options.before) {
    const most = Math.max(node.data.now, node.data.before) || 1;
    const change = (node.data.now - node.data.before) / most;
    const mix = Math.round(Math.abs(change) * 75);
    return `color-mix(in srgb, var(${change < 0 ? '--less' : '--more'}) ` +
        `${mix}%, var(--same))`;
  }
  if (frame === null) {
    return 'var(--flame-root)';
  }
  const hash = hashOf(frame.module || frame.file || '');
  return frame.kind === 'python'
    ? `hsl(${205 + hash % 24}, var(--flame-saturation), var(--flame-python))`
    : `hsl(${18 + hash % 34}, var(--flame-saturation), var(--flame-native))`;
}

function placeOf(frame) {
  if (frame.file) {
    return `${frame.file}${frame.line ? `:${frame.line}` : ''}`;
  }
  return frame.module ? `${frame.module}${frame.offset ? ` +${frame.offset}` : ''}`
    : '';
}

function nodeLines(node, root, options) {
  const {frame} = node.data;
  const share = percentText(node.value / (root.value || 1));
  const lines = [element('b', {}, frame === null ? 'all stacks'
    : clean(frame.function || frameLabel(frame), 400))];
  if (frame !== null) {
    lines.push(clean(frame.function || !frame.module ? placeOf(frame)
      : `${frame.module}, which has no names for it`, 300));
    if (frame.inlined) {
      lines.push('inlined');
    }
  }
  if (options.before) {
    lines.push(`before ${bytesText(node.data.before)}, now ` +
      `${bytesText(node.data.now)}: ` +
      `${changeText(node.data.now - node.data.before)}`);
  } else {
    lines.push(`${bytesText(node.value)}, ${share}` +
      (node.data.self > 0 && node.children
        ? `; ${bytesText(node.data.self)} of it here` : ''));
  }
  return lines;
}

class Flame {
  constructor(page, host) {
    this.page = page;
    this.options = {measure: 'growth', view: 'icicle', kind: 'merged',
      inverted: false, space: '', search: '', compare: page.before !== null};
    this.plot = element('div', {class: 'flame', role: 'tree', tabindex: 0,
      'aria-label': 'Flame graph; arrows go to callers and callees, Enter ' +
        'zooms, Escape resets'});
    this.words = element('p', {class: 'note', id: 'flame-words',
      'aria-live': 'polite'});
    this.detail = element('p', {class: 'note detail'});
    this.path = element('div', {class: 'crumbs'});
    this.functions = element('div');
    this.reset = element('button', {type: 'button', id: 'flame-reset',
      onclick: () => this.zoom(this.root)}, 'reset zoom');
    fill(host, this.toolbar(), this.words, this.path, this.plot,
      this.detail, this.functions);
    this.plot.addEventListener('keydown', (event) => this.onKey(event));
    this.plot.addEventListener('mouseleave', () => tip.hide());
    page.onWindow(() => this.rebuild());
    this.rebuild();
    onWidth(this.plot, () => this.draw(), this.plot.clientWidth);
  }

  segments(name, values, option) {
    return element('div', {class: 'segments', role: 'group', 'aria-label': name},
      ...Object.entries(values).map(([key, text]) =>
        element('button', {type: 'button', 'data-option': `${option}-${key}`,
          'aria-pressed': this.options[option] === key,
          onclick: (event) => {
            this.options[option] = key;
            press(event.target);
            this.rebuild();
          }}, text)));
  }

  toolbar() {
    const measures = Object.fromEntries(Object.entries(MEASURES)
      .map(([key, measure]) => [key, measure.name]));
    const check = (option, text) => element('label', {class: 'check'},
      element('input', {type: 'checkbox', 'data-option': option,
        checked: this.options[option],
        onchange: (event) => {
          this.options[option] = event.target.checked;
          this.rebuild();
        }}), text);
    const spaces = Array.from(new Set(this.page.run.stacks.map((stack) =>
      stack.space))).sort();
    this.search = element('input', {type: 'search', id: 'flame-search',
      placeholder: 'search frames', 'aria-label': 'Search frames',
      oninput: soon(() => {
        this.options.search = this.search.value.toLowerCase();
        this.draw();
      })});
    return element('div', {class: 'toolbar'},
      this.segments('What is shown', measures, 'measure'),
      this.segments('Frames', KINDS, 'kind'),
      this.segments('Form', {icicle: 'icicle', flame: 'flame'}, 'view'),
      element('select', {'aria-label': 'Space',
        onchange: (event) => {
          this.options.space = event.target.value;
          this.rebuild();
        }}, element('option', {value: ''}, 'every space'),
      ...spaces.map((space) => element('option', {}, space))),
      check('inverted', 'callees first'),
      this.page.before ? check('compare', 'difference') : null,
      this.search,
      this.reset);
  }

  rebuild() {
    const {run, before} = this.page;
    this.made = {...this.options, run, window: this.page.window,
      before: this.options.compare ? before : null,
      lines: !(this.options.compare && before)};
    this.made.rows = this.made.before || this.made.window ? null
      : growingRows(run);
    this.root = flameTree(this.made);
    this.focus = this.root;
    this.at = this.root;
    this.functions.replaceChildren(figuresOf('Functions as a table',
      () => functionTable(this.root)));
    this.draw();
  }

  zoom(node) {
    this.focus = node;
    this.at = node;
    this.draw();
    announce(`zoomed to ${clean(this.nameOf(node), 200)}`);
  }

  nameOf(node) {
    return node.data.frame === null ? 'all' : frameLabel(node.data.frame);
  }

  matches(node) {
    return node.data.frame !== null && this.options.search !== '' &&
        `${node.data.key} ${placeOf(node.data.frame)}`.toLowerCase()
          .includes(this.options.search);
  }

  /* Frames found, and what goes through them, each stack once. */
  found() {
    let count = 0;
    let bytes = 0;
    const walk = (node, inside) => {
      const here = this.matches(node);
      count += here ? 1 : 0;
      bytes += here && !inside ? node.value : 0;
      (node.children || []).forEach((child) => walk(child, inside || here));
    };
    walk(this.root, false);
    return {count, bytes};
  }

  say() {
    const {measure} = this.made;
    const range = this.page.window
      ? ` from ${durationText(this.page.window[0])} to ` +
        durationText(this.page.window[1])
      : measure === 'growth' && this.page.run.began > 0
        ? ' since the work began' : ' over the whole run';
    const words = measure === 'growth' && this.made.rows
      ? 'what the call sites that grow have kept ("live at the end" has all)'
      : MEASURES[measure].words;
    let text = `${bytesText(this.root.data.now)}${range}: ${words}.`;
    if (this.made.before) {
      text += ` Before it was ${bytesText(this.root.data.before)}; red is ` +
          'more now, blue is less.';
    }
    if (this.options.search !== '') {
      const {count, bytes} = this.found();
      text += ` ${count} frames match, with ` +
          `${percentText(bytes / (this.root.value || 1))} of it.`;
    }
    this.words.textContent = text;
  }

  draw() {
    const width = this.plot.clientWidth;
    this.say();
    this.crumbs();
    if (width === 0) {
      return;
    }
    const {focus} = this;
    const scale = width / ((focus.x1 - focus.x0) || 1);
    const shown = [];
    const collect = (node) => {
      if ((node.x1 - node.x0) * scale >= NARROW) {
        shown.push(node);
        (node.children || []).forEach(collect);
      }
    };
    focus.ancestors().slice(1).forEach((node) => shown.push(node));
    collect(focus);
    const depth = d3.max(shown, (node) => node.depth) + 1;
    const height = depth * ROW;
    const svg = d3.create('svg').attr('viewBox', [0, 0, width, height])
      .attr('width', width).attr('height', height).attr('aria-hidden', 'true');
    for (const node of shown) {
      const above = node.depth < focus.depth;
      const x = above ? 0 : (node.x0 - focus.x0) * scale;
      const w = above ? width : (node.x1 - node.x0) * scale;
      const y = (this.made.view === 'icicle' ? node.depth
        : depth - 1 - node.depth) * ROW;
      this.drawNode(svg, node, x, y, w, above);
    }
    if (this.root.value === 0) {
      this.plot.replaceChildren(element('p', {class: 'note empty'},
        'Nothing of that kind in this window.'));
      return;
    }
    this.plot.replaceChildren(svg.node());
    this.mark();
  }

  drawNode(svg, node, x, y, w, above) {
    const found = this.matches(node);
    const group = svg.append('g').attr('transform', `translate(${x},${y})`)
      .attr('class', `frame${found ? ' found' : ''}${above ? ' above' : ''}` +
        `${this.options.search !== '' && !found ? ' other' : ''}`)
      .datum(node);
    group.append('rect').attr('width', Math.max(0.5, w - 0.5))
      .attr('height', ROW - 1).attr('rx', 2)
      .attr('fill', flameColor(node, this.made));
    if (w > 28) {
      const room = Math.floor((w - 8) / 7.1);
      const name = clean(this.nameOf(node), 500);
      group.append('text').attr('x', 4).attr('y', ROW - 6)
        .text(name.length > room ? `${name.slice(0, Math.max(1, room - 1))}…`
          : name);
    }
    group.on('click', (each) => {
      this.zoom(each);
      this.plot.focus({preventScroll: true});
    }).on('mousemove', (each) => {
      tip.show(d3.event, ...nodeLines(each, this.root, this.made));
    });
  }

  crumbs() {
    const trail = this.focus.ancestors().reverse();
    this.reset.hidden = this.focus === this.root;
    const shown = trail.length > 6 ? [trail[0], ...trail.slice(-5)] : trail;
    this.path.replaceChildren(...(this.focus === this.root ? []
      : shown.map((node) => element('button', {type: 'button',
        onclick: () => this.zoom(node)}, clean(this.nameOf(node), 60)))));
  }

  /* The frame that the keyboard is at. */
  mark() {
    const node = this.at;
    d3.select(this.plot).selectAll('.frame')
      .classed('at', (each) => each === node);
    const lines = nodeLines(node, this.root, this.made);
    this.detail.replaceChildren(...lines.flatMap((line, i) =>
      i === 0 ? [line] : [' · ', line]));
  }

  onKey(event) {
    const {at} = this;
    const siblings = at.parent ? at.parent.children : [at];
    const i = siblings.indexOf(at);
    const deeper = this.made.view === 'icicle' ? 'ArrowDown' : 'ArrowUp';
    const outer = this.made.view === 'icicle' ? 'ArrowUp' : 'ArrowDown';
    const next = {
      [deeper]: at.children && at.children[0],
      [outer]: at.parent,
      ArrowLeft: siblings[i - 1],
      ArrowRight: siblings[i + 1],
    }[event.key];
    if (event.key === 'Enter') {
      this.zoom(at);
    } else if (event.key === 'Escape') {
      this.zoom(this.root);
    } else if (next) {
      this.at = next;
      this.mark();
      announce(this.detail.textContent);
    } else if (!event.key.startsWith('Arrow')) {
      return;
    }
    event.preventDefault();
  }
}

/* Of each function what goes through it, each stack once, and what it asked
 * for itself. */
function functionTable(root) {
  const sums = new Map();
  const walk = (node, above) => {
    const {key} = node.data;
    const sum = sums.get(key) || {node, total: 0, self: 0};
    sums.set(key, sum);
    sum.self += node.data.self;
    sum.total += above.has(key) ? 0 : node.value;
    const inside = above.has(key) ? above : new Set(above).add(key);
    (node.children || []).forEach((child) => walk(child, inside));
  };
  (root.children || []).forEach((child) => walk(child, new Set()));
  const rows = Array.from(sums.values())
    .sort((a, b) => b.total - a.total).slice(0, 200);
  return plainTable('The 200 functions with the most', ['function', 'with ' +
    'callees', 'itself', 'of all', 'where'], rows.map(({node, total, self}) => [
    clean(frameLabel(node.data.frame), 200), bytesText(total), bytesText(self),
    percentText(total / (root.value || 1)),
    clean(placeOf(node.data.frame), 200)]));
}
