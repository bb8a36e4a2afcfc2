# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that run side by side and are judged by how they grow.

Invariant: on one machine only one crowd runs at a time, whichever files of
tests start them: what is said of a program depends on how often it gets the
processor, and forty of them leave little for another forty.
"""
import concurrent.futures
import contextlib
import fcntl
import threading

from conftest import BUILD


_here = threading.Lock()


@contextlib.contextmanager
def crowd(count):
    """A pool of @count threads; waits until no other crowd runs. One within
    another would wait for ever: it is an error."""
    assert _here.acquire(blocking=False), "a crowd within a crowd"
    try:
        with open(BUILD / "crowd.lock", "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with concurrent.futures.ThreadPoolExecutor(count) as pool:
                yield pool
    finally:
        _here.release()
