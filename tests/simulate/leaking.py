# SPDX-License-Identifier: LGPL-2.1-or-later
"""Call sites that leak, in eleven ways.

Each function takes a world.World and gives a whole site. Its .rate is what it
truly keeps per run of work at the end, where that is one number.
"""
import numpy

from clean import batches, collections, until_collected
from world import NEVER, Load, between


def plain(world, kind, birth, rate):
    """Blocks born at @birth and kept, among others in flight."""
    return world.site(kind, [world.immortal(birth),
                             world.level(world.in_flight * wanted(world))],
                      True, rate)


def wanted(world):
    return world.kept or world.count


def linear(world):
    """So many a second, under a constant load."""
    world.load = Load(world.random, "constant")
    return plain(world, "linear",
                 world.load.births(world.random, wanted(world)),
                 wanted(world) * world.sizes.mean)


def per_request(world):
    """So many a request."""
    return plain(world, "per_request",
                 world.load.births(world.random, wanted(world)),
                 wanted(world) * world.sizes.mean)


def by_timer(world):
    """So many a second, whatever the load does: no one rate of work."""
    count = world.random.poisson(wanted(world))
    return plain(world, "by_timer", numpy.sort(world.random.random(count)), 0)


def fraction(world):
    """Of a churning site some are forgotten: 0.5 to 50 %."""
    share = between(world.random, 0.005, 0.5)
    count = world.kept or max(30, world.count * share)
    share = max(share, count / 30000)
    birth = world.load.births(world.random, count / share)
    death = birth + world.random.exponential(
        between(world.random, 0.001, 0.03), len(birth))
    lost = world.random.random(len(birth)) < share
    return world.site("fraction", [(birth, numpy.where(lost, NEVER, death))],
                      True, count * world.sizes.mean)


def rising_floor(world):
    """A collector that some escape."""
    moments = collections(world)
    birth = world.load.births(world.random, 2 * world.count)
    share = between(world.random, 0.03, 0.5)
    if world.kept:
        share = min(0.95, world.kept / (2 * world.count))
    lost = world.random.random(len(birth)) < share
    death = numpy.where(lost, NEVER, until_collected(world, birth, moments))
    return world.site("rising_floor", [(birth, death)], True,
                      share * 2 * world.count * world.sizes.mean)


def from_midway(world):
    """Begins after 15 to 55 % of the work."""
    onset = world.random.uniform(0.15, 0.55)
    count = wanted(world) / (1 - onset)
    birth = world.load.births(world.random, count)
    return plain(world, "from_midway",
                 birth[world.load.work(birth) > onset],
                 count * world.sizes.mean)


def batch_remnants(world):
    """A periodic job that forgets some: by the clock, not by the work."""
    starts, period = batches(world)
    share = between(world.random, 0.02, 0.5)
    if world.kept:
        share = min(0.9, world.kept / world.count)
    parts = []
    for start in starts:
        count = world.random.poisson(world.count / len(starts))
        birth = start + world.random.uniform(0, 0.3 * period, count)
        lost = world.random.random(count) < share
        parts.append((birth, numpy.where(lost, NEVER, start + 0.35 * period)))
    return world.site("batch_remnants", parts, True)


def staircase(world):
    """A big block kept at each of 8 to 24 reloads."""
    world.load = Load(world.random, "constant")
    count = world.random.integers(8, 24)
    birth = (numpy.arange(count) + world.random.uniform(0.1, 0.9, count)
             ) / count
    big = between(world.random, 4e6, 4e9)
    weight = big * numpy.exp(0.1 * world.random.normal(size=count))
    return world.big_blocks("staircase", birth, numpy.full(count, NEVER),
                            weight, True, big * count)


def accelerating(world):
    """Twice as much of it after twice the work: no one rate."""
    count = world.random.poisson(wanted(world))
    work = numpy.sqrt(world.random.random(count))
    return plain(world, "accelerating", world.load.time(work), 0)


def growing_block(world):
    """One block, appended to and reallocated: its rate is its last size."""
    world.load = Load(world.random, "constant")
    count = int(between(world.random, 30, 400))
    birth = (numpy.arange(count) + world.random.random(count)) / count
    weight = between(world.random, 1e5, 1e7) * (1 + numpy.arange(count))
    return world.big_blocks("growing_block", birth,
                            numpy.append(birth[1:], NEVER), weight, True,
                            weight[-1])


def behind_warm_up(world):
    """A cache that fills, and a leak, at one site."""
    count = world.kept or 0.3 * world.count
    extra = world.random.poisson(count * between(world.random, 0.1, 3))
    work = numpy.minimum(0.999, world.random.exponential(0.04, extra))
    return world.site("behind_warm_up", [
        world.immortal(world.load.births(world.random, count)),
        world.level(world.in_flight * count),
        world.immortal(world.load.time(work)),
    ], True, count * world.sizes.mean)


KINDS = {function.__name__: function for function in (
    linear, per_request, fraction, rising_floor, from_midway, batch_remnants,
    staircase, by_timer, accelerating, growing_block, behind_warm_up)}
