# SPDX-License-Identifier: LGPL-2.1-or-later
"""Imports for a while, then works: python_begin.py CASE IMPORT_S WORK_S.

The modules are written beside the recording, in the folder that it runs in.
CASE keeps: "graph" all of the work, "cache" the first 40 % of it, "late" its
last half, "clean" and "brief" nothing; "thread" what a thread does from the
start. Tells what was kept after the imports, as JSON.
"""
import json
import os
import pathlib
import sys
import threading
import time

MODULES = 40
PIECE_BYTES = 64 << 10
PAUSE_S = 0.02
SOURCE = """
import time
TABLE = [bytearray(20000) for _ in range(40)]
NAMES = {{str(k): k for k in range(2000)}}
time.sleep({pause})
"""


def write_modules(seconds):
    """What imports for so long, in the working folder."""
    for i in range(MODULES):
        pathlib.Path(f"part{i}.py").write_text(
            SOURCE.format(pause=seconds / MODULES))
    pathlib.Path("heavy.py").write_text(
        "".join(f"import part{i}\n" for i in range(MODULES)))


KEPT = []


class Node:
    """Of a graph that is kept."""

    def __init__(self):
        self.saved = bytearray(b"x" * PIECE_BYTES)


def step():
    """One unit of what is kept."""
    return Node()


def request():
    """Work that keeps nothing."""
    return sum(len(bytes(4000)) for _ in range(50))


def work(case, seconds):
    """@return how many pieces were kept"""
    begin = time.monotonic()
    count = 0
    while (done := (time.monotonic() - begin) / seconds) < 1:
        request()
        if (case == "graph" or (case == "cache" and done < 0.4)
                or (case == "late" and done > 0.5)):
            KEPT.append(step())
            count += 1
        time.sleep(PAUSE_S)
    return count


def keep_on():
    """What a thread does meanwhile, to the end."""
    while True:
        KEPT.append(step())
        time.sleep(PAUSE_S)


def main():
    """The imports, then the work."""
    case, import_s, work_s = sys.argv[1], *map(float, sys.argv[2:])
    sys.dont_write_bytecode = True
    sys.path.insert(0, ".")
    if case == "thread":
        threading.Thread(target=keep_on, daemon=True).start()
    if import_s:
        write_modules(import_s)
        import heavy  # pylint: disable=import-outside-toplevel,unused-import
    begin = time.monotonic()
    count = work(case, work_s)
    print(json.dumps({"kept_bytes": count * PIECE_BYTES,
                      "work_s": time.monotonic() - begin}), flush=True)
    os._exit(0)  # what it kept is not given back while it is judged


main()
