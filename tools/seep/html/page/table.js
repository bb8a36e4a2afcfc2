// SPDX-License-Identifier: LGPL-2.1-or-later
// Every call site: sorted by any column, filtered by words, class and space.

const ROWS = 100; // at first

/* What stands in a column, and what it is sorted by. */
function columnsOf(page) {
  const {run} = page;
  const columns = [
    {key: 'class', name: 'class', text: (site) => site.class,
      by: (site) => site.rank, ascending: true, cell: (site) => badge(site.class)},
    {key: 'where', name: 'where', text: (site) => clean(site.where, 300),
      by: (site) => site.where, ascending: true, wide: true},
    {key: 'growth', name: 'growth/min',
      text: (site) => growthText(site, site.growth_bytes_per_s, 60),
      by: (site) => site.growth_bytes_per_s &&
          growthText(site, site.growth_bytes_per_s, 60) !== '-'
        ? site.growth_bytes_per_s.estimate : null},
    {key: 'live', name: 'live', text: (site) => bytesText(site.live_bytes),
      by: (site) => site.live_bytes},
    {key: 'blocks', name: 'blocks', text: (site) => countText(site.live_count),
      by: (site) => site.live_count},
    {key: 'peak', name: 'peak', text: (site) => bytesText(site.peak_bytes),
      by: (site) => site.peak_bytes},
    {key: 'allocated', name: 'allocated',
      text: (site) => bytesText(site.allocated_bytes),
      by: (site) => site.allocated_bytes},
    {key: 'temporary', name: 'temporary',
      title: 'of what was allocated, freed again at once',
      text: (site) => bytesText(site.temporary_bytes),
      by: (site) => site.temporary_bytes},
    {key: 'space', name: 'space', text: (site) => site.device === null
      ? site.space : `${site.space} ${site.device}`,
    by: (site) => site.space, ascending: true},
  ];
  if (page.window) {
    const change = measureOf(run, 'growth', page.window);
    const sums = run.process.sites.map((site, row) =>
      d3.sum(run.stacksOf(row), change));
    columns.splice(3, 0, {key: 'window', name: 'in the window',
      text: (site) => changeText(sums[site.rank]),
      by: (site) => sums[site.rank]});
  }
  return columns;
}

class SiteTable {
  constructor(page, host) {
    this.page = page;
    this.sites = page.run.process.sites;
    this.sites.forEach((site, rank) => {
      site.rank = rank;
    });
    this.order = {key: 'class', ascending: true};
    this.shown = ROWS;
    this.filter = element('input', {type: 'search', id: 'table-filter',
      placeholder: 'filter: file, function, module, thread',
      'aria-label': 'Filter call sites', oninput: soon(() => this.draw())});
    this.classes = this.select('Class', 'every class',
      this.sites.map((site) => site.class));
    this.spaces = this.select('Space', 'every space',
      this.sites.map((site) => site.space));
    this.count = element('span', {class: 'note', id: 'table-count',
      'aria-live': 'polite'});
    this.head = element('thead');
    this.body = element('tbody');
    this.more = element('button', {type: 'button', id: 'table-more',
      onclick: () => {
        this.shown = Infinity;
        this.draw();
      }}, 'show all');
    fill(host,
    element('div', {class: 'toolbar'}, this.filter, this.classes, this.spaces,
        this.count),
      element('div', {class: 'scroll', tabindex: 0, role: 'region',
        'aria-label': 'Call sites'},
      element('table', {id: 'sites-table'}, this.head, this.body)),
      this.more);
    page.onWindow(() => this.draw());
    this.draw();
  }

  select(name, all, values) {
    return element('select', {'aria-label': name, onchange: () => this.draw()},
      element('option', {value: ''}, all),
      ...Array.from(new Set(values)).sort().map((value) =>
        element('option', {}, value)));
  }

  /* What is looked through: made when it is asked for. */
  textOf(site) {
    if (site.text === undefined) {
      const {run} = this.page;
      const frames = new Set(run.stacksOf(site.rank).flatMap((stack) =>
        stack.frames));
      site.text = [site.where, site.id, site.thread || '',
        ...Array.from(frames, (number) => {
          const frame = run.process.frames[number];
          return `${frame.function || ''} ${frame.file || frame.module || ''}`;
        })].join('\n').toLowerCase();
    }
    return site.text;
  }

  wanted() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    return this.sites.filter((site) =>
      (this.classes.value === '' || this.classes.value === site.class) &&
      (this.spaces.value === '' || this.spaces.value === site.space) &&
      words.every((word) => this.textOf(site).includes(word)));
  }

  draw() {
    const columns = columnsOf(this.page);
    const order = columns.find((column) => column.key === this.order.key) ||
        columns[0];
    const sites = this.wanted();
    const sign = this.order.ascending ? 1 : -1;
    sites.sort((a, b) => {
      const [x, y] = [order.by(a), order.by(b)];
      if (x === y) {
        return a.rank - b.rank;
      }
      return x === null ? 1 : y === null ? -1 : x < y ? -sign : sign;
    });
    const some = sites.slice(0, this.shown);
    this.head.replaceChildren(element('tr', {}, ...columns.map((column) =>
      this.headOf(column))));
    this.body.replaceChildren(...some.flatMap((site) =>
      this.rowOf(site, columns)));
    this.count.textContent = sites.length === this.sites.length
      ? `${sites.length} call sites`
      : `${sites.length} of ${this.sites.length} call sites`;
    this.more.hidden = some.length === sites.length;
    this.more.textContent = `show all ${sites.length}`;
  }

  headOf(column) {
    const here = column.key === this.order.key;
    return element('th', {scope: 'col', 'aria-sort': here
      ? (this.order.ascending ? 'ascending' : 'descending') : 'none',
    class: column.ascending ? 'text' : 'number'},
    element('button', {type: 'button', 'data-sort': column.key,
      title: column.title,
      onclick: () => {
        this.order = {key: column.key, ascending: here
          ? !this.order.ascending : Boolean(column.ascending)};
        this.draw();
        this.head.querySelector(`[data-sort="${column.key}"]`).focus();
      }}, column.name, element('span', {'aria-hidden': 'true', class: 'arrow'},
      here ? (this.order.ascending ? ' ▲' : ' ▼') : '')));
  }

  rowOf(site, columns) {
    const row = element('tr', {'data-site': site.id,
      class: site.suppressed_by ? 'suppressed' : null});
    for (const column of columns) {
      const cell = element('td', {class: column.wide ? 'where'
        : column.ascending ? 'text' : 'number', 'data-column': column.key});
      if (column.wide) {
        cell.append(element('button', {type: 'button', class: 'open',
          'aria-expanded': site.open === true,
          onclick: (event) => this.toggle(site, row, event.target, columns),
        }, column.text(site)));
        const callers = callersLine(this.page.run, site, site.rank);
        cell.append(callers || '');
      } else {
        cell.append(column.cell ? column.cell(site) : column.text(site));
      }
      row.append(cell);
    }
    return site.open === true ? [row, this.moreOf(site, columns)] : [row];
  }

  moreOf(site, columns) {
    return element('tr', {class: 'more'},
      element('td', {colspan: columns.length}, detailOf(this.page, site)));
  }

  /* One row alone: there may be thousands beside it. */
  toggle(site, row, button, columns) {
    site.open = site.open !== true;
    button.setAttribute('aria-expanded', site.open);
    if (site.open) {
      row.after(this.moreOf(site, columns));
    } else {
      row.nextSibling.remove();
    }
  }
}

/* All that is known of one call site. */
function detailOf(page, site) {
  const {run} = page;
  const facts = [
    ['id', site.id], ['class', site.class], ['reason', site.reason],
    ['held by', site.held ? site.held.line : null],
    ['by way of', site.held && site.held.answer &&
      site.held.answer.groups.length > 0
      ? site.held.answer.groups[0].chain : null],
    ['held together', (togetherOf(run.process, site) || {}).sentence],
    ['live', `${bytesText(site.live_bytes)}` + (site.live_bytes_error > 0
      ? ` ±${bytesText(site.live_bytes_error)}` : '')],
    ['freed', bytesText(site.freed_bytes)],
    ['largest block', bytesText(site.largest_bytes)],
    ['first and last', `${durationText(site.first_s)}, ` +
      durationText(site.last_s)],
    ['thread', site.thread], ['pool', site.pool],
    ['suppressed by', site.suppressed_by],
    ['known bound', site.known_bound_bytes
      ? bytesText(site.known_bound_bytes) : null],
  ].filter(([, value]) => value !== null && value !== undefined);
  const stacks = run.stacksOf(site.rank).slice()
    .sort((a, b) => b.live_bytes - a.live_bytes || b.allocated_bytes -
                    a.allocated_bytes);
  return element('div', {class: 'opened'},
    element('dl', {}, ...facts.flatMap(([name, value]) =>
      [element('dt', {}, name), element('dd', {}, clean(value, 500))])),
    courseOf(run, site, site.rank), survivorsOf(site),
    element('p', {class: 'note'}, stacks.length === 1 ? 'Its stack:'
      : `The largest of its ${stacks.length} stacks, innermost first:`),
    stacks.length > 0 ? stackList(run, stacks[0]) : null);
}

function stackList(run, stack) {
  return element('ol', {class: 'stack'}, ...stack.frames.map((number) => {
    const frame = run.process.frames[number];
    return element('li', {class: frame.kind === 'python' ? 'python' : 'native'},
      clean(frame.function || '(no name)', 400), ' ',
      element('span', {class: 'note'}, clean(placeOf(frame), 300)),
      sourceLine(frame));
  }), stack.stack_end === 'complete' ? '' : element('li', {class: 'note'},
    `… the stack ends here: ${stack.stack_end}`));
}
