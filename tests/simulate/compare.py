#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Holds the reader's verdicts against a second implementation of the test.

Simulates fresh call sites of every kind, clean and leaking, exact and sampled,
under every clock, sites at the edges between classes, and whole runs; compares
each class, and each number within 1e-9. The seed is drawn and printed; --seed
or SEEP_SIMULATE_SEED repeats a run, SEEP_TEST_LONG=1 takes twice as many sites.
A site that differs because a decision hangs on the last digits is counted and
left out, at most one in 1000. Prints one line a difference; exit 0 if there is
none.
"""
import argparse
import itertools
import math
import os
import secrets
import sys

import numpy

import cohort_flow
import edges
import recorded
import run_rules
import service
import sites
import world

TOLERANCE = 1e-9
LONG = os.environ.get("SEEP_TEST_LONG", "") not in ("", "0")
ALL_RUNS = 6  # three clocks, exact and sampled
# Down to 1/16! and below: only their ratio means something.
PROBABILITIES = (".p", ".immortal_p")


def differences(path, got, want):
    """Where a row differs from what it should be."""
    if isinstance(want, dict):
        for key in want:
            yield from differences(f"{path}.{key}", got.get(key), want[key])
    elif isinstance(want, list):
        for i, (one, other) in enumerate(itertools.zip_longest(got, want)):
            yield from differences(f"{path}[{i}]", one, other)
    elif isinstance(want, (bool, str)) or got is None:
        if got != want:
            yield f"{path}: {got} instead of {want}"
    else:
        floor = 0 if path.endswith(PROBABILITIES) else TOLERANCE
        if not math.isclose(got, want, rel_tol=TOLERANCE, abs_tol=floor):
            yield f"{path}: {got!r} instead of {want!r}"


def simulate(seed, count):
    """Kinds take turns; all else is drawn."""
    clocks = (None, None, *recorded.CLOCKS)
    for i in range(count):
        kind = sites.KINDS[i % len(sites.KINDS)]
        shape = "bursts" if i % 10 == 9 else None
        site, random = sites.make(kind, (seed, i), i // len(sites.KINDS) % 2,
                                  shape=shape)
        told = recorded.observe(site, clocks[random.integers(len(clocks))],
                                random)
        told["id"] = f"{kind} {i}"
        yield told


RUN_KEYS = ("index", "class", "rate", "low", "high", "p", "confidence",
            "tested", "growing_block", "mature_count", "effective_count")


def compare_runs(replay, seed, count):
    """How many of @count runs differ: every clock, exact and sampled, and
    every third under a load that sets records."""
    wrong = 0
    for i in range(count):
        run = service.simulate(seed, i, 40, recorded.CLOCKS[i % 3],
                               bool(i // 3 % 2), None if i % 3 else "rising")
        if i % 2:  # sites in whose blocks a leak may hide
            load = world.Load(numpy.random.default_rng([seed, i]))
            run.told["clock"] = recorded.clock(
                load, recorded.CLOCKS[i % 3], numpy.random.default_rng(seed))
            run.told["sites"] = [recorded.observe_in_run(
                sites.make(kind, (seed, i), i // 3 % 2)[0], load)
                for kind in sites.MIXED + sites.MIXED_CLEAN]
        row, = sites.run(replay, [sites.written(run.told)])
        rows, is_close = run_rules.judge(run.told)
        want = {"sites": [{key: row[key] for key in RUN_KEYS}
                          for row in rows]}
        found = list(differences(f"run {i}", row, want))
        wrong += bool(found) and not is_close
        print("\n".join(found[:5]), end="\n" if found else "", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("replay", help="the program growth_replay")
    parser.add_argument("--sites", type=int, default=2000 if LONG else 1000)
    parser.add_argument("--seed", type=int, default=int(
        os.environ.get("SEEP_SIMULATE_SEED", secrets.randbelow(2 ** 32))))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    told, kept = itertools.tee(itertools.chain(
        simulate(options.seed, options.sites),
        edges.simulate(options.seed, options.sites // 4)))
    rows = sites.judged(options.replay, told)
    count = wrong = close = 0
    for site, row in zip(kept, rows, strict=True):
        want, is_close = cohort_flow.judge(site)
        for inside in ("rising", "contradicts", "live_grows"):
            want.pop(inside, None)
        want["id"] = site["id"]
        found = list(differences(site["id"], row, want))
        count += 1
        if found and is_close:
            close += 1
        elif found:
            wrong += 1
            print("\n".join(found), flush=True)
    print(f"{count} sites, {wrong} differ, {close} left out")
    runs = max(options.sites // 200, ALL_RUNS)
    wrong_runs = compare_runs(options.replay, options.seed, runs)
    print(f"{runs} runs, {wrong_runs} differ")
    return 1 if wrong + wrong_runs or close > max(1, count / 1000) else 0


if __name__ == "__main__":
    sys.exit(main())
