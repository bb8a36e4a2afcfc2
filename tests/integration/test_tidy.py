# SPDX-License-Identifier: LGPL-2.1-or-later
"""A process that frees what it leaked, at its end, is judged as if it had been
killed before. Each way to end has a twin that was; all run side by side, 44 s.
SEEP_TEST_LONG=1 runs every kind in every mode, not a choice of them.
"""
import json
import math
import shutil

import pytest

from conftest import LONG, SEEP
from tidy_fixtures import ABRUPT, DENSE, ENDS, EXACT, PYTHON, Job, run_all

CLEAN = {"tidy": ("cache", "batch", "quiet"), "python": ("cache",)}
NO_LEAK = ("bounded", "steady", "insufficient-data", "allocator-retention")
# What the reader can go back to: three edges, 4.3 s apart in a run of 44 s.
REACH_S = 15

LEAKS = [Job(program, "leak", end, sample)
         for program in ENDS for end in ENDS[program]
         for sample in (EXACT, DENSE)]
# Beside the leak buffers that are never written to: ten times as many bytes.
LEAKS += [Job("tidy", "beside", end, DENSE)
          for end in (ENDS["tidy"] if LONG else ("return", "exit"))]
OTHERS = [Job(program, kind, end, sample)
          for program in ENDS for kind in CLEAN[program]
          for end in (ENDS[program] if LONG else ENDS[program][::3])
          for sample in ((EXACT, DENSE) if LONG else (EXACT,))]


@pytest.fixture(scope="module")
def outcomes():
    """{job: what was said of it}, with the twins."""
    if not SEEP.exists():
        pytest.skip("the tool is not built")
    jobs = [job for job in LEAKS + OTHERS
            if job.program != "python" or shutil.which(PYTHON)]
    return run_all(sorted(set(jobs) | {job.abrupt for job in jobs},
                          key=lambda job: job.name))


def agree(one, other):
    """Two rates: nearer than four of their standard errors.

    Their 95 % intervals (1.96 each way) miss each other once in 170 pairs, and
    a run of all tests has a dozen.
    """
    errors = [(rate["high"] - rate["low"]) / (2 * 1.96)
              for rate in (one, other)]
    return abs(one["estimate"] - other["estimate"]) < 4 * math.hypot(*errors)


@pytest.mark.parametrize("job", LEAKS, ids=lambda job: job.name)
def test_a_leak_that_was_freed_at_the_end_is_told_as_its_twin(outcomes, job):
    tidy, abrupt = outcomes[job], outcomes[job.abrupt]
    assert abrupt.verdict["class"] == "leak", json.dumps(abrupt.verdict)
    assert tidy.verdict["class"] == "leak", json.dumps(tidy.verdict)
    assert tidy.first["where"] == abrupt.first["where"]
    assert agree(tidy.rate, abrupt.rate), (tidy.rate, abrupt.rate)
    truth = tidy.truth["leaked_per_s"]
    width = max(tidy.rate["high"] - tidy.rate["low"], 0.05 * truth)
    assert abs(tidy.rate["estimate"] - truth) < 1.5 * width, tidy.rate


@pytest.mark.parametrize("job", LEAKS, ids=lambda job: job.name)
def test_what_is_judged_is_the_time_before_the_end(outcomes, job):
    process = outcomes[job].process["process"]
    end = process["end"]
    if end is None:  # Python's finalisation is not recorded at all
        assert job.program == "python"
        return
    assert end["judged_before"] and not end["unreachable"]
    assert 30 <= end["judged_to_s"] <= process["duration_s"]
    assert process["duration_s"] - end["judged_to_s"] < REACH_S
    assert end["by_exit"] == (job.end == "exit")
    kept = outcomes[job].truth["leaked_per_s"] * end["judged_to_s"]
    assert end["freed_bytes"] > 0.8 * kept


@pytest.mark.parametrize("job", OTHERS, ids=lambda job: job.name)
def test_what_does_not_leak_is_no_leak_for_its_end(outcomes, job):
    tidy, abrupt = outcomes[job], outcomes[job.abrupt]
    assert tidy.verdict["class"] in NO_LEAK, tidy.verdict
    assert abrupt.verdict["class"] in NO_LEAK, abrupt.verdict
    assert not [site["where"] for site in tidy.process["sites"]
                if site["class"] == "leak"]


def test_who_was_killed_is_judged_to_the_end(outcomes):
    told = {job.name: outcome.process["process"]["end"]
            for job, outcome in outcomes.items()
            if job.end == ABRUPT and job.kind == "leak"}
    assert told and not any(told.values()), told
