# SPDX-License-Identifier: LGPL-2.1-or-later
"""Call sites that do not leak: 19 ways of looking like it, and lazy loads.

Each function takes a world.World and gives the (birth, death) parts of its
blocks, or a whole site. The docstring says what such a site is.
"""
import numpy

from world import NEVER, Load, between


def steady(world):
    """Buffers of requests: short lives."""
    return [world.churn(3 * world.count, between(world.random, 0.001, 0.1))]


def least_recent(world):
    """A cache at its bound: evicts what is a fixed amount of work old."""
    age = between(world.random, 0.02, 0.3)
    birth = world.load.births(world.random, 2 * world.count)
    end = world.load.work(birth) + age * (
        1 + 0.1 * world.random.normal(size=len(birth)))
    death = numpy.where(end < 1, world.load.time(numpy.minimum(end, 1)), NEVER)
    return [(birth, death), world.level(0.1 * world.count * age)]


def random_eviction(world):
    """A cache at its bound that evicts anything."""
    return [world.churn(2 * world.count, world.random.uniform(0.05, 0.2))]


def warming_exponential(world):
    """A cache that fills until every key was seen."""
    scale = world.random.uniform(0.03, 0.22)
    work = world.random.exponential(scale, world.random.poisson(world.count))
    return [world.immortal(world.load.time(work[work < 1])),
            world.level(world.in_flight * world.count)]


def warming_logarithmic(world):
    """A cache of ever rarer keys: never full, ever slower."""
    start = between(world.random, 0.005, 0.08)
    share = world.random.random(world.random.poisson(world.count))
    work = start * ((1 + 1 / start) ** share - 1)
    return [world.immortal(world.load.time(work)),
            world.level(world.in_flight * world.count)]


def warming_catalogue(world):
    """The first sight of each of a finite number of keys, drawn by Zipf."""
    keys = max(int(world.count), 20)
    draws = int(keys * between(world.random, 3, 30))
    popular = 1 / numpy.arange(1, keys + 1) ** world.random.uniform(0.6, 1.1)
    drawn = world.random.choice(keys, draws, p=popular / popular.sum())
    first = numpy.unique(drawn, return_index=True)[1]
    return [world.immortal(world.load.time(first / draws)),
            world.level(0.3 * world.in_flight * world.count)]


def collections(world):
    """Moments of a garbage collector, about evenly spaced."""
    gap = between(world.random, 0.01, 0.22)
    gaps = gap * (1 + world.random.uniform(-0.25, 0.25, int(3 / gap) + 5))
    return numpy.cumsum(gaps) + gap * (world.random.random() - 1)


def until_collected(world, birth, moments):
    """Deaths at the next collection; sometimes a tenth lives one longer."""
    late = world.random.choice([0, 0.1])
    index = numpy.searchsorted(moments, birth) + (
        world.random.random(len(birth)) < late)
    return moments[numpy.minimum(index, len(moments) - 1)]


def garbage_collector(world):
    """A sawtooth with a flat floor."""
    birth = world.load.births(world.random, 2 * world.count)
    return [(birth, until_collected(world, birth, collections(world)))]


def step(world):
    """Something loaded at one or two moments, and kept."""
    moments = world.random.integers(1, 3)
    parts = [world.level(max(world.in_flight, 0.05) * world.count)]
    for _ in range(moments):
        count = world.random.poisson(world.count / moments)
        parts.append(world.immortal(
            world.random.uniform(0.05, 0.97)
            + world.random.exponential(0.005, count)))
    return parts


def batches(world):
    """Start, duration and deaths of a periodic job: (starts, period)."""
    period = between(world.random, 0.01, 0.15)
    return numpy.arange(period * world.random.random(), 1, period), period


def batch(world):
    """A periodic job that gives everything back."""
    starts, period = batches(world)
    parts = []
    for start in starts:
        count = world.random.poisson(world.count / len(starts))
        birth = start + world.random.uniform(0, 0.3 * period, count)
        parts.append((birth, numpy.full(count, start + 0.35 * period)))
    return parts


def pool_to_cap(world):
    """A pool that fills with the work until it has its size."""
    full = world.load.work(world.random.uniform(0.1, 0.75))
    count = world.random.poisson(0.3 * world.count)
    return [world.immortal(world.load.time(full * world.random.random(count))),
            world.level(0.3 * world.in_flight * world.count)]


def high_water(world):
    """A pool as large as the largest number of requests at once so far."""
    moments = 4000
    mean = numpy.repeat(world.load.rate[::4], 8)[:moments]
    at_once = world.random.poisson(mean * between(world.random, 20, 500))
    record = numpy.maximum.accumulate(at_once)
    added = numpy.diff(numpy.concatenate([[0], record]))
    birth = numpy.repeat(numpy.arange(moments) / moments, added)
    return [world.immortal(birth), world.level(world.in_flight * len(birth))]


def burst(world):
    """One to three crowds, one of them maybe still there."""
    parts = [world.level(0.3 * max(world.in_flight, 0.05) * world.count)]
    for _ in range(world.random.integers(1, 4)):
        start = world.random.uniform(0.05, 0.98)
        span = world.random.uniform(0.03, 0.2)
        count = world.random.poisson(world.count)
        birth = start + world.random.uniform(0, 0.5 * span, count)
        parts.append((birth, start + span * world.random.uniform(
            0.6, 1.4, count)))
    return parts


def stopped_ramp(world):
    """Grows by the clock, and stops."""
    stop = world.random.uniform(0.3, 0.8)
    count = world.random.poisson(world.count)
    return [world.immortal(stop * world.random.random(count)),
            world.level(world.in_flight * world.count)]


def wandering_queue(world):
    """As long as the load makes it, and the load wanders."""
    world.load = Load(world.random, "wandering")
    return [world.churn(4 * world.count, between(world.random, 0.001, 0.05))]


def queue_part_of_a_day(world):
    """As long as the load makes it, of a load that looks like a trend."""
    world.load = Load(world.random, "part_of_a_period")
    return [world.churn(4 * world.count, between(world.random, 0.001, 0.03))]


def heavy_tail(world):
    """Lives after Pareto: a few are very long."""
    tail = world.random.uniform(1.3, 2.2)
    birth = world.load.births(world.random, 4 * world.count)
    life = between(world.random, 0.001, 0.02) * (
        1 + world.random.pareto(tail, len(birth)))
    return [(birth, birth + life)]


def reload(world):
    """A model replaced by the next one, again and again."""
    period = between(world.random, 0.05, 0.4)
    starts = numpy.append(0, numpy.arange(period * world.random.random(), 1,
                                          period))
    ends = numpy.append(starts[1:] + 0.01, NEVER)
    parts = [world.level(0.02 * world.count)]
    for start, end in zip(starts, ends):
        count = world.random.poisson(0.2 * world.count)
        parts.append((numpy.full(count, start + 0.002),
                      numpy.full(count, end)))
    return parts


def static(world):
    """All of it at the start."""
    count = world.random.poisson(world.count)
    return [world.immortal(0.05 * world.random.random(count)),
            world.level(max(world.in_flight, 0.02) * world.count)]


def doubling_to_cap(world):
    """One block, reallocated to twice its size until it is large enough."""
    count = world.random.integers(4, 12)
    birth = numpy.sort(world.random.uniform(
        0, world.random.uniform(0.3, 0.8), count))
    if world.random.random() >= 0.5:
        birth = birth[-1] * 2.0 ** (numpy.arange(count) - count + 1)
    weight = between(world.random, 1e6, 1e8) * 2.0 ** (
        numpy.arange(count) - count)
    return world.big_blocks("doubling_to_cap", birth,
                            numpy.append(birth[1:], NEVER), weight)


def lazy_loads(world):
    """Two to six big blocks at any moment, kept."""
    count = world.random.integers(2, 7)
    weight = between(world.random, 4e6, 4e9) * numpy.exp(
        0.5 * world.random.normal(size=count))
    return world.big_blocks("lazy_loads",
                            numpy.sort(world.random.random(count)),
                            numpy.full(count, NEVER), weight)


KINDS = {function.__name__: function for function in (
    steady, least_recent, random_eviction, warming_exponential,
    warming_logarithmic, warming_catalogue, garbage_collector, step, batch,
    pool_to_cap, high_water, burst, stopped_ramp, wandering_queue,
    queue_part_of_a_day, heavy_tail, reload, static, doubling_to_cap,
    lazy_loads)}


def long_lives(world):
    """Undecidable: sessions about as long as the run."""
    return [world.churn(2 * world.count, world.random.uniform(0.25, 1))]


def two_teeth(world):
    """Undecidable: a collector that ran once or twice."""
    first = world.random.uniform(0.1, 0.6)
    second = first + world.random.uniform(0.25, 0.6)
    birth = world.load.births(world.random, 2 * world.count)
    death = numpy.where(birth < first, first,
                        numpy.where(birth < second, second, NEVER))
    return [(birth, death)]


UNDECIDABLE = {function.__name__: function for function in (
    long_lives, two_teeth)}
