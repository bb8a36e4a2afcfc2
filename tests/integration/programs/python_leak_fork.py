# SPDX-License-Identifier: LGPL-2.1-or-later
"""A server whose forked workers leak, and that does not; see python_leak.py.

Each worker tells of itself, the server tells of nothing.
"""
import atexit
import os

from python_leak import Load, Planted

WORKERS = 2


def plant_line():
    kept = []

    def handle(n):
        kept.append(("%012d" % n) * 30)  # leak: fork
    return Planted("fork", handle, kept)


def work(seconds, seed):
    """In the child, to its end."""
    load = Load([plant_line()])
    load.drive(seconds, seed)
    load.tell()
    os._exit(0)


def wait(children):
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * WORKERS


def plant(seconds, seed):
    """Fork; the server itself goes on without a leak."""
    children = []
    for number in range(WORKERS):
        child = os.fork()
        if child == 0:
            work(seconds, seed + number)
        children.append(child)
    atexit.register(wait, children)
    return Load()
