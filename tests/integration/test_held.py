# SPDX-License-Identifier: LGPL-2.1-or-later
"""`seep diff` by what is held: a service whose cache has a bound that is set by
a variable.

All runs go side by side, once. The cache is full early in a life, whatever the
clock says; runs are too short for growth, of which nothing is asserted.
"""
import concurrent.futures
import itertools
import json
import pathlib

import pytest

from command_line import run, seep
from conftest import SEEP

SOURCE = pathlib.Path(__file__).parent / "programs" / "held.py"
PYTHON = "/usr/bin/python3"
SECONDS = 12
LARGE, SMALL = 600, 8  # entries of 100,000 bytes
EQUAL = 4  # runs: twelve pairs
MIB = 1 << 20


@pytest.fixture(name="runs", scope="module")
def runs_fixture(tmp_path_factory):
    """{name: folder with one recording}"""
    if not SEEP.exists():
        pytest.skip("the tool is not built")
    cases = {f"large-{i}": (LARGE, SECONDS) for i in range(EQUAL)} | {
        "long": (LARGE, 1.5 * SECONDS), "small": (SMALL, SECONDS)}
    folders = {name: tmp_path_factory.mktemp(name) for name in cases}

    def record(name):
        capacity, seconds = cases[name]
        done = run(folders[name], PYTHON, SOURCE, seconds,
                   options=("--quiet", "--no-report"),
                   CACHE_CAPACITY=str(capacity), SEEP_SIZE="16MiB")
        assert done.returncode == 0, done.stderr

    with concurrent.futures.ThreadPoolExecutor(len(cases)) as threads:
        list(threads.map(record, cases))
    return folders


def diff(runs, before, now):
    """The only program of the document, its sentence, and the exit status."""
    done = seep("diff", "--json", runs[before], runs[now])
    document = json.loads(done.stdout)
    program, = document["programs"]
    return program, document, done.returncode


def test_equal_runs_hold_the_same(runs):
    names = [f"large-{i}" for i in range(EQUAL)]
    for before, now in itertools.permutations(names, 2):
        program, document, code = diff(runs, before, now)

        assert program["held_outcome"] == "same", document["sentence"]
        assert program["held_at_s"] is None
        assert code in (0, 4)


def test_a_smaller_cache_is_better_and_its_line_is_named(runs):
    program, document, code = diff(runs, "large-0", "small")
    process, line = program["held"][0], program["held"][1]

    assert program["held_outcome"] == "better"
    assert code in (0, 4)
    assert " held at held.py:" in document["sentence"]
    assert " create" in document["sentence"]
    assert process["holder"] == "process" and line["holder"] == "site"
    assert line["where"].endswith(" create")
    true = (SMALL - LARGE) * 100000
    for held in process, line:
        assert held["outcome"] == "better"
        assert held["change"]["estimate"] == pytest.approx(true, rel=.3)
        assert held["change"]["low"] <= held["change"]["estimate"] < 0
        assert held["now_peak_bytes"] < held["before_peak_bytes"]


def test_a_larger_one_is_worse_although_nothing_grows(runs):
    program, document, code = diff(runs, "small", "large-0")

    assert (program["held_outcome"], code) == ("worse", 3)
    assert document["outcome"] == "worse"
    assert document["sentence"].startswith("WORSE: +")
    text = seep("diff", runs["small"], runs["large-0"]).stdout.decode()
    assert "held before  held now" in text
    assert "\nnext    seep report --stack --site " in text


def test_a_longer_life_is_compared_at_one_age(runs):
    program, document, _ = diff(runs, "large-0", "long")

    assert program["held_outcome"] == "same", document["sentence"]
    assert 0.5 * SECONDS < program["held_at_s"] < 1.4 * SECONDS
    assert diff(runs, "small", "long")[0]["held_outcome"] == "worse"
