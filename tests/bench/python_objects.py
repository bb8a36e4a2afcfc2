#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What it costs to record Python's own objects, on work that is all lists.

Without the preload, with it, and with objects, at the default interval, take
turns in one run. Printed for each interpreter: the processor time of an
element in the least disturbed round, its ratio to that without the preload,
and the median of the ratios turn by turn.
Invariant: it measures and judges nothing.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

OURS = ("LD_PRELOAD", "SEEP_OUT", "SEEP_SAMPLE", "SEEP_SIZE", "SEEP_PYTHON")
# Elements of a list: what stays in the caches, and what does not.
SIZES = (1000, 100000)
ELEMENTS = 4000000  # of all lists of a run


def lists(size):
    """Each element is an object or two; all of them go at the end."""
    rows = [[i, i] for i in range(size)]
    pairs = [(i, str(i)) for i in range(size)]
    plain = [object() for _ in range(size)]
    tables = [{"key": i} for i in range(size)]
    return len(rows) + len(pairs) + len(plain) + len(tables)


def work(size):
    """Nanoseconds of processor time an element, in the best repeat."""
    lists(size)
    best = []
    for _ in range(ELEMENTS // size // 4):
        start = time.process_time_ns()
        count = lists(size)
        best.append((time.process_time_ns() - start) / count)
    print(min(best))


def run_once(path, how, preload, size):
    variables = {k: v for k, v in os.environ.items() if k not in OURS}
    with tempfile.TemporaryDirectory(prefix="seep-bench-") as folder:
        if how != "plain":
            variables |= {"LD_PRELOAD": preload, "SEEP_PYTHON": how,
                          "SEEP_OUT": f"{folder}/%p.%n.seep"}
        done = subprocess.run([path, "-S", __file__, "--work", str(size)],
                              env=variables, check=True, timeout=300,
                              text=True, stdout=subprocess.PIPE)
    return float(done.stdout)


def compare(path, preload, size, rounds):
    hows = ("plain", "frames", "objects")
    taken = {how: [] for how in hows}
    for _ in range(rounds):
        for how in hows:
            taken[how].append(run_once(path, how, preload, size))
    print(f"{path}, lists of {size}:")
    print(f"{'how':>8} {'ns/element':>11} {'ratio':>6} {'median':>7}")
    for how in hows:
        ratios = [one / plain for one, plain
                  in zip(taken[how], taken["plain"])]
        print(f"{how:>8} {min(taken[how]):11.1f}"
              f" {min(taken[how]) / min(taken['plain']):6.3f}"
              f" {statistics.median(ratios):7.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=int)
    parser.add_argument("--preload")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("interpreters", nargs="*")
    options = parser.parse_args()
    if options.work:
        work(options.work)
        return 0
    for path in options.interpreters or [sys.executable]:
        for size in SIZES:
            compare(path, options.preload, size, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
