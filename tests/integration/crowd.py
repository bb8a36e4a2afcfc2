# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that run side by side and are judged by how they grow.

Invariant: on one machine one large crowd runs at a time, or two small ones,
whichever files of tests start them: what is said of a program depends on how
often it gets the processor, and forty of them leave little for another forty.
"""
import concurrent.futures
import contextlib
import fcntl
import threading
import time

from conftest import BUILD


SMALL = 12  # programs of a crowd that leaves room for another
LANES = 2
_here = threading.Lock()


@contextlib.contextmanager
def room(count):
    """A lane for a small crowd, all of them for a large one. Who waits for
    lanes holds the door: a large crowd is not passed by small ones, and no two
    wait for each other."""
    with contextlib.ExitStack() as stack:
        door, *lanes = (stack.enter_context(
            open(BUILD / f"crowd.{name}.lock", "wb"))
            for name in ("door", *range(LANES)))
        fcntl.flock(door, fcntl.LOCK_EX)
        wanted = LANES if count > SMALL else 1
        taken = set()
        while len(taken) < wanted:
            for lane in set(lanes) - taken:
                try:
                    fcntl.flock(lane, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                taken.add(lane)
                if len(taken) == wanted:
                    break
            else:
                time.sleep(0.1)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield


@contextlib.contextmanager
def crowd(count):
    """A pool of @count threads; waits until there is room for it. One within
    another would wait for ever: it is an error."""
    assert _here.acquire(blocking=False), "a crowd within a crowd"
    try:
        with room(count), \
                concurrent.futures.ThreadPoolExecutor(count) as pool:
            yield pool
    finally:
        _here.release()
