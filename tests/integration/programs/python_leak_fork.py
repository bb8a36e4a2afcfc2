# SPDX-License-Identifier: LGPL-2.1-or-later
"""A server whose forked workers leak, and that does not; see python_leak.py.

Each worker tells of itself, the server tells of nothing.
"""
import os

from python_leak import Planted, drive, tell

WORKERS = 2


def plant():
    kept = []

    def handle(n):
        kept.append(("%012d" % n) * 30)  # leak: fork
    return Planted("fork", handle, kept)


def work(seconds, seed):
    """In the child, to its end."""
    planted = plant()
    drive([planted.step], seconds, seed)
    tell([planted])
    os._exit(0)


def run(seconds, seed):
    """Fork, serve, and wait for them."""
    plant()
    children = []
    for number in range(WORKERS):
        child = os.fork()
        if child == 0:
            work(seconds, seed + number)
        children.append(child)
    drive([], seconds, seed)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * WORKERS
    return []
