# SPDX-License-Identifier: LGPL-2.1-or-later
"""One simulated call site of a kind, and the reader's verdicts on many."""
import json
import subprocess

import numpy

import clean
import leaking
import mixed
import sharp
import world

CLEAN = tuple(clean.KINDS)
UNDECIDABLE = tuple(clean.UNDECIDABLE)
LEAKING = tuple(leaking.KINDS)
SHARP = tuple(sharp.LEAKING)
SHARP_CLEAN = tuple(sharp.CLEAN)
MIXED = tuple(mixed.LEAKING)
MIXED_CLEAN = tuple(mixed.CLEAN)
KINDS = (CLEAN + UNDECIDABLE + LEAKING + SHARP + SHARP_CLEAN + MIXED
         + MIXED_CLEAN)
MAKERS = {**clean.KINDS, **clean.UNDECIDABLE, **leaking.KINDS,
          **sharp.LEAKING, **sharp.CLEAN, **mixed.LEAKING, **mixed.CLEAN}
BATCH = 500


def make(kind, seed, sampled, **given):
    """(site, the random numbers that are left); @given goes to the world.

    The same seed gives the same site, whichever others are made.
    """
    random = numpy.random.default_rng([*seed, KINDS.index(kind)])
    place = world.World(random, sampled, **given)
    site = MAKERS[kind](place)
    if not isinstance(site, world.Site):
        site = place.site(kind, site)
    return site, random


def written(line):
    return json.dumps(line, separators=(",", ":"))


def judged(replay, lines):
    """The rows of growth_replay for dictionaries, in their order, lazily."""
    batch = []
    for line in lines:
        batch.append(written(line))
        if len(batch) == BATCH:
            yield from run(replay, batch)
            batch = []
    if batch:
        yield from run(replay, batch)


def run(replay, batch):
    told = subprocess.run([replay], input="\n".join(batch) + "\n", text=True,
                          stdout=subprocess.PIPE, check=True).stdout
    rows = [json.loads(line) for line in told.splitlines()]
    if len(rows) != len(batch):
        raise ValueError(f"{len(rows)} verdicts for {len(batch)} lines")
    return rows
