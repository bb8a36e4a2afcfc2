#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What it costs to record Python's own objects, at the default interval.

Two kinds of work are told apart: what programs do with lists, and the bare
making of objects, where every call of Python's allocator shows. Processes
without the preload, with it, and with objects take turns of some hundredths of
a second, so that what else the machine does meets all of them; they begin anew
a few times, since where memory lies is chance too. Printed for each work: the
processor time of an element without the preload, the lower quartile of all
turns, and the median of the ratios to it turn by turn.
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
# Elements of a list, what stays in the caches and what does not, and turns.
SIZES = {1000: 15, 100000: 8}
SHORT = [(1000, 5)]
ELEMENTS = 200000  # of a turn at least: it begins with cold caches


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
    """Does what it is told to, once to begin with, and answers with the
    nanoseconds of processor time an element."""
    count = max(1, ELEMENTS // size)
    named = {function.__name__: function
             for functions in WORKS.values() for function in functions}
    for line in sys.stdin:
        function = named[line.strip()]
        start = time.process_time_ns()
        for _ in range(count):
            function(size)
        print((time.process_time_ns() - start) / size / count, flush=True)


def start(path, how, preload, size, folder):
    variables = {k: v for k, v in os.environ.items() if k not in OURS}
    # Whether the heap is given back, and faulted in again, is chance.
    variables["MALLOC_TRIM_THRESHOLD_"] = str(1 << 30)
    if how != "plain":
        variables |= {"LD_PRELOAD": preload, "SEEP_PYTHON": how,
                      "SEEP_OUT": f"{folder}/%p.%n.seep"}
    return subprocess.Popen([path, "-S", __file__, "--work", str(size)],
                            env=variables, text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE)


def turn(worker, name):
    worker.stdin.write(name + "\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def take_turns(workers, turns, taken):
    """Adds to @taken: {work: {how: [nanoseconds of a turn, ...]}}."""
    for name, row in taken.items():
        for worker in workers.values():
            turn(worker, name)
        for i in range(turns):
            for how in HOWS[i % 3:] + HOWS[:i % 3]:
                row[how].append(turn(workers[how], name))


def run_once(path, preload, size, turns, taken):
    with tempfile.TemporaryDirectory(prefix="seep-bench-") as folder:
        workers = {how: start(path, how, preload, size, folder)
                   for how in HOWS}
        take_turns(workers, turns, taken)
        for worker in workers.values():
            worker.communicate()
            assert worker.returncode == 0


def tell(name, row):
    ratios = [statistics.median(one / plain for one, plain
                                in zip(row[how], row["plain"]))
              for how in HOWS[1:]]
    nanoseconds = statistics.quantiles(row["plain"], n=4)[0]
    print(f"  {name:8} {nanoseconds:9.1f}",
          *(f"{ratio:8.3f}" for ratio in ratios), flush=True)
    return ratios


def compare(path, preload, size, turns, rounds):
    taken = {function.__name__: {how: [] for how in HOWS}
             for functions in WORKS.values() for function in functions}
    for _ in range(rounds):
        run_once(path, preload, size, turns, taken)
    print(f"{path}, lists of {size}:\n  {'':8} {'ns plain':>9}"
          + "".join(f" {how:>8}" for how in HOWS[1:]))
    for kind, functions in WORKS.items():
        print(f" {kind}")
        ratios = [tell(each.__name__, taken[each.__name__])
                  for each in functions]
        print(f"  {'mean':8} {'':9}", *(f"{statistics.mean(column):8.3f}"
                                         for column in zip(*ratios)),
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=int)
    parser.add_argument("--preload")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--short", action="store_true",
                        help="short lists alone, and five turns")
    parser.add_argument("interpreters", nargs="*")
    options = parser.parse_args()
    if options.work:
        work(options.work)
        return 0
    for path in options.interpreters or [sys.executable]:
        for size, turns in SHORT if options.short else SIZES.items():
            compare(path, options.preload, size, turns, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
