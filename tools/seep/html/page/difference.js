// SPDX-License-Identifier: LGPL-2.1-or-later
// Two runs: what is new, worse, gone, as the document of `seep diff` has it.

function differencePart(diff, host) {
  if (!diff) {
    host.hidden = true;
    return;
  }
  host.hidden = false;
  fill(host,
    element('h2', {}, 'Difference'),
    element('p', {class: 'note'}, `before: ${clean(diff.before, 200)} · now: ` +
      clean(diff.now, 200)),
    element('p', {class: 'sentence', id: 'difference-sentence'},
      clean(diff.sentence || '')),
    ...diff.programs.map(programPart));
}

function programPart(program) {
  const scale = program.change_unit === 'bytes_per_s' ? 60 : 1;
  const unit = program.change_unit === 'bytes_per_s' ? '/min' : ' a unit';
  const changed = (interval) => interval
    ? `${intervalText(interval, scale)}${unit}` : '?';
  const sideText = (side, key) => side && side[key]
    ? `${intervalText(side[key], scale)}${unit}` : '—';
  const key = program.change_unit === 'bytes_per_s'
    ? 'growth_bytes_per_s' : 'growth_bytes_per_unit';
  return element('div', {class: 'scroll', tabindex: 0},
    plainTable(`${clean(program.program, 200)}: growth`,
      ['call site', 'outcome', 'change', 'before', 'now', 'space'],
      [['all of it', '', changed(program.change), sideText(program.before, key),
        sideText(program.now, key), ''],
      ...program.sites.slice(0, 200).map((site) => [
        clean(site.where || '', 300), badge(site.outcome), changed(site.change),
        sideText(site.before, key), sideText(site.now, key),
        site.space || ''])]),
    program.held.length === 0 ? null
      : plainTable('What is held', ['holder', 'outcome', 'before', 'now', 'change'],
        program.held.slice(0, 200).map((held) => [
          clean(held.where || held.pattern || held.holder, 300),
          badge(held.outcome), bytesText(held.before_bytes),
          bytesText(held.now_bytes), changeText(held.change
            ? held.change.estimate : held.now_bytes - held.before_bytes)])));
}
