# SPDX-License-Identifier: LGPL-2.1-or-later
"""What simulated call sites live in: a load over time, and sizes of blocks.

Times are shares of the run, 0 to 1. Work is a share of all that the run does;
Load tells how far it is at a time. A day and a minute differ only in counts.

Sizes tells what one observed block stands for. Of a sampled recording only
the blocks that sampling keeps are made (a thinned Poisson process is one), so
their sizes follow the law of those that are kept: large ones more often.
"""
import copy
import dataclasses

import numpy

SAMPLE_BYTES = 512 * 1024  # mean interval of the sampler
STEPS = 2048
EDGES = numpy.linspace(0, 1, STEPS + 1)
NEVER = 9e9  # a death after any run
SHAPES = {"constant": 35, "periods": 25, "part_of_a_period": 15,
          "wandering": 15, "stages": 10}


def between(random, low, high):
    """Log-uniform: as likely in every decade."""
    return float(numpy.exp(random.uniform(numpy.log(low), numpy.log(high))))


class Load:
    """How much work is done when; and .last, how much of the last bucket of a
    recording the run lasts: drawn beside the rest, which stays what it was."""

    def __init__(self, random, shape=None):
        self.last = copy.deepcopy(random).random()
        if shape is None:
            weights = numpy.array(list(SHAPES.values()), float)
            shape = random.choice(list(SHAPES), p=weights / weights.sum())
        time = (EDGES[1:] + EDGES[:-1]) / 2
        rate = getattr(self, shape)(random, time)
        rate = numpy.maximum(rate, 0.02 if shape in SHAPES else 1e-9)
        self.rate = rate / rate.mean()
        self.done = numpy.concatenate([[0], numpy.cumsum(rate)])
        self.done /= self.done[-1]

    @staticmethod
    def constant(_random, time):
        return numpy.ones_like(time)

    @staticmethod
    def wave(random, time, length):
        depth = random.uniform(0.4, 0.95)
        return 1 + depth * numpy.sin(2 * numpy.pi
                                     * (time / length + random.random()))

    @staticmethod
    def periods(random, time):
        return Load.wave(random, time, random.uniform(0.2, 0.7))

    @staticmethod
    def part_of_a_period(random, time):
        """Looks like a trend."""
        return Load.wave(random, time, random.uniform(1, 4))

    @staticmethod
    def wandering(random, time):
        """exp() of a first-order autoregression."""
        keep = numpy.exp(-1 / (between(random, 0.02, 0.4) * len(time)))
        level = random.normal()
        levels = []
        for shock in random.normal(size=len(time)):
            level = keep * level + shock * numpy.sqrt(1 - keep * keep)
            levels.append(level)
        return numpy.exp(0.5 * numpy.array(levels))

    @staticmethod
    def stages(random, time):
        """A load test."""
        count = random.integers(2, 6)
        levels = random.uniform(0.2, 2, count)
        return levels[numpy.minimum((time * count).astype(int), count - 1)]

    @staticmethod
    def bursts(random, time):
        """Many short, tall ones over a low floor."""
        heights = random.gamma(0.3, 1, 200)
        return 0.1 + heights[(time * 200).astype(int)]

    @staticmethod
    def idle_tail(_random, time):
        return numpy.where(time < 0.9, 1, 1e-6)

    @staticmethod
    def tenths(random, time):
        """Of one tenant: [6, 0, 6, 0, 6, 0, 6, 0, 3, 3], from any moment."""
        turn = (10 * (time + random.random())).astype(int) % 10
        return numpy.array([6, 0, 6, 0, 6, 0, 6, 0, 3, 3])[turn] + 1e-9

    @staticmethod
    def mostly_idle(random, time):
        """Most of 128 stretches do next to nothing."""
        busy = random.random(128) < random.uniform(0.2, 0.45)
        rate = numpy.exp(0.8 * random.normal(size=128))
        return numpy.where(busy, rate, 0.004)[(time * 128).astype(int)]

    @staticmethod
    def rising(random, time):
        """Sets a record in every tenth."""
        return 1 + random.uniform(1, 5) * time

    def work(self, time):
        return numpy.interp(time, EDGES, self.done)

    def time(self, work):
        return numpy.interp(work, self.done, EDGES)

    def births(self, random, count):
        """Times of about @count births, as many as there is work."""
        return self.time(numpy.sort(random.random(random.poisson(count))))


class Sizes:
    """Weights and variances of observed blocks."""

    POOL = 4000

    def __init__(self, random, sampled):
        middle = between(random, 64, 2e6)
        spread = random.choice([0, 0.3, 1])
        sizes = numpy.exp(spread * random.normal(size=self.POOL)) * middle
        if sampled:
            kept = -numpy.expm1(-sizes / SAMPLE_BYTES)
            sizes = random.choice(sizes, self.POOL, p=kept / kept.sum())
            kept = -numpy.expm1(-sizes / SAMPLE_BYTES)
            self.weight = sizes / kept
            self.variance = self.weight ** 2 * (1 - kept)
        else:
            self.weight = numpy.maximum(numpy.round(sizes), 1)
            self.variance = numpy.zeros(self.POOL)
        self.mean = self.weight.mean()

    def draw(self, random, count):
        chosen = random.integers(0, self.POOL, count)
        return self.weight[chosen], self.variance[chosen]


@dataclasses.dataclass
class Site:
    """All observed blocks of one call site."""

    kind: str
    load: Load
    birth: numpy.ndarray
    death: numpy.ndarray
    weight: numpy.ndarray
    variance: numpy.ndarray
    leaks: bool = False
    rate: float = 0  # true bytes kept per run of work, once it leaks; 0: varies


@dataclasses.dataclass
class World:
    """What a kind of site may draw from."""

    random: numpy.random.Generator
    sampled: bool
    kept: float = 0       # blocks to leak; 0: as it comes
    in_flight: float = -1  # short-lived blocks per kept one; -1: as it comes
    shape: str = None     # of the load
    load: Load = None     # of the whole service; None: one of its own

    def __post_init__(self):
        if self.load is None:
            self.load = Load(self.random, self.shape)
        self.sizes = Sizes(self.random, self.sampled)
        self.count = between(self.random, 60, 6000)
        self.short = between(self.random, 0.0005, 0.02)
        if self.in_flight < 0:
            some = self.random.random() >= 0.35
            self.in_flight = between(self.random, 0.02, 3) if some else 0

    def mortal(self, births, life):
        """(birth, death) of blocks that die at random, of mean age @life."""
        return births, births + self.random.exponential(life, len(births))

    @staticmethod
    def immortal(births):
        return births, numpy.full(len(births), NEVER)

    def churn(self, count, life):
        return self.mortal(self.load.births(self.random, count), life)

    def level(self, count):
        """Churn that keeps about @count blocks in flight, of bounded work."""
        life = max(self.short, 0.002)
        if count > 1200:
            count = min(count, 40000 * life)
        life = max(life, count / 40000)
        return self.churn(count / life, life)

    def site(self, kind, parts, leaks=False, rate=0):
        birth = numpy.concatenate([part[0] for part in parts])
        death = numpy.concatenate([part[1] for part in parts])
        weight, variance = self.sizes.draw(self.random, len(birth))
        inside = (birth >= 0) & (birth <= 1)
        return Site(kind, self.load, birth[inside], death[inside],
                    weight[inside], variance[inside], leaks, rate)

    def big_blocks(self, kind, birth, death, weight, leaks=False, rate=0):
        """Few and large: every one is seen, whatever the sampling."""
        return Site(kind, self.load, birth, death, numpy.round(weight),
                    numpy.zeros(len(birth)), leaks, rate)
