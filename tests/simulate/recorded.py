# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a recording keeps of a simulated site: the input of the test.

A site is a dictionary as growth_replay takes it. Its times are shares of the
work; or, where it brings a clock of its own, ticks of the run, of which the
reader has to find the work out itself.
"""
import dataclasses

import numpy

BUCKETS = 128
WIDTH = 256  # ticks a bucket
OLD = 0.2    # of the run: an age at which a block is old
CLOCKS = ("units", "bytes", "wall")


def live_series(site, bucket_of):
    """(live bytes at the end of each bucket, lowest inside, live at last)"""
    dies = site.death <= 1
    time = numpy.concatenate([site.birth, site.death[dies]])
    change = numpy.concatenate([site.weight, -site.weight[dies]])
    order = numpy.argsort(time, kind="stable")
    live = numpy.concatenate([[0], numpy.cumsum(change[order])])
    edge = numpy.searchsorted(bucket_of(time[order]),
                              numpy.arange(BUCKETS + 1))
    low = [live[edge[i]:edge[i + 1] + 1].min() for i in range(BUCKETS)]
    return (numpy.maximum(live[edge[1:]], 0), numpy.maximum(low, 0),
            int(len(site.birth) - dies.sum()))


def end_tick(load):
    """Of the run: anywhere in its last bucket."""
    return (BUCKETS - 1) * WIDTH + int(load.last * WIDTH)


def tick_of(load, time):
    end = end_tick(load)
    return numpy.minimum((time * end).astype(int), end)


def clock(load, kind, random):
    """Units told or bytes allocated, bucket by bucket; or nothing."""
    end = end_tick(load)
    edges = numpy.minimum(numpy.arange(BUCKETS + 1) * WIDTH / end, 1)
    work = {"end_tick": end}
    if kind == "units":
        told = numpy.round(load.work(edges) * 100000)
        work["units"] = numpy.diff(told).astype(int).tolist()
    elif kind == "bytes":
        share = numpy.diff(load.work(edges))
        share *= numpy.exp(0.2 * random.normal(size=BUCKETS))
        share[:4] += share.sum() * random.uniform(0.05, 0.5) / 4  # start-up
        work["bytes"] = numpy.round(share * 1e9).astype(int).tolist()
    return work


def by_bucket(buckets, weights=None):
    counts = numpy.bincount(buckets, weights, BUCKETS)[:BUCKETS]
    return numpy.maximum(numpy.round(counts), 0).astype(int).tolist()


def observe_in_run(site, load):
    """A site of a whole run under @load, as replay_run.h has it: in ticks and
    buckets."""
    birth = tick_of(load, site.birth)
    death = tick_of(load, numpy.minimum(site.death, 1))
    dead = site.death <= 1
    weight = numpy.maximum(numpy.round(site.weight), 1)
    whole = dataclasses.replace(site, weight=weight)
    low = live_series(whole, lambda time: tick_of(load, time) // WIDTH)[1]
    born = birth // WIDTH
    aged = (death - birth)[dead] // WIDTH
    return {
        "birth": birth[~dead].tolist(),
        "weight": weight[~dead].tolist(),
        "variance": site.variance[~dead].tolist(),
        "first_tick": int(birth.min()) if len(birth) else 0,
        "allocated_count": len(birth),
        "freed_count": int(dead.sum()),
        "allocated": by_bucket(born, weight),
        "freed": by_bucket(death[dead] // WIDTH, weight[dead]),
        "low": low.astype(int).tolist(),
        "born_count": by_bucket(born),
        "born_freed": by_bucket(born[dead], weight[dead]),
        "born_freed_count": by_bucket(born[dead]),
        "died": by_bucket(aged, weight[dead]),
        "died_count": by_bucket(aged),
    }


def observe(site, kind=None, random=None):
    """@kind of clock: None, the true work; else one of CLOCKS."""
    if kind is None:
        edge = numpy.arange(1, BUCKETS + 1) / BUCKETS
        live, low, left = live_series(
            site, lambda time: numpy.ceil(time * BUCKETS) - 1)
        births, ends = site.load.work(site.birth), site.load.work(edge)
    else:
        live, low, left = live_series(
            site, lambda time: tick_of(site.load, time) // WIDTH)
        births = tick_of(site.load, site.birth)
        ends = numpy.arange(1, BUCKETS + 1) * WIDTH
    alive = site.death > 1
    lived = numpy.minimum(site.death, 2) - site.birth
    told = {
        "birth": births[alive].tolist(),
        "weight": site.weight[alive].tolist(),
        "variance": site.variance[alive].tolist(),
        "bucket_end": ends.tolist(),
        "live": live.tolist(),
        "low": low.tolist(),
        "died_old": int((~alive & (lived >= OLD)).sum()),
        "live_old": int((alive & (site.birth <= 1 - OLD)).sum()),
        "live_count": left,
        "allocations": len(site.birth),
    }
    if kind is not None:
        told["clock"] = clock(site.load, kind, random)
    return told
