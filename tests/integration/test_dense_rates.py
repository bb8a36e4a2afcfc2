# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rates and verdicts of recordings that were thinned again and again.

Invariant: what is true comes of the program: the bytes it kept, by its word.
"""
import pathlib
import tempfile

import pytest

from conftest import LONG, frame_functions
from crowd import crowd
from test_dense import MIB, paced

RUNS = 16 if LONG else 3
SECONDS = 36  # a verdict needs 30
KEPT_A_S = 6 * MIB


def site_of(one, function):
    found = [site for site in one["sites"]
             if function in frame_functions(site)]
    return found[0] if found else None


def test_rates_are_right_and_nothing_clean_is_called_across_thinnings(folder):
    """A small recording holds few blocks, so the mean doubles again and again
    as the leak grows."""
    jobs = [(seed, kept) for seed in range(1, RUNS + 1)
            for kept in (KEPT_A_S, 0)]

    def one(job):
        seed, kept = job
        with tempfile.TemporaryDirectory(dir=folder) as name:
            held = 4 * MIB if kept else 60 * MIB
            return kept, paced(pathlib.Path(name), SECONDS, kept, 20 * MIB,
                               held, seed, SEEP_SIZE=2 * MIB)[:2]
    with crowd(len(jobs) if not LONG else 8) as pool:
        rows = list(pool.map(one, jobs))
    held = []
    for kept, (document, rate) in rows:
        verdict = document["verdict"]["class"]
        assert document["facts"]["thinnings"] >= (2 if kept else 1)
        if not kept:
            # on a busy machine its 60 MiB are full behind a tenth of the run
            assert verdict in ("steady", "bounded"), document["sites"][0]
            continue
        keep = site_of(document, "keep")
        growth = keep["growth_bytes_per_s"]
        assert (verdict, keep["class"]) == ("leak", "leak")
        assert growth["estimate"] == pytest.approx(rate, rel=0.25)
        held.append(growth["low"] <= rate <= growth["high"])
        assert keep["live_bytes"] == pytest.approx(rate * SECONDS, rel=0.25)
        turned = site_of(document, "turn_over")
        assert turned is None or turned["class"] not in ("leak", "suspect")
    assert sum(held) >= 0.6 * len(held), held
