#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Holds "a leak of more than X would have shown" against simulated processes.

Each process has call sites that give all back, and private memory that wanders.
What may hide in it at most, X, is what is printed of its run without a leak;
then it runs again with a leak of a share of X, among blocks that come and go or
a full cache, with the work, by the clock or in bursts. Prints how many of these
are told "no leak", by how they leak, and how many of those beside an X below
the leak. Exit 1 if of even leaks of X more than one of twenty is, or if most of
those of a third are found, so that X is too large; in short runs the bounds are
loose.
"""
import argparse
import collections
import math
import os
import secrets
import sys

import numpy

import mixed
import recorded
import sites
import world
from world import NEVER, Site, between

MIB = 2 ** 20
SHARES = (0.33, 0.5, 0.75, 1, 1.5)
MANY_RUNS = 200
MEANS = (16384, 65536, 524288)  # of sampling
LEAKS = ("by_request", "by_clock", "in_bursts")
OTHERS = ("steady", "steady", "batch", "garbage_collector")
MOST_BLOCKS = 30000


class Process:
    """One process; .told() is its run with so much of a leak."""

    def __init__(self, seed, number):
        random = self.random = numpy.random.default_rng([seed, number])
        self.seed = seed, number
        self.sampled = number % 4 > 0
        self.load = world.Load(random, random.choice(
            ["constant", "periods", "wandering"]))
        self.mean = int(random.choice(MEANS)) if self.sampled else 0
        self.size = between(random, 64, self.mean / 2 or MIB / 20)
        self.spread = random.choice([0, 0.5, 1])
        self.leaks = str(random.choice(LEAKS))
        self.beside = str(random.choice(["nothing", "churn", "first_out"]))
        steps = random.normal(size=recorded.BUCKETS) / recorded.BUCKETS ** 0.5
        self.private = (between(random, 20, 2000) + between(random, 0.02, 10)
                        * numpy.cumsum(steps) + between(random, 0.01, 1)
                        * random.normal(size=recorded.BUCKETS)) * MIB

    def births(self, random, count):
        if self.leaks == "in_bursts":
            return mixed.in_bursts(mixed.Place(random, None, count), count)
        birth = numpy.sort(random.random(count))
        return birth if self.leaks == "by_clock" else self.load.time(birth)

    def leaking(self, random, bytes_):
        count = min(math.ceil(bytes_ / self.size), MOST_BLOCKS)
        lost = self.births(random, count) if count else numpy.zeros(0)
        birth, death = lost, numpy.full(len(lost), NEVER)
        if self.beside != "nothing":
            more = int(between(random, 100, 5000))
            other = self.load.births(random, more)
            place = mixed.Place(random, None, more, max(2, int(
                more * between(random, 0.002, 0.1))))
            gone = (mixed.first_out(place, other)
                    if self.beside == "first_out" else
                    other + random.exponential(0.01, len(other)))
            birth, death = (numpy.append(lost, other),
                            numpy.append(death, gone))
        size = self.size * numpy.exp(
            self.spread * random.normal(size=len(birth))
            - self.spread ** 2 / 2)
        if len(lost):
            size[:len(lost)] *= bytes_ / size[:len(lost)].sum()
        seen, weight, variance = mixed.sampled(
            random, numpy.maximum(numpy.round(size), 1),
            self.mean)
        grown = numpy.cumsum(numpy.histogram(
            lost, numpy.linspace(0, 1, recorded.BUCKETS + 1),
            weights=size[:len(lost)])[0])
        return Site("leak", self.load, birth[seen], death[seen], weight,
                    variance, True), grown

    def told(self, bytes_):
        random = numpy.random.default_rng([*self.seed, 1])
        site, grown = self.leaking(random, bytes_)
        rows = [recorded.observe_in_run(site, self.load)]
        for i, kind in enumerate(OTHERS):
            other, _ = sites.make(kind, (*self.seed, i), self.sampled,
                                  load=self.load)
            rows.append(recorded.observe_in_run(other, self.load))
        return {
            "clock": recorded.clock(self.load, "bytes", random),
            "sites": rows, "private": (self.private + grown).tolist(),
            "sample_bytes": self.mean,
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("replay", help="the program growth_replay")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(
        os.environ.get("SEEP_SIMULATE_SEED", secrets.randbelow(2 ** 32))))
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    quiet, hidden = [], []
    processes = [Process(options.seed, i) for i in range(options.runs)]
    for process, row in zip(processes, sites.judged(
            options.replay, (one.told(0) for one in processes))):
        if row["verdict"]["reassures"]:
            quiet.append(process)
            hidden.append(row["verdict"]["hidden"])
    spread = numpy.percentile(hidden, [10, 50, 90]) / MIB
    print(f"{len(quiet)} of {options.runs} without a leak are told none; "
          f"X over the run, MiB: {spread}")
    even = {}
    for share in SHARES:
        rows = [row["verdict"] for row in sites.judged(
            options.replay, (one.told(share * most)
                             for one, most in zip(quiet, hidden)))]
        none = [(one, row, most) for one, row, most in zip(
            quiet, rows, hidden) if row["reassures"]]
        false = sum(row["hidden"] < share * most for _, row, most in none)
        even[share] = (sum(one.leaks != "in_bursts" for one, _, _ in none)
                       / max(1, sum(one.leaks != "in_bursts"
                                    for one in quiet)))
        print(f"{share:5} of X: no leak {len(none) / len(quiet):6.1%}, "
              f"beside a smaller X {false / len(quiet):6.1%}; "
              + ", ".join(
                  f"{name} {sum(one.leaks == name for one, _, _ in none)} of "
                  f"{sum(one.leaks == name for one in quiet)}"
                  for name in LEAKS) + "; "
              + ", ".join(f"{n} {name}" for name, n in collections.Counter(
                  row["class"] for row in rows).most_common()), flush=True)
        if share == 1 and options.verbose:
            for one, row, most in none:
                print(f"   {one.mean:6} "
                      f"{one.leaks:10} {one.beside:9} size "
                      f"{one.size / MIB:7.4f} X {most / MIB:6.2f} told "
                      f"{row['hidden'] / MIB:6.2f} {row['class']}: "
                      f"{row['reason']}")
    most, least = (0.06, 0.4) if options.runs >= MANY_RUNS else (0.2, 0.25)
    print(f"even leaks told none: {even[1]:.1%} of X, "
          f"{even[SHARES[0]]:.1%} of a third of it")
    return 1 if even[1] > most or even[SHARES[0]] < least else 0


if __name__ == "__main__":
    sys.exit(main())
