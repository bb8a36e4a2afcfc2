# SPDX-License-Identifier: LGPL-2.1-or-later
"""Services in Python that leak, or only look as if they did.

    verdict_service.py KIND SECONDS SEED

Invariant: what is kept depends on the arguments only, and is kept to the end
of the process; a tick that is late is made up for.
"""
import collections
import functools
import random
import sys
import time

TICKS_PER_SECOND = 100
REQUESTS_PER_TICK = 10


def serve(number):
    """What every request does: nothing of it stays."""
    return len(str({"id": number, "body": "x" * 500}).encode())


def leak(_ticks):
    """Every reply is kept."""
    kept = []

    def handle(number):
        kept.append({"id": number, "body": ("%08d" % number) * 100})
    return handle


def cache(ticks):
    """A bounded cache, full after a third of the run; then it evicts."""
    @functools.lru_cache(maxsize=ticks * REQUESTS_PER_TICK // 3)
    def look_up(key):
        return ("%08d" % key) * 100
    return look_up


def queue(ticks):
    """Each reply is in flight for a twentieth of the run."""
    flying = collections.deque(maxlen=ticks * REQUESTS_PER_TICK // 20)

    def handle(number):
        flying.append({"id": number, "body": ("%08d" % number) * 100})
    return handle


def main(kind, seconds, seed):
    """Serve to the end of the last tick, and return what holds the rest."""
    ticks = int(seconds) * TICKS_PER_SECOND
    handle = {"leak": leak, "cache": cache, "queue": queue}[kind](ticks)
    draw = random.Random(int(seed))
    start = time.monotonic()
    for tick in range(ticks):
        time.sleep(max(0, start + tick / TICKS_PER_SECOND - time.monotonic()))
        for _ in range(REQUESTS_PER_TICK):
            serve(draw.randrange(1 << 40))
            handle(draw.randrange(1 << 40))
    time.sleep(max(0, start + ticks / TICKS_PER_SECOND - time.monotonic()))
    return handle


kept_to_the_end = main(*sys.argv[1:])
