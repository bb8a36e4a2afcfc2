// SPDX-License-Identifier: LGPL-2.1-or-later
// Elements made of text and attributes, and what all parts of the page use.

/** Put @children into @host instead of what it had; null is none. */
function fill(host, ...children) {
  host.replaceChildren(...children.filter((child) => child !== null &&
                                                     child !== undefined));
}

/** element('p', {class: 'note'}, 'text', child, ...) */
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith('on')) {
      made.addEventListener(key.slice(2), value);
    } else if (key.startsWith('aria-')) {
      made.setAttribute(key, value); // "true" and "false" are words there
    } else if (value !== false && value !== null && value !== undefined) {
      made.setAttribute(key, value === true ? '' : value);
    }
  }
  made.append(...children.filter((child) => child !== null &&
                                            child !== undefined));
  return made;
}

/* What a terminal or a browser would not show as a character of its own. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const LONG = 2000;

/** A name of a recording: what cannot be seen is written out, and of ten
 * thousand characters the beginning and the end are kept. */
function clean(text, most) {
  const limit = most || LONG;
  let shown = String(text);
  if (shown.length > limit) {
    const half = Math.floor(limit / 2) - 1;
    shown = `${shown.slice(0, half)} … ${shown.slice(-half)}`;
  }
  return shown.replace(UNSEEN, (c) =>
    `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Says it to who does not see the page. */
function announce(text) {
  document.getElementById('said').textContent = text;
}

/** A table of @rows, each a list of texts or elements, with its heads. */
function plainTable(caption, heads, rows) {
  return element('table', {class: 'figures'},
    element('caption', {}, caption),
    element('thead', {}, element('tr', {}, ...heads.map((head) =>
      element('th', {scope: 'col'}, head)))),
    element('tbody', {}, ...rows.map((row) => element('tr', {},
      ...row.map((cell, i) => element(i === 0 ? 'th' : 'td',
        i === 0 ? {scope: 'row'} : {}, cell))))));
}

/** The figures of a chart for who cannot see it; made when it is opened. */
function figuresOf(summary, make) {
  const details = element('details', {class: 'alternative'},
    element('summary', {}, summary));
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) {
      details.append(element('div', {class: 'scroll', tabindex: 0}, make()));
    }
  });
  return details;
}

function badge(name) {
  return element('span', {class: `badge ${/^[a-z-]+$/.test(name) ? name : ''}`},
    name.replace(/-/g, ' ').toUpperCase());
}

function colorOf(name) {
  return `var(--space-${/^[a-z_]+$/.test(name) ? name : 'other'})`;
}

/* What stands beside the pointer. */
const tip = {
  show(event, ...lines) {
    const box = document.getElementById('tip');
    box.replaceChildren(...lines.map((line) => element('div', {}, line)));
    box.hidden = false;
    const x = Math.min(event.clientX + 14, window.innerWidth - box.offsetWidth - 8);
    const y = event.clientY + 18 + box.offsetHeight > window.innerHeight
      ? event.clientY - box.offsetHeight - 10 : event.clientY + 18;
    box.style.setProperty('left', `${Math.max(4, x)}px`);
    box.style.setProperty('top', `${Math.max(4, y)}px`);
  },
  hide() {
    document.getElementById('tip').hidden = true;
  },
};

/** A function that calls @act once for all calls before the next frame. */
function soon(act) {
  let pending = false;
  return () => {
    if (!pending) {
      pending = true;
      requestAnimationFrame(() => {
        pending = false;
        act();
      });
    }
  };
}

/** Calls @draw soon and whenever the width of @node changes from @drawn, at
 * which it is drawn already. */
function onWidth(node, draw, drawn) {
  let width = Math.floor(drawn || 0);
  new ResizeObserver(soon(() => {
    const next = Math.floor(node.clientWidth);
    if (next > 0 && next !== width) {
      width = next;
      draw(width);
    }
  })).observe(node);
}
