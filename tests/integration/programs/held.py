# SPDX-License-Identifier: LGPL-2.1-or-later
"""A service with a cache, whose bound is an environment variable, as that of
oneDNN's primitives is: for `seep diff`.

    CACHE_CAPACITY=N held.py SECONDS

The keys come in an order of their own, several each hundredth of a second; the
cache is full early, and gives back the oldest for a new one. Beside it is a
working set that comes and goes, which no run has like another.
"""
import collections
import os
import random
import sys
import time

BLOCK_BYTES = 100000
KEYS = 2000
PER_TICK = 4
TICK_S = 0.01

CACHE = collections.OrderedDict()


def create(capacity):
    """An entry for a key that is not there."""
    key = random.randrange(KEYS)
    if key not in CACHE:
        CACHE[key] = bytearray(BLOCK_BYTES)
        if len(CACHE) > capacity:
            CACHE.popitem(last=False)


def answer():
    """What a request needs for a moment."""
    return [bytearray(random.randrange(1, 50000)) for _ in range(20)]


def main(seconds):
    """Requests at a steady pace."""
    capacity = int(os.environ["CACHE_CAPACITY"])
    start = time.monotonic()
    held = collections.deque(maxlen=4)
    for tick in range(int(seconds / TICK_S)):
        time.sleep(max(0, start + tick * TICK_S - time.monotonic()))
        for _ in range(PER_TICK):
            create(capacity)
        held.append(answer())


if __name__ == "__main__":
    main(float(sys.argv[1]))
