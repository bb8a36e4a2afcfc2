# SPDX-License-Identifier: LGPL-2.1-or-later
"""Processes of one command that come and go, as a server's workers do that
end after so many requests: each lives as long as the others.

    generations.py leak|cache|quiet SECONDS COUNT

Two at a time. One that leaks keeps a block of each request; a cache keeps one
of each new key, and new keys come ever less often, at the same age in each;
a quiet one has what it loaded as it began. Prints what was kept, as JSON.
"""
import json
import math
import os
import sys
import time

BLOCK_BYTES = 20000
PER_SECOND = 100
LOADED = 300  # blocks
CACHED = 400  # the most
FILLED = 0.15  # of a life, until 63 % of the cache is full
AT_ONCE = 2

KEPT = []


def load():
    """What each of them needs, once."""
    for _ in range(LOADED):
        KEPT.append(bytearray(BLOCK_BYTES))


def keep():
    """The line that holds what it allocates."""
    KEPT.append(bytearray(BLOCK_BYTES))


def remember():
    """A block for a new key."""
    KEPT.append(bytearray(BLOCK_BYTES))


def serve(what, seconds):
    """So many requests, at a steady pace."""
    count = int(seconds * PER_SECOND)
    time.sleep(0.2)  # by then it is recorded
    start = time.monotonic()
    load()
    cached = 0
    for turn in range(count):
        time.sleep(max(0, start + turn / PER_SECOND - time.monotonic()))
        _answer = [bytearray(BLOCK_BYTES // 2) for _ in range(3)]
        if what == "leak":
            keep()
        while what == "cache" and cached < CACHED * (
                1 - math.exp(-turn / count / FILLED)):
            remember()
            cached += 1
    return len(KEPT) * BLOCK_BYTES


def child(what, seconds, write_end):
    """One of them, from its beginning to its end."""
    kept = serve(what, seconds)
    os.write(write_end, f"{kept}\n".encode())
    sys.exit(0)


def main(what, seconds, count):
    """Run them, and tell what they kept."""
    read_end, write_end = os.pipe()
    alive = 0
    for _ in range(int(count)):
        if alive == AT_ONCE:
            os.wait()
            alive -= 1
        if os.fork() == 0:
            child(what, float(seconds), write_end)
        alive += 1
    while alive:
        os.wait()
        alive -= 1
    os.close(write_end)
    with os.fdopen(read_end, encoding="ascii") as told:
        print(json.dumps([int(line) for line in told]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
