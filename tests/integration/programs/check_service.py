# SPDX-License-Identifier: LGPL-2.1-or-later
"""A service that warms up, then serves requests, and says so.

    check_service.py SECONDS KEPT_BYTES

For a quarter of its time it fills a cache of 24 MiB; then it marks that, and
each request keeps so many bytes and is a unit of work. BEGAN_S is when it was
started, by the monotonic clock.

Invariant: requests come at a steady pace, whatever they keep, and for longer
than all that was before them, however slowly it started.
"""
import os
import sys
import time

import seep

WARM_BLOCKS = 96
BLOCK_BYTES = 256 << 10
PAUSE_S = .01

cache, kept = [], []


def warm_up(seconds):
    """Fill what is of use later."""
    with seep.phase("warm-up"):
        for _ in range(WARM_BLOCKS):
            cache.append(bytearray(BLOCK_BYTES))
            time.sleep(seconds / WARM_BLOCKS)


def answer(kept_bytes):
    """One request."""
    for _ in range(10):
        bytearray(2048)
    if kept_bytes > 0:
        kept.append(bytearray(kept_bytes))
    seep.progress(1)


def main(seconds, kept_bytes):
    """Warm up, then serve."""
    warm_up(seconds / 4)
    then = time.monotonic()
    before_s = then - float(os.environ["BEGAN_S"])
    end = then + max(seconds * 3 / 4, 1.5 * before_s)
    while then < end:
        answer(kept_bytes)
        then += PAUSE_S
        time.sleep(max(0, then - time.monotonic()))


main(float(sys.argv[1]), int(sys.argv[2]))
