#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Digests of a fleet that was made up, of which the truth is known.

    simulate.py PROCESSES SEED > fleet.jsonl

Six versions of one service. From PLANTED on, handle() keeps LEAK_BYTES of each
request. In all of them put() fills a cache, and decode() makes and frees
blocks, of which one process in a hundred has some left by chance. Requests come
at another rate in every process, so that what is kept of each of them is the
same everywhere, and what is kept in a second is not.

A process keeps blocks as they come: their number in each tenth of its run is
Poisson's, and the rate and its interval are made of those as seep makes them
(docs/statistics.md, "First test"): of the third to the eighth tenth, the wider
of Poisson's and of the spread by Student's t.
"""
import json
import math
import random
import sys
import zlib

VERSIONS = ("1.3.0", "1.4.0", "1.4.1", "1.4.2", "1.5.0", "1.5.1")
PLANTED = "1.4.2"
LEAK_BYTES = 850.0
BLOCK_BYTES = 524288.0  # that a block stands for: sampled
CACHE_BYTES = 64 << 20
CACHE_S = 1800.0  # in which most of it is filled
WINDOWS = range(2, 8)
T975 = 2.571  # Student's t of five degrees of freedom
COUNT_MIN = 12  # fewer blocks tell nothing


def poisson(mean):
    """By the normal distribution where it is large."""
    if mean > 40:
        return max(0, round(random.gauss(mean, math.sqrt(mean))))
    limit, product, count = math.exp(-mean), random.random(), 0
    while product > limit:
        product *= random.random()
        count += 1
    return count


def interval(estimate, half):
    return {"estimate": estimate, "low": estimate - half,
            "high": estimate + half, "variance": (half / 1.959964) ** 2}


def measure(kept_by, seconds, units):
    """The growth of a site that keeps so many bytes by the work done, from 0
    to 1; None: too little was seen of it."""
    tenths = [poisson((kept_by((i + 1) / 10) - kept_by(i / 10)) / BLOCK_BYTES)
              for i in WINDOWS]
    if sum(tenths) < COUNT_MIN:
        return None
    mean = sum(tenths) / len(tenths)
    spread = sum((count - mean) ** 2 for count in tenths) / (len(tenths) - 1)
    half = max(1.96 * math.sqrt(sum(tenths)) / len(tenths),
               T975 * math.sqrt(spread / len(tenths)))
    whole, half = 10 * BLOCK_BYTES * mean, 10 * BLOCK_BYTES * half
    return interval(whole / seconds, half / seconds), interval(
        whole / units, half / units)


def sites_of(version, seconds, units):
    """(function_id, where, class, growth by time, growth by unit)"""
    shift = 3 * VERSIONS.index(version)  # lines move from version to version
    found = []
    if VERSIONS.index(version) >= VERSIONS.index(PLANTED):
        found.append(("a1f0000000000001", f"serve.py:{31 + shift} handle",
                      "leak", lambda x: LEAK_BYTES * units * x))
    found.append(("c0a0000000000002", f"cache.py:{12 + shift} put", "warming",
                  lambda x: CACHE_BYTES * -math.expm1(-x * seconds / CACHE_S)))
    if random.random() < 0.01:
        found.append(("c4d0000000000003", f"serve.py:{77 + shift} decode",
                      "suspect", lambda x: 20 * BLOCK_BYTES * x))
    for function_id, where, kind, kept_by in found:
        growth = measure(kept_by, seconds, units)
        if growth is not None:
            yield function_id, where, kind, growth


def lines_of(number):
    """One process."""
    version = random.choice(VERSIONS)
    seconds = random.uniform(600, 7200)
    units = round(seconds * random.uniform(20, 200))
    day = 1 + VERSIONS.index(version) * 4 + random.random() * 4
    started = (f"2026-11-{int(day):02}T{int(day % 1 * 24):02}:"
               f"{number % 60:02}:00.000Z")
    sites = list(sites_of(version, seconds, units))
    process = {
        "schema": "seep-digest/1", "process": f"sim/{number}/{started}",
        "program": "python3 serve.py", "host": f"node-{number % 500}",
        "pid": number, "exe": "/usr/bin/python3", "labels": {
            "version": version}, "started": started, "state": "exited",
        "duration_s": seconds, "mode": "sampled", "exact": False,
        "sample_bytes": 524288, "inert": None, "first_sample_bytes": 524288,
        "seep_version": "simulated", "recording": "", "lost_events": 0,
        "over_s": seconds, "units": units, "rss_bytes": None,
        "verdict": "leak" if any(site[2] == "leak" for site in sites)
        else "bounded" if sites else "steady",
        "reassures": not sites, "hidden_bytes_per_s": 20000.0,
        "process_growth_bytes_per_s": None, "growing_sites": len(sites)}
    nothing = (None, None, None, (None, None))
    for function_id, where, kind, growth in sites or [nothing]:
        yield process | {
            "site": where and f"{zlib.crc32(where.encode()):016x}",
            "function_id": function_id, "space": where and "python",
            "device": None, "where": where, "class": kind, "live_bytes": None,
            "live_count": None, "peak_bytes": None,
            "growth_bytes_per_s": growth[0], "growth_bytes_per_unit": growth[1],
            "confidence": None, "pattern": None, "suppressed": False}


def main(processes, seed):
    random.seed(seed)
    for number in range(processes):
        for line in lines_of(number):
            print(json.dumps(line))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
