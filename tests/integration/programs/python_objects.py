# SPDX-License-Identifier: LGPL-2.1-or-later
"""Blocks of a size and a number that are known, one kind a function.

    python_objects.py WHAT...      functions of this file, in that order

Prints what each function should be found to hold, as {function: [[bytes of
one, blocks made, blocks kept], ...]}. Invariant: a function's blocks of one
size come from one line and one native stack.
"""
import _thread
import gc
import os
import sys
import time

COUNT = 3000
LARGE_COUNT = 50
BYTES_HEAD = 33  # of a bytes object, with its last zero
kept = []
expected = {}


def told(function, *rows):
    expected.setdefault(function, []).extend(rows)


def small():
    rows = [None] * COUNT
    kept.append(rows)
    for i in range(COUNT):
        rows[i] = bytes(100 - BYTES_HEAD)
    told("small", [100, COUNT, COUNT])


def large():
    rows = [None] * LARGE_COUNT
    kept.append(rows)
    for i in range(LARGE_COUNT):
        rows[i] = bytes(70000 - BYTES_HEAD)
    told("large", [70000, LARGE_COUNT, LARGE_COUNT])


def plain():
    rows = [None] * COUNT
    kept.append(rows)
    for i in range(COUNT):
        rows[i] = object()
    told("plain", [16, COUNT, COUNT])


def bodies():
    """A list's body is of the domain MEM, and too large for an arena."""
    rows = [None] * LARGE_COUNT
    kept.append(rows)
    for i in range(LARGE_COUNT):
        rows[i] = [None] * 1000
    told("bodies", [8000, LARGE_COUNT, LARGE_COUNT])


def churn():
    for _ in range(COUNT):
        bytes(120 - BYTES_HEAD)
    told("churn", [120, COUNT, 0])


def halved():
    rows = [None] * COUNT
    kept.append(rows)
    for i in range(COUNT):
        rows[i] = bytes(140 - BYTES_HEAD)
    for i in range(0, COUNT, 2):
        rows[i] = None
    told("halved", [140, COUNT, COUNT // 2])


def grow(rows):
    for row in rows:
        row.extend(row)


def resized():
    """What is resized belongs to the line that did it, small or large."""
    rows = [bytearray(600 if i % 2 else 90) for i in range(COUNT)]
    kept.append(rows)
    grow(rows)
    held = sum(row.__alloc__() for row in rows)
    told("grow", [held, None, None])


def looked_up():
    """Names that are made for one look-up each: Python keeps a few."""
    for i in range(400000):
        getattr(kept, f"name_{i % 8}_of_nothing", None)


def written():
    """Texts that grow where they are, and are what was written."""
    rows = [""] * COUNT
    for i in range(COUNT):
        text = ""
        for j in range(40):
            text += f"{(i + j) % 100:02}"
        rows[i] = text
    for i in range(COUNT):
        assert rows[i] == "".join(f"{(i + j) % 100:02}" for j in range(40))
    kept.append(rows)


def in_a_thread(held):
    rows = [None] * COUNT
    kept.append(rows)
    for i in range(COUNT):
        rows[i] = bytes(160 - BYTES_HEAD)
    held.release()


def threads():
    locks = [_thread.allocate_lock() for _ in range(4)]
    for lock in locks:
        lock.acquire()
        _thread.start_new_thread(in_a_thread, (lock,))
    for lock in locks:
        lock.acquire()
    # A thread that has released its lock still holds its frame: what is to be
    # gone after this is gone when the thread is. The kernel's threads count,
    # too: from 3.12 on Python warns who forks before they have ended.
    while _thread._count() > 0 or len(os.listdir("/proc/self/task")) > 1:
        time.sleep(0.001)
    told("in_a_thread", [160, 4 * COUNT, 4 * COUNT])


def gone():
    """All that was kept goes, and Python's own count of blocks with it."""
    kept.clear()
    expected.clear()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(10):
        small()
        halved()
        resized()
    kept.clear()
    expected.clear()
    gc.collect()
    assert abs(sys.getallocatedblocks() - before) < 100


def in_a_child():
    rows = [None] * COUNT
    kept.append(rows)
    for i in range(COUNT):
        rows[i] = bytes(180 - BYTES_HEAD)


def forked():
    """The child frees what is its parent's, and keeps what is its own."""
    small()
    child = os.fork()
    if child == 0:
        kept.clear()
        gc.collect()
        in_a_child()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    told("in_a_child", [180, COUNT, COUNT])


def traced():
    """Tracemalloc puts its own allocators on top, and takes them away."""
    import tracemalloc
    before = [bytes(200 - BYTES_HEAD) for _ in range(COUNT)]
    tracemalloc.start()
    small()
    before.clear()
    tracemalloc.stop()
    kept.pop()
    told("small", [100, 0, -COUNT])
    plain()


def subinterpreter():
    source = ("import sys; sys.kept = [None] * 3000\n"
              "def inside():\n"
              "    for i in range(3000): sys.kept[i] = bytes(187)\n"
              "inside()\n")
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    new = interpreters.create()
    for name in ("run_string", "exec"):
        if hasattr(interpreters, name):
            assert not getattr(interpreters, name)(new, source)
            break
    # From 3.14 on the end of Python ends those that are still there.
    told("", [220, 3000, 3000 if sys.version_info < (3, 14) else 0])
    kept.append(new)


def waits():
    """Long enough to be looked at, with something to look from."""
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        bytes(100000)


class Last:
    def __del__(self):
        self.rows = [bytes(300) for _ in range(COUNT)]


def at_exit():
    """Freed, and made, while Python goes down."""
    import atexit
    atexit.register(small)
    kept.append(Last())
    sys.last = Last()


def main():
    for name in sys.argv[1:]:
        globals()[name]()
    print(expected)


main()
