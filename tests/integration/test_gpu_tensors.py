# SPDX-License-Identifier: LGPL-2.1-or-later
"""Services whose tensors lie in a cache, and whose leak it is said to be.

All run side by side on the fake driver, 33 s each, over a double of PyTorch's
cache: one that keeps tensors, the same with the driver's calls alone, one whose
shapes make the cache grow, and one that does nothing wrong.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import tempfile

import pytest

from conftest import BUILD, OURS, PRELOAD, SEEP
from command_line import PYTHON, document, recordings

PROGRAMS = pathlib.Path(__file__).parent / "programs"
LIBRARIES = BUILD / "tests/integration/programs"
CACHE = LIBRARIES / "libc10_cuda_double.so"
DRIVER = os.environ.get("SEEP_FAKE_CUDA", "")
CASES = {"leak": "tensors", "driver": "driver", "shapes": "tensors",
         "clean": "tensors"}
SECONDS = 33
LIMIT_S = SECONDS + 90

if not DRIVER or not CACHE.exists() or not SEEP.exists():
    pytest.skip("the tool, the driver or the cache is not built",
                allow_module_level=True)


def variables():
    """Of a process that finds the fake driver."""
    kept = {k: v for k, v in os.environ.items() if k not in OURS}
    return kept | {
        "SEEP_PRELOAD": str(PRELOAD), "SEEP_FAKE_CUDA_MEMORY": "4G",
        "LD_LIBRARY_PATH": f"{os.path.dirname(DRIVER)}:{LIBRARIES}"}


class Outcome:
    """What a service knew of itself, and what is said of it."""

    def __init__(self, case, folder):
        done = subprocess.run(
            [SEEP, "run", "--no-report", "--cuda", CASES[case], "-o",
             f"{folder}/", "--", PYTHON, PROGRAMS / "torch_worker.py", CACHE,
             "leak" if case == "driver" else case, str(SECONDS)],
            env=variables(), cwd=folder, capture_output=True, timeout=LIMIT_S,
            check=True)
        assert done.stderr == b""
        self.truth = json.loads(done.stdout)
        path, = recordings(folder)
        process, = document(path)["processes"]
        self.verdict = process["verdict"]
        self.sites = process["sites"]
        self.device, = process["devices"]
        self.losses = process["losses"]

    def first(self, space):
        """The first site of a space."""
        return next(site for site in self.sites if site["space"] == space)


def run_case(case):
    """One service from its start to its report."""
    with tempfile.TemporaryDirectory(prefix="seep-test-") as folder:
        return Outcome(case, folder)


@pytest.fixture(scope="module")
def outcomes():
    """{case: what was said of it}, all run side by side."""
    with concurrent.futures.ThreadPoolExecutor(len(CASES)) as pool:
        return dict(zip(CASES, pool.map(run_case, CASES)))


def is_inside(value, interval):
    """Does an interval hold it?"""
    return interval["low"] <= value <= interval["high"]


def test_a_leak_of_tensors_is_told_with_its_line(outcomes):
    outcome = outcomes["leak"]
    site = outcome.sites[0]
    assert outcome.verdict["class"] == "leak"
    assert (site["class"], site["space"], site["device"]) == (
        "leak", "tensor", 0)
    assert site["where"].startswith("torch_worker.py:")
    assert site["where"].endswith(" keep_reply")
    assert site["live_bytes"] == outcome.truth["leaked_bytes"]
    assert "keep_reply" in outcome.verdict["sentence"]


def test_the_planted_rate_is_in_the_interval(outcomes):
    outcome = outcomes["leak"]
    truth = outcome.truth["leaked_per_s"]
    assert is_inside(truth, outcome.sites[0]["growth_bytes_per_s"])
    assert is_inside(truth, outcome.verdict["growth_bytes_per_s"])


def test_segments_stand_apart_and_count_once(outcomes):
    outcome = outcomes["leak"]
    segments = [site for site in outcome.sites if site["space"] == "device"]
    assert segments and all(site["backs_tensors"] for site in segments)
    assert not [site for site in segments
                if site["class"] in ("leak", "suspect")]
    assert outcome.verdict["growing_count"] == 1
    assert not outcome.device["tensor"]["fragments"]


def test_without_tensors_segments_are_the_leak(outcomes):
    outcome = outcomes["driver"]
    site = outcome.sites[0]
    assert (outcome.verdict["class"], site["class"], site["space"]) == (
        "leak", "leak", "device")
    assert not site["backs_tensors"]
    assert not [s for s in outcome.sites if s["space"] == "tensor"]


def test_a_cache_that_shapes_make_grow_is_told_as_that(outcomes):
    outcome = outcomes["shapes"]
    assert outcome.verdict["class"] == "fragmentation"
    assert outcome.verdict["device"] == 0
    assert outcome.device["tensor"]["fragments"]
    assert not [site for site in outcome.sites
                if site["space"] in ("device", "tensor")
                and site["class"] == "leak"]


def test_a_cache_that_holds_what_it_needs_is_no_leak(outcomes):
    outcome = outcomes["clean"]
    assert outcome.verdict["class"] in ("steady", "bounded")
    assert not outcome.device["tensor"]["fragments"]


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_lost(outcomes, case):
    assert not [name for name, count in outcomes[case].losses.items()
                if name.startswith("cuda") and count != 0]
