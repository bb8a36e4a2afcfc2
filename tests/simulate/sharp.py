# SPDX-License-Identifier: LGPL-2.1-or-later
"""The sharpest cases: leaks that look like their opposite, and one cache.

Each has once been told to be none (or, the cache, to be a leak). A leak here
may be a suspect, or want more data; it must not get a reassuring class.
Functions are as in leaking.py and clean.py.
"""
import numpy

from world import NEVER, Load, between


def kept_and_churn(world, kind, birth, life, churned):
    """Blocks kept from @birth on, over @churned that live @life each."""
    return world.site(kind, [world.immortal(birth),
                             world.churn(churned, life)], True)


def some(world, low=30, high=800):
    """How many blocks leak."""
    return world.kept or between(world.random, low, high)


def late_over_churn(world):
    """Begins at 0.6 to 0.8 of the work, where much is born and dies."""
    world.load = Load(world.random, "constant")
    start = world.random.uniform(0.6, 0.8)
    count = world.random.poisson(world.kept or 400)
    birth = start + (1 - start) * numpy.sort(world.random.random(count))
    return kept_and_churn(world, "late_over_churn", birth,
                          between(world.random, 0.005, 0.05),
                          between(world.random, 1000, 9000))


def before_idle_tail(world):
    """Nobody calls in the last tenth: what was in flight drains."""
    world.load = Load(world.random, "idle_tail")
    count = world.kept or world.random.choice([100, 400, 2000])
    return kept_and_churn(world, "before_idle_tail",
                          world.load.births(world.random, count),
                          world.random.uniform(0.02, 0.05),
                          between(world.random, 2000, 12000))


def bursts_of_a_tenant(world):
    """One tenant leaks, who comes and goes."""
    tenant = Load(world.random, "tenths")
    count = some(world, 30, 400)
    return kept_and_churn(world, "bursts_of_a_tenant",
                          tenant.births(world.random, count), 0.01,
                          world.random.choice([0, 0.3, 1, 3]) * count / 0.01)


def hourly_job(world):
    """6 to 24 times some at once, about evenly spaced."""
    times = world.random.integers(6, 25)
    each = max(2, some(world, 18, 1000) / times)
    birth = numpy.concatenate([
        (i + world.random.random()) / times
        + 0.01 / times * world.random.random(world.random.poisson(each) + 1)
        for i in range(times)])
    return kept_and_churn(world, "hourly_job", birth, 0.02 / times,
                          between(world.random, 50, 2000))


def error_path(world):
    """12 to 60 errors at any time, each keeps a few blocks."""
    errors = int(between(world.random, 12, 60))
    blocks = world.random.integers(1, 12)
    birth = numpy.repeat(numpy.sort(world.random.random(errors)), blocks)
    birth = numpy.minimum(birth + 0.001 * world.random.random(len(birth)), 1)
    return kept_and_churn(world, "error_path", birth, 0.01,
                          world.random.choice([0, 500, 4000]))


def forgotten(world, kind, birth, death, count):
    """Of the blocks about @count are never freed."""
    lost = world.random.random(len(birth)) < count / max(1, len(birth))
    return world.site(kind, [(birth, numpy.where(lost, NEVER, death))], True)


def cache_remnants(world):
    """A cache evicts, and forgets some of what it evicts."""
    count = some(world, 25, 400)
    births = min(20000, count / between(world.random, 0.005, 0.1))
    birth = world.load.births(world.random, births)
    bound = max(2, int(len(birth) * between(world.random, 0.02, 0.3)))
    death = numpy.append(birth[bound:], numpy.full(min(bound, len(birth)),
                                                   NEVER))
    return forgotten(world, "cache_remnants", birth, death, count)


def orphans(world):
    """Of sessions of every length some are never closed."""
    count = some(world, 25, 400)
    births = min(20000, count / between(world.random, 0.005, 0.1))
    birth = world.load.births(world.random, births)
    life = between(world.random, 0.005, 0.08) * numpy.exp(
        world.random.uniform(0.6, 1.1) * world.random.normal(size=len(birth)))
    return forgotten(world, "orphans", birth, birth + life, count)


def timer_under_rising_load(world):
    """So many a second, while the load rises to four times what it was."""
    world.load = Load(world.random, "rising")
    count = some(world, 30, 2000)
    birth = numpy.sort(world.random.random(world.random.poisson(count)))
    return kept_and_churn(world, "timer_under_rising_load", birth, 0.01,
                          world.random.choice([0, 1, 10]) * count)


def among_idle_buckets(world):
    """Most of the time next to nothing is done, and then much."""
    world.load = Load(world.random, "mostly_idle")
    count = some(world, 40, 800)
    return kept_and_churn(world, "among_idle_buckets",
                          world.load.births(world.random, count), 0.005,
                          count)


def lists_of_tenants(world):
    """1 to 200 lists, each reallocated by a factor: blocks are all young."""
    lists = int(world.random.choice([1, 10, 40, 200]))
    factor = world.random.choice([1.125, 1.5, 2])
    parts = []
    for pace in numpy.exp(0.3 * world.random.normal(size=lists)):
        last = pace * between(world.random, 1e4, 1e6)
        start = 0.1 * world.random.random()
        sizes = [4 * factor ** world.random.random()]
        while sizes[-1] < last:
            sizes.append(max(sizes[-1] + 1, factor * sizes[-1]))
        sizes = numpy.array(sizes)
        birth = start + (1 - start) * numpy.append(0, sizes[:-1]) / last
        sizes, birth = sizes[birth < 1], world.load.time(birth[birth < 1])
        parts.append((birth, numpy.append(birth[1:], NEVER), 64 * sizes))
    birth, death, weight = map(numpy.concatenate, zip(*parts))
    return world.big_blocks("lists_of_tenants", birth, death, weight, True)


LEAKING = {function.__name__: function for function in (
    late_over_churn, before_idle_tail, bursts_of_a_tenant, hourly_job,
    error_path, cache_remnants, orphans, timer_under_rising_load,
    among_idle_buckets, lists_of_tenants)}


def ring_just_full(world):
    """A ring that was full at 0.86 to 0.9 of the work."""
    birth = world.load.births(world.random, between(world.random, 60, 4000))
    bound = int(len(birth) * world.random.uniform(0.86, 0.9))
    return [(birth, numpy.append(birth[bound:], numpy.full(bound, NEVER)))]


CLEAN = {ring_just_full.__name__: ring_just_full}


def purest(world, count, is_even):
    """@count births, evenly spread or by chance, and nothing is freed."""
    chance = world.random.random
    birth = (numpy.arange(count) + chance() if is_even
             else numpy.sort(chance(count) * count)) / count
    world.load = Load(world.random, "constant")
    return world.site("purest", [world.immortal(birth)], True)
