# SPDX-License-Identifier: LGPL-2.1-or-later
"""A service of several processes: workers that serve side by side, or
children that come one after the other.

    family.py workers leak|clean SECONDS COUNT
    family.py children leak|clean SECONDS COUNT

Workers run SECONDS each. Children, two at a time, run from SECONDS to twice
as long; a clean one fills a table of TABLE_BLOCKS blocks as it starts, which
is its working set, and a leaking one keeps a block each time it serves.
Prints what was kept, as JSON.
"""
import json
import multiprocessing
import os
import sys
import time

BLOCK_BYTES = 20000
TABLE_BLOCKS = 400
PER_SECOND = 100
AT_ONCE = 2

KEPT = []


def keep():
    """The line that holds what it allocates."""
    KEPT.append(bytearray(BLOCK_BYTES))


def fill():
    """A working set: the same in every process, however long it runs."""
    for _ in range(TABLE_BLOCKS):
        KEPT.append(bytearray(BLOCK_BYTES))


def serve(what, seconds):
    """Requests at a steady pace; each makes and frees a few blocks."""
    start = time.monotonic()
    if what == "clean":
        fill()
    for turn in range(int(seconds * PER_SECOND)):
        time.sleep(max(0, start + turn / PER_SECOND - time.monotonic()))
        _answer = [bytearray(BLOCK_BYTES // 2) for _ in range(3)]
        if what == "leak":
            keep()
    return {"pid": os.getpid(), "seconds": time.monotonic() - start,
            "bytes": len(KEPT) * BLOCK_BYTES}


def job(task):
    """For a pool."""
    return serve(*task)


def workers(context, what, seconds, count):
    """All at the same time."""
    with context.Pool(count) as pool:
        return pool.map(job, [(what, seconds)] * count, chunksize=1)


def children(context, what, seconds, count):
    """A process for each job."""
    tasks = [(what, seconds * (1 + turn / (count - 1)))
             for turn in range(count)]
    with context.Pool(AT_ONCE, maxtasksperchild=1) as pool:
        return pool.map(job, tasks, chunksize=1)


def main(kind, what, seconds, count):
    """Run them, and tell what they kept."""
    run = {"workers": workers, "children": children}[kind]
    context = multiprocessing.get_context("fork")
    print(json.dumps(run(context, what, float(seconds), int(count))),
          flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
