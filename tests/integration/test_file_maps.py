# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is mapped of files: leaked at each reload, or only as it should be.

All services run side by side, 40 s each: a leak of one is a leak at the right
line with the right rate, and its twin is none. Of whom nothing can be told, as
it was starved for a part of its run, runs again.
"""
import re
import subprocess

import pytest

from conftest import SEEP
from verdict_fixtures import (DEFAULT, EXACT, FILES, NOT_GROWING, PYTHON, Case,
                              job_name, run_all)

WEIGHTS_BYTES = 64 << 20
LEAKS = ("leak", "suspect")
STAYS = ("step", "steady", "plateau")
BOTH = (EXACT, DEFAULT)
CASES = [
    Case("file-leak-shared", LEAKS, "map_weights", LEAKS, True, BOTH),
    Case("file-leak-private", LEAKS, "map_weights", LEAKS, True, (DEFAULT,)),
    # For a while both are there; on a busy machine it is seen each time.
    Case("file-replaced", ("steady",), "map_weights", ("steady", "sawtooth"),
         False, BOTH),
    Case("file-once", NOT_GROWING, "map_weights", STAYS, False, (DEFAULT,)),
    Case("file-window", ("steady",), "map_log", ("steady",), False, BOTH),
    Case("file-plugin", ("steady",), None, (), False, (DEFAULT,)),
    Case("mmap-kept", LEAKS, "load_with_mmap", LEAKS, True, BOTH,
         program=FILES),
    Case("mmap-replaced", NOT_GROWING, "load_with_mmap", STAYS, False,
         (DEFAULT,), program=FILES),
    Case("memmap-kept", LEAKS, "load_with_memmap", LEAKS, True, (DEFAULT,),
         program=FILES),
    Case("memmap-replaced", NOT_GROWING, "load_with_memmap", STAYS, False,
         BOTH, program=FILES),
]
JOBS = [(case, sample) for case in CASES for sample in case.samples]
LEAKING = [job for job in JOBS if job[0].leaks]
CLEAN = [job for job in JOBS if not job[0].leaks]


@pytest.fixture(scope="module")
def outcomes():
    """{job: what was said}."""
    if not SEEP.exists():
        pytest.skip("the tool is not built")
    numpy = subprocess.run([PYTHON, "-c", "import numpy"], check=False,
                           capture_output=True)
    seen = run_all([job for job in JOBS if numpy.returncode == 0
                    or job[0].program != FILES], 1)
    again = [job for job, outcome in seen.items()
             if outcome.verdict == "insufficient-data"]
    print("again:", {job_name(job): seen[job].process["verdict"]["reasons"]
                     for job in again})
    return seen | (run_all(again, 2) if again else {})


def outcome_of(outcomes, job):
    if job not in outcomes:
        pytest.skip("numpy is not installed")
    return outcomes[job]


def file_sites(outcome):
    return [site for site in outcome.sites if site["space"] == "file"]


@pytest.mark.parametrize("job", LEAKING, ids=job_name)
def test_a_file_that_is_mapped_ever_again_is_a_leak(outcomes, job):
    outcome = outcome_of(outcomes, job)
    case, _ = job
    first = outcome.sites[0]
    assert outcome.verdict in case.verdicts, outcome.process["verdict"]
    assert first["space"] == "file"
    assert case.site in first["where"] or case.site in first["frames"]
    interval = first["growth_bytes_per_s"]
    half = interval["estimate"] - interval["low"]
    assert abs(interval["estimate"] - outcome.truth["leaked_per_s"]) <= \
        max(3 * half, 0.05 * outcome.truth["leaked_per_s"])


@pytest.mark.parametrize("job", LEAKING, ids=job_name)
def test_what_leaks_is_told_to_be_address_space(outcomes, job):
    verdict = outcome_of(outcomes, job).process["verdict"]
    assert "address space mapped from files" in verdict["sentence"]
    assert "host memory" not in verdict["sentence"]
    told = " ".join(verdict["reasons"])
    assert "never unmapped" in told
    assert re.search(r"at most \S+ \S+ is resident so far", told)
    # the page cache fills nothing
    assert verdict["forecast"] is None


@pytest.mark.parametrize("job", LEAKING, ids=job_name)
def test_it_is_no_private_memory(outcomes, job):
    memory = outcome_of(outcomes, job).process["memory"]
    assert memory["files"]["last_bytes"] > 30 * WEIGHTS_BYTES
    assert memory["tracked"]["last_bytes"] < WEIGHTS_BYTES
    assert memory["unexplained"]["last_bytes"] < WEIGHTS_BYTES
    assert memory["spaces"]["file"]["last_bytes"] > 30 * WEIGHTS_BYTES


@pytest.mark.parametrize("job", CLEAN, ids=job_name)
def test_what_is_unmapped_or_mapped_once_is_no_leak(outcomes, job):
    outcome = outcome_of(outcomes, job)
    case, _ = job
    assert outcome.verdict in case.verdicts, outcome.process["verdict"]
    assert not [site["where"] for site in outcome.sites
                if site["class"] in LEAKS]
    if case.site is not None:
        assert {site["class"] for site in file_sites(outcome)
                if case.site in site["frames"]} <= set(case.classes)
        assert file_sites(outcome) != []


def test_libraries_are_no_file_maps(outcomes):
    job, = [job for job in JOBS if job[0].name == "file-plugin"]
    assert file_sites(outcome_of(outcomes, job)) == []
