# SPDX-License-Identifier: LGPL-2.1-or-later
"""A worker that keeps every reply, for so many seconds."""
import sys
import time

kept = []
recent = {}


def keep_reply():
    """The leak."""
    kept.append(bytearray(60000))


def handle(number):
    """A request: a reply that is kept, a cache that is full, garbage."""
    keep_reply()
    recent[number % 8] = bytearray(50000)
    return [bytearray(30000) for _ in range(4)]


def main(seconds):
    """Requests until the time is over."""
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        handle(number)
        number += 1
        time.sleep(0.01)


if __name__ == "__main__":
    main(float(sys.argv[1]))
