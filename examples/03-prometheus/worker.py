# SPDX-License-Identifier: LGPL-2.1-or-later
"""A worker that keeps what it should not, one that fills a cache, or neither.

Invariant: it works in steps of 10 ms, so that its growth is known: KEPT_BYTES
a step of a leak; a cache grows as long as there are keys that are new.
"""
import argparse
import os
import time

KEPT_BYTES = 20000
CACHED_BYTES = 64 << 10
CACHED_KEYS = 500
STEP_S = 0.01

kept = []
cache = {}


def answer(number):
    """Memory that comes and goes with a request."""
    return [bytearray(CACHED_BYTES) for _ in range(number % 4)]


def leak(number):
    kept.append(bytearray(KEPT_BYTES))  # the leak
    return answer(number)


def warm_up(number):
    key = number * 7919 % CACHED_KEYS
    if key not in cache:
        cache[key] = bytearray(CACHED_BYTES)
    return answer(number)


STEPS = {'leak': leak, 'warm-up': warm_up, 'steady': answer}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('what', choices=STEPS)
    parser.add_argument('--seconds', type=float, default=1e9)
    arguments = parser.parse_args()
    step = STEPS[arguments.what]
    end = time.monotonic() + arguments.seconds
    number = 0
    print(os.getpid(), arguments.what, flush=True)
    while time.monotonic() < end:
        step(number)
        number += 1
        time.sleep(STEP_S)


if __name__ == '__main__':
    main()
