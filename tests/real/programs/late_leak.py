# SPDX-License-Identifier: LGPL-2.1-or-later
"""Works for a while and keeps nothing, then keeps so many bytes a second."""
import argparse
import time

from truth import Work

parser = argparse.ArgumentParser()
parser.add_argument("--work", type=float, default=33)
parser.add_argument("--leak", type=float, default=21)
parser.add_argument("--rate", type=float, default=10 << 20)
arguments = parser.parse_args()
BLOCK_BYTES = 128 << 10
kept = []


def work_on():
    """Allocates and frees."""
    return sum(len(bytearray(BLOCK_BYTES)) for _ in range(10))


def keep_reply():
    """What is not given back."""
    kept.append(bytearray(BLOCK_BYTES))


def main():
    """Both, one after the other."""
    for _ in Work(arguments.work):
        work_on()
        time.sleep(0.02)
    leaks = Work(arguments.leak)
    for _ in leaks:
        due = (time.monotonic() - leaks.start) * arguments.rate
        while len(kept) * BLOCK_BYTES < due:
            keep_reply()
        time.sleep(0.02)
    leaks.tell(len(kept) * BLOCK_BYTES)


main()
