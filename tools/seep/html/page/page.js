// SPDX-License-Identifier: LGPL-2.1-or-later
// The page: which process is shown, in which window of time and which theme.

class Page {
  constructor(data) {
    this.data = data;
    this.before = null;
    this.window = null;
    this.listeners = [];
  }

  /** Called whenever the window changes, while the process is shown. */
  onWindow(listener) {
    this.listeners.push(listener);
  }

  /** @param range  [from, to] in seconds; null: the whole run */
  setWindow(range) {
    this.window = range;
    this.listeners.forEach((listener) => listener());
    announce(range ? `window from ${durationText(range[0])} to ` +
      durationText(range[1]) : 'the whole run');
  }

  show(index) {
    const process = this.data.report.processes[index];
    const part = (id) => document.getElementById(id);
    this.listeners = [];
    this.window = null;
    this.run = new Run(process);
    this.before = this.beforeOf(process);
    document.title = `${process.verdict.class.toUpperCase()} · ` +
        `${clean(process.words.command || '', 80)} · seep`;
    verdictPart(this, part('verdict'));
    memoryChart(this, part('memory'));
    siteCards(this, part('growing'));
    this.flame = new Flame(this, part('flame'));
    this.table = new SiteTable(this, part('sites'));
    aboutPart(this, part('about'));
  }

  /* Of two runs, the process before that runs the same program. */
  beforeOf(process) {
    if (!this.data.before) {
      return null;
    }
    const same = this.data.before.processes.filter((each) =>
      baseName(each.process.exe || '') === baseName(process.process.exe || ''));
    const found = same[0] || this.data.before.processes[0];
    return found ? new Run(found) : null;
  }
}

let shownPage = null;

/** What is shown: for tests, and for who is curious. */
function flamePage() {
  return shownPage;
}

function processChoice(page) {
  const {processes} = page.data.report;
  const host = document.getElementById('process');
  if (processes.length < 2) {
    host.hidden = true;
    return;
  }
  host.append(element('label', {for: 'process-choice'},
    `${processes.length} processes, worst first: `),
  element('select', {id: 'process-choice',
    onchange: (event) => page.show(Number(event.target.value))},
  ...processes.map((each, i) => element('option', {value: i},
    `${each.verdict.class.toUpperCase()}  ` +
    `${clean(each.words.command || each.process.exe || '', 80)} ` +
    `(pid ${each.process.pid})`))));
}

/* Of the system, until somebody chooses. */
function themeSwitch() {
  const button = document.getElementById('theme');
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  let kept = null;
  try {
    kept = localStorage.getItem('seep-theme');
  } catch (error) {
    // a page from a mail may have no storage
  }
  const set = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === 'dark' ? 'light' : 'dark';
    button.setAttribute('aria-label', `Switch to the ${button.textContent} theme`);
  };
  set(kept === 'dark' || kept === 'light' ? kept : dark.matches ? 'dark' : 'light');
  button.addEventListener('click', () => {
    const theme = button.textContent;
    set(theme);
    try {
      localStorage.setItem('seep-theme', theme);
    } catch (error) {
      // then it is for this time
    }
  });
  dark.addEventListener('change', (event) => {
    if (kept === null) {
      set(event.matches ? 'dark' : 'light');
    }
  });
}

function fail(error) {
  const host = document.getElementById('verdict');
  host.replaceChildren(element('p', {class: 'sentence'},
    `The page could not be shown: ${error.message}`));
  throw error;
}

/* The first frame has the charts of the width that it gives them. */
async function shown() {
  for (let i = 0; i < 2; i++) {
    await new Promise((done) => requestAnimationFrame(done));
  }
}

async function main() {
  themeSwitch();
  const data = await readData();
  const page = new Page(data);
  shownPage = page;
  if (data.report.processes.length === 0) {
    throw new Error('no recording could be read');
  }
  processChoice(page);
  familiesPart(data.report, document.getElementById('families'));
  differencePart(data.diff, document.getElementById('difference'));
  if (data.report.summary.refused > 0) {
    document.getElementById('process').append(element('span', {class: 'note'},
      ` ${data.report.summary.refused} recordings could not be read.`));
    document.getElementById('process').hidden = false;
  }
  page.show(0);
  document.getElementById('main').removeAttribute('aria-busy');
  await shown();
  document.documentElement.dataset.ready = 'yes';
  performance.mark('seep-ready');
}

main().catch(fail);
