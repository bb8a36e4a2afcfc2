# SPDX-License-Identifier: LGPL-2.1-or-later
"""Processes that come and go, whose truth is known: how often is what a line
holds said to grow with their age?

    generations.py AGE_REPLAY [--runs N] [--seed N]

A process keeps so many blocks that were seen, at ages by its kind; the load of
each differs from that of the others by a tenth (standard deviation), and the
number by chance. Five lines share the risk of one. Prints for each kind and
number of processes and blocks how often, in percent, it is a leak, may be one,
and is said to flatten; ends with 1 where a bound is broken. SEEP_TEST_LONG=1
takes 100 runs of each and not 40.
"""
import argparse
import os
import subprocess
import sys

import numpy

LONG = os.environ.get("SEEP_TEST_LONG", "") not in ("", "0")
LINES = 5
LOAD = 0.1
COUNTS = (3, 5, 8)
BLOCKS = (60, 200, 1000)
BLOCK_BYTES = 20000
LIFE_S = 5
PARTS = ((2 / 6, 3 / 6), (3 / 6, 4 / 6), (4 / 6, 5 / 6), (10 / 12, 11 / 12),
         (11 / 12, 1))


def logarithm(share):
    """A cache whose keys come by Zipf's law: 31 times rarer at the end."""
    return (31 ** share - 1) / 30


def mixed(share):
    """Half of it as the process begins, half as a leak."""
    return numpy.where(share < .5, share / 10, 2 * share - 1)


def exponential(share):
    """A cache of keys that come by chance, full by 95 % at the end."""
    return -numpy.log(1 - share * (1 - numpy.exp(-3))) / 3


# By the share of the blocks, the age at which it was kept.
KINDS = {
    "leak": lambda share: share,
    "leak from 0.4 on": lambda share: .4 + .6 * share,
    "leak and start": mixed,
    "start": lambda share: share / 20,
    "cache, Zipf": logarithm,
    "cache, exponential": exponential,
    "cache, root of age": lambda share: share ** 2,
    "cache, full at 0.6": lambda share: .6 * share,
    "cache, full at 0.9": lambda share: .9 * share,
    "turnover": None,
}
# {kind: (leak at most, leak at least of the most processes and blocks)}, %
BOUNDS = {
    "leak": (100, 95),
    "leak from 0.4 on": (100, 95),
    "leak and start": (100, 80),
    "start": (1, 0),
    "cache, Zipf": (2, 0),
    "cache, exponential": (1, 0),
    "cache, root of age": (10, 0),
    "cache, full at 0.6": (1, 0),
    "cache, full at 0.9": (5, 0),
    "turnover": (2, 0),
}


def levels(kind, blocks, random):
    """What one process holds, as means of parts of its life."""
    rate = max(0, random.normal(1, LOAD))
    count = random.poisson(blocks * rate)
    if KINDS[kind] is None:  # blocks that live for a third of the life
        born = random.uniform(-1 / 3, 1, int(count * 4 / 3))
        died = born + random.exponential(1 / 3, len(born))
    else:
        born = KINDS[kind](random.uniform(0, 1, count))
        died = numpy.full(len(born), 2.)
    return [BLOCK_BYTES * numpy.clip(
        (numpy.minimum(died, to) - numpy.maximum(born, start)) / (to - start),
        0, None).sum() for start, to in PARTS]


def case(kind, count, blocks, random):
    """One population, as age_replay reads it."""
    lines = [f"{count} {LINES} 1"]
    for _ in range(count):
        lines.append(" ".join(f"{value:.9g}" for value in
                              [LIFE_S] + levels(kind, blocks, random)))
    return "\n".join(lines)


def shares(replay, kind, count, blocks, runs, random):
    """(leak, may leak, flattens), in percent."""
    text = "\n".join(case(kind, count, blocks, random) for _ in range(runs))
    done = subprocess.run([replay], input=text, capture_output=True,
                          encoding="ascii", check=True)
    found = [line.split() for line in done.stdout.splitlines()]
    assert len(found) == runs
    return tuple(100 * sum(is_one(row) for row in found) / runs for is_one in (
        lambda row: row[0] == "grows", lambda row: row[0] == "may-grow",
        lambda row: row[1] == "1"))


def main():
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("replay")
    parser.add_argument("--runs", type=int, default=100 if LONG else 40)
    parser.add_argument("--seed", type=int, default=20266)
    options = parser.parse_args()
    random = numpy.random.default_rng(options.seed)
    columns = [(count, blocks) for count in COUNTS for blocks in BLOCKS]
    print("kind; of processes x blocks:",
          *(f"{count}x{blocks}" for count, blocks in columns))
    broken = []
    for kind, (most, least) in BOUNDS.items():
        found = [shares(options.replay, kind, *column, options.runs, random)
                 for column in columns]
        print(f"{kind:18}", *("/".join(f"{share:.0f}" for share in row)
                              for row in found), flush=True)
        # Chance: three standard errors of the bound.
        slack = 300 * (max(most, 1) / 100 / options.runs) ** .5
        if (max(row[0] for row in found) > most + slack * (most < 100)
                or found[-1][0] < least):
            broken.append(kind)
    if broken:
        print("out of their bounds:", ", ".join(broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
