# SPDX-License-Identifier: LGPL-2.1-or-later
"""A simulator of its own: call sites that replace blocks, and leak a few.

Load, sizes and sampling are written anew: each block has a size, of a lognormal
law, and is sampled by it; what leaks is of the same size, or of another. What
replaces is a full cache, or sessions; what leaks goes with the load, with a
power of it, with the clock, or comes in bursts. A kind is "REPLACES and LEAKS".
"""
import collections
import dataclasses
import functools
import heapq

import numpy

from world import NEVER, Site, between

STEPS = 1000
EDGES = numpy.linspace(0, 1, STEPS + 1)
BLOCKS = (400, 9000)  # that replace each other
LEAKED = (8, 500)     # of those that are seen


class Traffic:
    """What is asked of a service; as world.Load for the recording."""

    def __init__(self, random):
        self.last = random.random()
        shape = random.choice(["even", "even", "days", "drift", "on_and_off",
                               "falls", "rises", "spikes"])
        rate = numpy.maximum(getattr(self, shape)(random), 0.03)
        self.rate = rate / rate.mean()
        self.done = numpy.append(0, numpy.cumsum(self.rate)) / STEPS

    @staticmethod
    def even(random):
        return 1 + 0.1 * random.normal(size=STEPS)

    @staticmethod
    def days(random):
        turns = 2 * numpy.pi * (between(random, 1, 12) * EDGES[1:]
                                + random.random())
        return (1 + random.uniform(0.2, 0.8) * numpy.sin(turns)
                + random.uniform(0, 0.4) * numpy.sin(2 * turns))

    @staticmethod
    def drift(random):
        steps = random.normal(size=STEPS) * random.uniform(0.01, 0.06)
        return numpy.exp(numpy.cumsum(steps))

    @staticmethod
    def on_and_off(random):
        ends = numpy.cumsum(random.exponential(between(random, 0.01, 0.1),
                                               400))
        return numpy.where(numpy.searchsorted(ends, EDGES[1:]) % 2, 1.8, 0.2)

    @staticmethod
    def falls(random):
        return 1 - random.uniform(0.2, 0.7) * EDGES[1:]

    @staticmethod
    def rises(random):
        return 1 + random.uniform(0.2, 3) * EDGES[1:]

    @staticmethod
    def spikes(random):
        return 1 + 6 * (random.random(STEPS) < 0.02)

    def work(self, time):
        return numpy.interp(time, EDGES, self.done)

    def time(self, work):
        return numpy.interp(work, self.done, EDGES)

    def births(self, random, count, power=1.0):
        """Times of @count births at a rate that goes with its @power."""
        done = numpy.append(0, numpy.cumsum(self.rate ** power))
        return numpy.interp(numpy.sort(random.random(count)),
                            done / done[-1], EDGES)


@dataclasses.dataclass
class Place:
    random: numpy.random.Generator
    traffic: Traffic
    count: int      # blocks that replace each other
    bound: int = 0  # of them, that live at once


# What replaces: times of death for times of birth.

def first_out(place, birth):
    return numpy.append(birth[place.bound:],
                        numpy.full(min(place.bound, len(birth)), NEVER))


def any_out(place, birth):
    """A full cache gives up any of its blocks for the next one."""
    death = numpy.full(len(birth), NEVER)
    held = list(range(min(place.bound, len(birth))))
    for i in range(place.bound, len(birth)):
        at = place.random.integers(len(held))
        death[held[at]], held[at] = birth[i], i
    return death


def least_used_out(place, birth):
    """Keys after Zipf: a hit keeps its block."""
    death = numpy.full(len(birth), NEVER)
    keys = numpy.minimum(place.random.zipf(
        place.random.uniform(1.1, 1.6), 2 * len(birth)), 10 ** 6)
    held = collections.OrderedDict()
    born = 0
    for key in keys:
        if key in held:
            held.move_to_end(key)
            continue
        if born == len(birth):
            break
        if len(held) == place.bound:
            death[held.popitem(last=False)[1]] = birth[born]
        held[key] = born
        born += 1
    death[born:] = birth[born:]
    return death


def by_age(place, birth):
    return birth + place.bound / place.count * place.random.uniform(
        0.95, 1.05, len(birth))


def sessions(place, birth):
    spread = place.random.uniform(0.4, 1.3)
    return birth + place.bound / place.count * numpy.exp(
        spread * place.random.normal(size=len(birth)) - spread ** 2 / 2)


def cleared(place, birth):
    """All at once, when it is full."""
    full = numpy.append(birth[place.bound::place.bound], NEVER)
    return full[numpy.arange(len(birth)) // place.bound]


def soonest_out(place, birth):
    """Expiry dates are drawn; a full cache gives up what expires first."""
    death = numpy.full(len(birth), NEVER)
    expires = birth + place.random.exponential(
        2 * place.bound / place.count, len(birth))
    held = []
    for i, at in enumerate(birth):
        if len(held) == place.bound:
            death[heapq.heappop(held)[1]] = at
        heapq.heappush(held, (expires[i], i))
    return death


REPLACES = {function.__name__: function for function in (
    first_out, any_out, least_used_out, by_age, sessions, cleared,
    soonest_out)}


# What leaks: times of birth.

def by_request(place, count):
    return place.traffic.births(place.random, count)


def by_load(place, count):
    return place.traffic.births(place.random, count,
                                place.random.choice([0.5, 2]))


def by_clock(place, count):
    return numpy.sort(place.random.random(count))


def in_bursts(place, count):
    times = max(6, int(between(place.random, 6, 60)))
    each = place.random.geometric(min(1, times / count), times)
    return numpy.sort(numpy.minimum(numpy.repeat(
        place.random.random(times), each) + 0.002 * place.random.random(
            each.sum()), 1))


def nothing(_place, _count):
    return numpy.zeros(0)


LEAKS = {function.__name__: function for function in (
    nothing, by_request, by_load, by_clock, in_bursts)}


def sampled(random, size, mean):
    """(of which blocks, weights, variances) of sampling; @mean 0: exact."""
    if not mean:
        return numpy.arange(len(size)), size, 0 * size
    chance = -numpy.expm1(-size / mean)
    seen = numpy.nonzero(random.random(len(size)) < chance)[0]
    weight = size[seen] / chance[seen]
    return seen, weight, weight ** 2 * (1 - chance[seen])


def made(world, kind):
    random = world.random
    replaces, leaks = kind.split(" and ")
    place = Place(random, Traffic(random), int(between(random, *BLOCKS)))
    place.bound = max(2, int(place.count * between(random, 0.01, 0.4)))
    birth = place.traffic.births(random, place.count)
    if random.random() < 0.5:  # full since the start
        birth[:place.bound] *= 0.05
        birth.sort()
    death = numpy.minimum(REPLACES[replaces](place, birth), 2)
    lost = LEAKS[leaks](place, max(8, int(min(
        place.count / 2, between(random, *LEAKED)))))
    middle = between(random, 64, 65536)
    other = middle * random.choice([1, between(random, 0.125, 8)])
    size = numpy.repeat([middle, other], [len(birth), len(lost)])
    size *= numpy.exp(random.choice([0, 0.5, 1, 1.6])
                      * random.normal(size=len(size)))
    mean = middle * between(random, 0.5, 6) if world.sampled else 0
    seen, weight, variance = sampled(
        random, numpy.maximum(numpy.round(size), 1), mean)
    birth = numpy.append(birth, lost)[seen]
    death = numpy.append(death, numpy.full(len(lost), NEVER))[seen]
    return Site(kind, place.traffic, birth, death, weight, variance,
                leaks != "nothing")


def kinds(leaks):
    return {f"{one} and {other}": functools.partial(
        made, kind=f"{one} and {other}")
        for one in REPLACES for other in leaks}


CLEAN = kinds(["nothing"])
LEAKING = kinds([leak for leak in LEAKS if leak != "nothing"])
