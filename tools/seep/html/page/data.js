// SPDX-License-Identifier: LGPL-2.1-or-later
// From the element "data" to reports, and figures of stacks by time.
//
// Invariant: whatever a string of a recording holds, it becomes a text node or
// an attribute's value, never HTML: nothing here or elsewhere sets innerHTML.

async function readData() {
  const text = document.getElementById('data').textContent.replace(/\s+/g, '');
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) {
    bytes[i] = binary.charCodeAt(i);
  }
  if (typeof DecompressionStream === 'undefined') {
    throw new Error('this browser cannot unpack the data: Chromium 80, ' +
                    'Firefox 113 or Safari 16.4 can');
  }
  const stream = new Blob([bytes]).stream()
    .pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(stream).text());
}

/** What of a process charts and flame graphs share. */
class Run {
  constructor(process, title) {
    this.process = process;
    this.title = title;
    this.ends = process.timeline.end_s;
    this.last = this.ends.length - 1;
    this.duration = process.process.duration_s;
    this.began = process.process.work_began
      ? process.process.work_began.from_s : 0;
    this.stacks = process.stacks;
    this.names = null;
    this.bySite = null;
  }

  /** The bucket in which @seconds lies. */
  bucketAt(seconds) {
    return Math.min(this.last, d3.bisectLeft(this.ends, seconds));
  }

  /** Stacks by the row that they are a part of. */
  stacksOf(row) {
    if (this.bySite === null) {
      this.bySite = groupBy(this.stacks, (stack) => stack.row);
    }
    return this.bySite.get(row) || [];
  }

  /** Live bytes of a row at the end of each bucket: the sum of its stacks. */
  seriesOf(row) {
    const sum = new Float64Array(this.last + 1);
    for (const stack of this.stacksOf(row)) {
      addLive(this, stack, sum);
    }
    return sum;
  }
}

function groupBy(list, keyOf) {
  const groups = new Map();
  for (const item of list) {
    const key = keyOf(item);
    if (!groups.has(key)) {
      groups.set(key, []);
    }
    groups.get(key).push(item);
  }
  return groups;
}

/* The point of a series that tells of bucket @bucket: the last up to it; -1
 * where it begins later. A bucket that is not in a series is flat. */
function pointAt(series, bucket) {
  return d3.bisectRight(series.bucket, bucket) - 1;
}

function addLive(run, stack, sum) {
  const series = stack.series;
  if (series.bucket.length === 0) {
    for (let i = run.bucketAt(stack.first_s); i <= run.last; i++) {
      sum[i] += stack.live_bytes;
    }
    return;
  }
  let point = -1;
  for (let i = 0; i <= run.last; i++) {
    while (point + 1 < series.bucket.length && series.bucket[point + 1] <= i) {
      point++;
    }
    sum[i] += point < 0 ? 0 : series.live_bytes[point];
  }
}

/** Live bytes of a stack at the end of a bucket; -1 is before the first. */
function liveAt(run, stack, bucket) {
  if (bucket >= run.last) {
    return stack.live_bytes;
  }
  if (bucket < 0) {
    return 0;
  }
  if (stack.series.bucket.length === 0) {
    return bucket >= run.bucketAt(stack.first_s) ? stack.live_bytes : 0;
  }
  const point = pointAt(stack.series, bucket);
  return point < 0 ? 0 : stack.series.live_bytes[point];
}

/** Bytes allocated in buckets @from to @to; of a stack of which it is not kept
 * when, all of it in the bucket in which it began. */
function allocatedIn(run, stack, from, to) {
  if (from <= 0 && to >= run.last) {
    return stack.allocated_bytes;
  }
  const series = stack.series;
  if (series.bucket.length === 0) {
    const at = run.bucketAt(stack.first_s);
    return at >= from && at <= to ? stack.allocated_bytes : 0;
  }
  let sum = 0;
  for (let i = d3.bisectLeft(series.bucket, from);
    i < series.bucket.length && series.bucket[i] <= to; i++) {
    sum += series.allocated_bytes[i];
  }
  return sum;
}

/* Spaces that lie in the memory of a device, and those that are views of
 * memory which another space has, or reserve addresses only. */
const ON_DEVICE = new Set(['device']);
const VIEWS = new Set(['tensor', 'registered', 'reserved', 'imported', 'file']);

/** Is @space a part of the host's memory? */
function isHost(space) {
  return !ON_DEVICE.has(space) && !VIEWS.has(space);
}

/** Whom a call site is called by, innermost first, as far as it tells calls
 * apart; in a stack of Python by Python. */
function callersOf(run, site, row) {
  const stack = run.stacksOf(row)[0];
  if (!stack) {
    return [];
  }
  const frames = stack.frames.map((number) => run.process.frames[number]);
  const at = frames.findIndex((frame) => frame.function &&
    site.where.endsWith(` ${frame.function}`));
  const outer = frames.slice(at + 1);
  const python = outer.filter((frame) => frame.kind === 'python');
  const names = (python.length > 0 ? python : outer)
    .map((frame) => frame.function).filter(Boolean);
  return names.filter((name, i) => name !== names[i - 1]).slice(0, 4);
}

/** The bucket of @from to @to at whose end the spaces that @wanted takes hold
 * the most. */
function peakIn(run, from, to, wanted) {
  let best = to;
  let most = -1;
  for (let i = Math.max(from, 0); i <= to; i++) {
    let sum = 0;
    for (const [space, live] of Object.entries(run.process.timeline.spaces)) {
      sum += wanted(space) ? live[i] || 0 : 0;
    }
    if (sum > most) {
      most = sum;
      best = i;
    }
  }
  return best;
}

/** "_multiarray_umath" of its file, as in the text of the report. */
function moduleName(path) {
  return baseName(path).replace(/\.cpython-.*$|\.abi3\.so$|\.so(\.[\d.]*)?$/, '');
}

/** "server.py:54 Model.remember" */
function frameLabel(frame) {
  const name = frame.function ||
      (frame.module ? moduleName(frame.module)
        : `(${frame.offset || 'unknown'})`);
  return frame.kind === 'python' && frame.file
    ? `${name}  ${baseName(frame.file)}:${frame.line || '?'}` : name;
}

function baseName(path) {
  return path.slice(path.lastIndexOf('/') + 1);
}
