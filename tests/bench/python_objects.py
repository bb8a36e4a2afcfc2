#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What it costs to record Python's own objects, at the default interval.

Two kinds of work are told apart: what programs do with lists, and the bare
making of objects, where every call of Python's allocator shows. Without the
preload, with it, and with objects, take turns in one run. Printed for each
work: the processor time of an element in the least disturbed turn, its ratio
to that without the preload, and the median of the ratios turn by turn.
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
HOWS = ("plain", "frames", "objects")
# Elements of a list: what stays in the caches, and what does not.
SIZES = (1000, 100000)
ELEMENTS = 1000000  # of all lists of a work in a run


def records(size):
    """Built, sorted, sliced, and nested: what programs do with lists."""
    rows = []
    for i in range(size):
        rows.append([i * 7919 % size, f"name {i}"])
    rows.sort()
    front, back = rows[:size // 2], rows[size // 2:]
    pairs = list(zip(front, back))
    return [one[0] + two[0] for one, two in pairs if one[1] < two[1]]


def texts(size):
    """Words are split off, counted, and joined again."""
    words = ("the quick brown fox jumps over " * (size // 6 + 1)).split()
    places = {}
    for place, word in enumerate(words[:size]):
        places.setdefault(word, []).append(place)
    longest = sorted(places.items(), key=lambda item: -len(item[1]))
    return " ".join(f"{word}:{len(held)}" for word, held in longest)


def tables(size):
    """Rows, turned into columns and back by comprehensions."""
    rows = [[i, i * 2, i * 3, i * 4] for i in range(size // 4)]
    columns = [list(column) for column in zip(*rows)]
    sums = [sum(column) for column in columns]
    scaled = [[value * 100 // total for value in column]
              for column, total in zip(columns, sums) if total]
    return [max(row) for row in zip(*scaled)]


def tuples(size):
    """A tuple an element, and an int."""
    made = []
    for i in range(size):
        made.append((i,))
    return made


def objects(size):
    """An object an element, and an int."""
    return [object() for _ in range(size)]


def bodies(size):
    """Too large for an arena: malloc gives it."""
    return [bytes(600) for _ in range(size)]


def mixed(size):
    """Two or three objects an element, which all go at the end."""
    rows = [[i, i] for i in range(size)]
    pairs = [(i, str(i)) for i in range(size)]
    plain = [object() for _ in range(size)]
    keyed = [{"key": i} for i in range(size)]
    return len(rows) + len(pairs) + len(plain) + len(keyed)


def churn(size):
    """Nothing but an object and an int, made and freed."""
    for _ in range(size):
        object()


WORKS = {"what programs do": (records, texts, tables),
         "making objects": (tuples, objects, bodies, mixed, churn)}


def work(size):
    """Nanoseconds of processor time an element, of each function. The lower
    quartile of the repeats: the clock of a shared machine errs to both sides.
    """
    for functions in WORKS.values():
        for function in functions:
            function(size)
            taken = []
            for _ in range(max(5, ELEMENTS // size)):
                start = time.process_time_ns()
                function(size)
                taken.append((time.process_time_ns() - start) / size)
            print(statistics.quantiles(taken, n=4)[0])


def run_once(path, how, preload, size):
    variables = {k: v for k, v in os.environ.items() if k not in OURS}
    with tempfile.TemporaryDirectory(prefix="seep-bench-") as folder:
        if how != "plain":
            variables |= {"LD_PRELOAD": preload, "SEEP_PYTHON": how,
                          "SEEP_OUT": f"{folder}/%p.%n.seep"}
        done = subprocess.run([path, "-S", __file__, "--work", str(size)],
                              env=variables, check=True, timeout=300,
                              text=True, stdout=subprocess.PIPE)
    return [float(line) for line in done.stdout.split()]


def tell(name, taken):
    """@taken: of each way, nanoseconds in the order of the rounds."""
    cells = [f"{min(taken['plain']):8.1f}"]
    for how in HOWS[1:]:
        ratios = [one / plain for one, plain
                  in zip(taken[how], taken["plain"])]
        cells.append(f"{min(taken[how]):9.1f}"
                     f" {min(taken[how]) / min(taken['plain']):6.3f}"
                     f" {statistics.median(ratios):7.3f}")
    print(f"  {name:8}", *cells, flush=True)


def compare(path, preload, size, rounds):
    taken = {how: [] for how in HOWS}
    for _ in range(rounds):
        for how in HOWS:
            taken[how].append(run_once(path, how, preload, size))
    print(f"{path}, lists of {size}, ns an element:\n  {'':8} {'plain':>8}"
          + "".join(f" {how:>9} {'ratio':>6} {'median':>7}"
                    for how in HOWS[1:]))
    column = 0
    for kind, functions in WORKS.items():
        print(f" {kind}")
        for function in functions:
            tell(function.__name__, {how: [run[column] for run in taken[how]]
                                     for how in HOWS})
            column += 1
        first = column - len(functions)
        tell("all", {how: [sum(run[first:column]) for run in taken[how]]
                     for how in HOWS})


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
