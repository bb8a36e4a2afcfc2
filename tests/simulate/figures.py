#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""How often the reader is right: simulated sites through growth_replay.

Prints tables: false alarms by clean kind, power by leaking kind and by mature
survivors, coverage and error of the interval, rank of the leak in whole runs.
The short form takes half a minute and has loose bounds (exit 1 outside of
them); --long has those of the design. The seed is drawn and printed.
"""
import argparse
import collections
import itertools
import os
import secrets
import statistics
import sys

import numpy

import recorded
import service
import sharp
import sites
import world
from world import NEVER

SURVIVORS = (12, 20, 40, 80, 160, 400, 10 ** 9)
PUREST = (3, 5, 8, 12, 16, 20, 30, 40, 80, 120, 400)
PARTS = ("clean", "leaking", "sharp", "mixed", "purest", "intervals", "runs")
# Classes after which nobody looks again; and one that says: not yet full.
REASSURING = ("plateau", "step", "steady", "sawtooth", "turnover")
FILLING = "warming"
# Of the run. What gave nothing back from here on looks as a leak that began
# then does, whatever it is: the test can but find that leak.
SILENT_FROM = 0.6
# Figure: (least, most) in the short form, and in the long one.
BOUNDS = {
    "false alarms per clean site": ((0, 0.015), (0, 0.002)),
    "undecidable called leak": ((0, 0.15), (0, 0.03)),
    "and silent ones called leak": ((0, 1), (0, 0.4)),
    "power": ((0.6, 1), (0.8, 0.97)),
    "reassured, from 20": ((0, 0.1), (0, 0.05)),
    "reassured, from 160": ((0, 0.1), (0, 0.01)),
    "filling, from 20": ((0, 0.15), (0, 0.05)),
    "sharp ones reassured": ((0, 0.1), (0, 0.02)),
    "full rings called leak": ((0, 0.3), (0, 0.02)),
    "mixed clean sites called leak": ((0, 0.03), (0, 0.002)),
    "mixed clean sites suspect": ((0, 0.25), (0, 0.15)),
    "and surely growing": ((0, 0.1), (0, 0.04)),
    "mixed ones reassured, from 12": ((0, 0.2), (0, 0.05)),
    "mixed ones reassured, from 20": ((0, 0.2), (0, 0.03)),
    "mixed ones reassured, from 40": ((0, 0.2), (0, 0.015)),
    "purest leaks reassured": ((0, 0.03), (0, 0.01)),
    "purest leaks filling": ((0, 0.1), (0, 0.03)),
    "coverage": ((0.88, 1), (0.93, 0.99)),
    "coverage, exact": ((0.85, 1), (0.93, 0.995)),
    "coverage, sampled": ((0.85, 1), (0.93, 0.99)),
    "median error at 400": ((0, 0.09), (0, 0.065)),
    "runs with a false alarm": ((0, 0.5), (0, 0.06)),
    "leak first, 100 survivors": ((0.2, 1), (0.85, 1)),
}


class Figures:
    """What was found, and whether it is in bounds."""

    def __init__(self, is_long):
        self.is_long = is_long
        self.wrong = 0

    def put(self, name, part, whole):
        """@part of @whole cases; of fewer than five nothing is demanded."""
        if whole:
            self.say(name, part / whole, f"  ({part} of {whole})", whole >= 5)

    def say(self, name, value, more="", is_judged=True):
        word = ""
        if name in BOUNDS and is_judged:
            least, most = BOUNDS[name][self.is_long]
            if not least <= value <= most:
                self.wrong += 1
                word = f"  OUT OF BOUNDS {least} to {most}"
        print(f"{name:42} {value:8.4f}{more}{word}", flush=True)


def judged(options, wanted, is_run):
    """(site, row) of (kind, seed, given) that are wanted; @is_run: each is a
    run of its own, with all that a report does to a class."""
    def tell():
        for kind, seed, given in wanted:
            site, random = sites.make(kind, (options.seed, seed), seed % 2,
                                      **given)
            yield site, {
                "clock": recorded.clock(site.load, options.clock, random),
                "sites": [recorded.observe_in_run(site, site.load)],
            } if is_run else recorded.observe(site, options.clock, random)
    made, told = itertools.tee(tell())
    rows = sites.judged(options.replay, (one[1] for one in told))
    for (site, _), row in zip(made, rows):
        yield site, row["sites"][0] if is_run else row


def tabulate(options, kinds, count):
    """Classes by kind, and the rows."""
    rows = collections.defaultdict(list)
    wanted = ((kind, i, {}) for i in range(count) for kind in kinds)
    for site, row in judged(options, wanted, True):
        rows[site.kind].append((site, row))
    for kind in kinds:
        classes = collections.Counter(row["class"] for _, row in rows[kind])
        print(f"{kind:22}", ", ".join(f"{100 * n / count:.1f} % {name}"
                                      for name, n in classes.most_common()))
    return [pair for kind in kinds for pair in rows[kind]]


def called_leak(pairs):
    """Also those that are called minor: leaks below the floor. Not so one
    block in steps, which would be a suspect if it were larger."""
    return sum(row["class"] == "leak" or (row["class"] == "minor"
                                          and "perhaps" not in row["reason"])
               for _, row in pairs)


def false_alarms(options, figures, count):
    print(f"\n# {count} clean sites of each kind, clock: {options.clock}")
    pairs = tabulate(options, sites.CLEAN, count)
    figures.put("false alarms per clean site", called_leak(pairs), len(pairs))
    figures.put("and suspect", sum(row["class"] == "suspect"
                                   for _, row in pairs), len(pairs))
    figures.put("of those with enough survivors", called_leak(pairs),
                sum(row["tested"] for _, row in pairs))
    print(f"\n# {count} undecidable sites of each kind")
    pairs = tabulate(options, sites.UNDECIDABLE, count)
    silent = [pair for pair in pairs if is_silent(pair[0])]
    loud = [pair for pair in pairs if not is_silent(pair[0])]
    figures.put("undecidable called leak", called_leak(loud), len(loud))
    figures.put("and silent ones called leak", called_leak(silent),
                len(silent))


def is_silent(site):
    """A collector that ran for the last time before SILENT_FROM."""
    return not numpy.any((site.death >= SILENT_FROM) & (site.death < 1))


def power(options, figures, count):
    print(f"\n# {count} leaking sites of each kind")
    pairs = tabulate(options, sites.LEAKING, count)
    figures.put("power", called_leak(pairs), len(pairs))
    for how in ("mature_count", "effective_count"):
        for low, high in zip(SURVIVORS, SURVIVORS[1:]):
            some = [pair for pair in pairs if low <= pair[1][how] < high]
            figures.put(f"power, {how} from {low}", called_leak(some),
                        len(some))
    reassured(figures, pairs, "")
    print("\n# intervals of all leaking kinds that have one rate, when leak")
    cover(figures, "mixed kinds", [
        (site, row) for site, row in pairs if site.rate > 0
        and row["class"] in ("leak", "minor") and not row["growing_block"]])


def cover(figures, name, pairs):
    figures.put(name, sum(row["low"] <= site.rate <= row["high"]
                          for site, row in pairs), len(pairs))


def leaked(site):
    """Blocks that are never freed, in blocks of one size, born evenly: the
    evidence that there is, whatever the reader makes of it."""
    lost = site.death >= NEVER
    weight = site.weight[lost]
    if not len(weight):
        return 0
    count = weight.sum() ** 2 / (weight ** 2).sum()
    tenth = numpy.minimum((10 * site.load.work(site.birth[lost])).astype(int),
                          9)
    tenths = numpy.bincount(tenth, weight, 10)[tenth.min():]
    if len(tenths) < 2:
        return 1
    mean = tenths.mean()
    spread = ((tenths - mean) ** 2).sum() / (len(tenths) - 1)
    return count / max(1, spread / (mean * weight.sum() / count))


def reassured(figures, pairs, whose):
    """Leaks that are told to be none, by what could have been seen of them."""
    for low in (12, 20, 40, 80, 160):
        some = [row["class"] for site, row in pairs if leaked(site) >= low]
        for name, classes in (("reassured", REASSURING),
                              ("filling", (FILLING,))):
            figures.put(f"{whose}{name}, from {low}",
                        sum(one in classes for one in some), len(some))


def sharp_cases(options, figures, count):
    print(f"\n# {count} of each of the sharpest cases, clock: {options.clock}")
    pairs = tabulate(options, sites.SHARP, count)
    figures.put("sharp ones reassured", sum(
        row["class"] in REASSURING for _, row in pairs), len(pairs))
    figures.put("sharp ones leak or suspect", sum(
        row["class"] in ("leak", "minor", "suspect") for _, row in pairs),
        len(pairs))
    pairs = tabulate(options, sites.SHARP_CLEAN, count)
    figures.put("full rings called leak", called_leak(pairs), len(pairs))


def mixed_cases(options, figures, count):
    """Sites that replace blocks, with and without a leak among them."""
    print(f"\n# {4 * count} clean sites of each kind that replaces")
    pairs = tabulate(options, sites.MIXED_CLEAN, 4 * count)
    figures.put("mixed clean sites called leak", called_leak(pairs),
                len(pairs))
    suspects = [row for _, row in pairs if row["class"] == "suspect"]
    figures.put("mixed clean sites suspect", len(suspects), len(pairs))
    figures.put("and surely growing", sum(row["low"] > 0 for row in suspects),
                len(pairs))
    print(f"\n# {count} of each that leak as well")
    pairs = tabulate(options, sites.MIXED, count)
    reassured(figures, pairs, "mixed ones ")
    some = [row for site, row in pairs if leaked(site) >= 12]
    figures.put("leak or suspect, from 12", sum(
        row["class"] in ("leak", "minor", "suspect") for row in some),
        len(some))
    print("\n# why those from 12 were reassured")
    for reason, number in collections.Counter(
            f"{row['class']}: {row['reason']}" for row in some
            if row["class"] in REASSURING).most_common():
        print(f"{number:6} {reason}")


def purest(options, figures, count):
    """So many births, evenly spread or by chance, and nothing is freed."""
    print(f"\n# the purest leak, {count} of each number of births")

    def tell(blocks):
        for i in range(count):
            random = numpy.random.default_rng([options.seed, blocks, i])
            place = world.World(random, i // 2 % 2)
            site = sharp.purest(place, blocks, i % 2)
            kind = recorded.CLOCKS[i // 4 % 3]
            yield {"clock": recorded.clock(place.load, kind, random),
                   "sites": [recorded.observe_in_run(site, place.load)]}
    total = collections.Counter()
    for blocks in PUREST:
        found = collections.Counter(row["sites"][0]["class"] for row in
                                    sites.judged(options.replay, tell(blocks)))
        total += found
        print(f"{blocks:22}", ", ".join(f"{100 * n / count:.1f} % {name}"
                                        for name, n in found.most_common()))
    whole = count * len(PUREST)
    figures.put("purest leaks reassured",
                sum(total[one] for one in REASSURING), whole)
    figures.put("purest leaks filling", total[FILLING], whole)


def intervals(options, figures, count):
    """Leaks per request, of 30 to 400 blocks, among up to as much churn."""
    print(f"\n# {count} leaks per request: does the interval hold the truth?")
    grid = itertools.cycle(itertools.product(
        (30, 100, 400), (0, 0.3, 1), ("constant", "periods")))
    wanted = (("per_request", 10 ** 6 + i,
               {"kept": kept, "in_flight": in_flight, "shape": shape})
              for i, (kept, in_flight, shape) in zip(
                  range(count), itertools.chain.from_iterable(
                      (one, one) for one in grid)))
    by_count = collections.defaultdict(list)
    pairs = []
    for i, (site, row) in enumerate(judged(options, wanted, False)):
        if row["rate"] > 0:
            pairs.append((site, row, i % 2))
            by_count[(30, 100, 400)[i // 12 % 3]].append(
                abs(row["rate"] / site.rate - 1))
    cover(figures, "coverage", [pair[:2] for pair in pairs])
    for sampled, name in enumerate(("exact", "sampled")):
        cover(figures, f"coverage, {name}",
              [pair[:2] for pair in pairs if pair[2] == sampled])
    cover(figures, "coverage, when leak",
          [pair[:2] for pair in pairs if pair[1]["class"] == "leak"])
    for kept, errors in sorted(by_count.items()):
        figures.say(f"median error at {kept}", statistics.median(errors))
    figures.say("interval's width over the rate, median", statistics.median(
        (row["high"] - row["low"]) / row["rate"] for _, row, _ in pairs))


def whole_runs(options, figures, count, size):
    print(f"\n# {count} services of {size} sites, one of them leaking")
    alarms = runs_with_alarm = tested = first = found = strong = 0
    strong_first = 0
    for run, row in service.judged(options.replay, options.seed, count, size):
        order = [one["index"] for one in row["sites"]]
        at = order.index(run.leak)
        leak = row["sites"][at]
        wrong = sum(one["class"] == "leak" and one["index"] != run.leak
                    for one in row["sites"])
        alarms += wrong
        runs_with_alarm += wrong > 0
        tested += sum(one["tested"] for one in row["sites"])
        first += at == 0
        found += leak["class"] == "leak"
        if leak["mature_count"] >= 100:
            strong += 1
            strong_first += at == 0
    figures.put("runs with a false alarm", runs_with_alarm, count)
    figures.put("false alarms per site", alarms, count * (size - 1))
    figures.put("sites a run with enough survivors", tested, count)
    figures.put("leak found", found, count)
    figures.put("leak first", first, count)
    figures.put("leak first, 100 survivors", strong_first, strong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("replay", help="the program growth_replay")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--clock", choices=recorded.CLOCKS, default="units")
    parser.add_argument("--only", action="append",
                        choices=PARTS)
    parser.add_argument("--seed", type=int, default=int(
        os.environ.get("SEEP_SIMULATE_SEED", secrets.randbelow(2 ** 32))))
    options = parser.parse_args()
    only = options.only or PARTS
    figures = Figures(options.long)
    print(f"seed {options.seed}")
    if "intervals" in only:
        intervals(options, figures, 1800 if options.long else 504)
    if "clean" in only:
        false_alarms(options, figures, 300 if options.long else 20)
    if "leaking" in only:
        power(options, figures, 120 if options.long else 16)
    if "sharp" in only:
        sharp_cases(options, figures, 60 if options.long else 8)
    if "mixed" in only:
        mixed_cases(options, figures, 80 if options.long else 6)
    if "purest" in only:
        purest(options, figures, 240 if options.long else 24)
    if "runs" in only:
        whole_runs(options, figures, *((60, 250) if options.long else (8, 80)))
    return 1 if figures.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
