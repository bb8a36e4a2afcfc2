# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whole runs of service-like processes: one load, many sites, one leak."""
import dataclasses
import functools

import numpy

import recorded
import sites
import world

# What a service is made of, in parts; caches and pools are rare.
MIX = {
    "steady": 40, "batch": 10, "static": 9, "garbage_collector": 8,
    "wandering_queue": 7, "queue_part_of_a_day": 5, "least_recent": 4,
    "warming_exponential": 3, "random_eviction": 2, "warming_logarithmic": 2,
    "warming_catalogue": 2, "pool_to_cap": 2, "high_water": 1, "step": 1,
    "burst": 1, "heavy_tail": 1, "reload": 1, "doubling_to_cap": 0.5,
    "lazy_loads": 0.5,
}
LEAKS = ("linear", "per_request", "from_midway", "behind_warm_up", "fraction",
         "rising_floor", "accelerating", "by_timer", "batch_remnants",
         "growing_block")


@dataclasses.dataclass
class Run:
    number: int
    leak: int  # index of the site that leaks
    kind: str  # how
    told: dict


def simulate(seed, number, size, clock="units", sampled=True, shape=None):
    """A run of @size sites, one of them leaking, under one load."""
    random = numpy.random.default_rng([seed, number, 7])
    load = world.Load(random, shape)
    kinds = random.choice(list(MIX), size, p=numpy.array(
        list(MIX.values())) / sum(MIX.values())).tolist()
    leak = int(random.integers(size))
    kinds[leak] = str(random.choice(LEAKS))
    told = []
    for i, kind in enumerate(kinds):
        site, _ = sites.make(kind, (seed, number, i), sampled, load=load)
        told.append(recorded.observe_in_run(site, load))
    return Run(number, leak, kinds[leak], {
        "id": number, "clock": recorded.clock(load, clock, random),
        "sites": told})


def judged(replay, seed, count, size, **given):
    """(run, row) of @count runs; a run is large, so one is held at a time."""
    make = functools.partial(simulate, seed, size=size, **given)
    for number in range(count):
        run = make(number)
        row, = sites.run(replay, [sites.written(run.told)])
        run.told = None
        yield run, row
