# SPDX-License-Identifier: LGPL-2.1-or-later
"""Keeps memory until its limit, and dies of it as servers do."""
import argparse
import os
import resource
import signal
import time

parser = argparse.ArgumentParser()
parser.add_argument("--limit", type=int, default=600 << 20)
parser.add_argument("--rate", type=float, default=12 << 20)
arguments = parser.parse_args()
BLOCK_BYTES = 256 << 10
kept = []


def keep_answer():
    """What is not given back."""
    kept.append(bytearray(BLOCK_BYTES))


def main():
    """To the end, which is not its own."""
    resource.setrlimit(resource.RLIMIT_AS, (arguments.limit, arguments.limit))
    print('{"kept_bytes": %d, "limit_bytes": %d}'
          % (arguments.limit, arguments.limit), flush=True)
    start = time.monotonic()
    try:
        while True:
            while len(kept) * BLOCK_BYTES < arguments.rate * (
                    time.monotonic() - start):
                keep_answer()
            time.sleep(0.02)
    except MemoryError:
        os.kill(os.getpid(), signal.SIGKILL)


main()
