# SPDX-License-Identifier: LGPL-2.1-or-later
"""Processes of one command that come and go are one population: a leak is found
by their age, although each is too short, and a cache that each of them fills is
none.

Everything runs at once, once. What is kept is so many blocks of each request,
and requests come by the clock: on a busy machine later, and no fewer.
"""
import concurrent.futures
import json
import pathlib

import pytest

from command_line import seep
from conftest import SEEP, execute, report

SOURCE = pathlib.Path(__file__).parent / "programs" / "generations.py"
PYTHON = "/usr/bin/python3"
SIZE = 8 << 20
SECONDS = 5
COUNT = 6
LIMIT_S = 240
KINDS = ("leak", "cache", "quiet")


@pytest.fixture(name="runs", scope="module")
def runs_fixture(tmp_path_factory):
    """{kind: (folder, document)}"""
    if not SEEP.exists():
        pytest.skip("the tool is not built")
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in KINDS}

    def run(kind):
        done = execute((PYTHON, SOURCE, kind, SECONDS, COUNT), folders[kind],
                       timeout=LIMIT_S, SEEP_SIZE=SIZE)
        assert done.status == 0, done.stderr
        assert len(json.loads(done.stdout)) == COUNT
        return folders[kind], report(folders[kind])

    with concurrent.futures.ThreadPoolExecutor(len(KINDS)) as threads:
        return dict(zip(KINDS, threads.map(run, KINDS)))


def family_of(document):
    """That of the program, and not of a shell script that starts it."""
    family, = [each for each in document["families"]
               if each["name"].endswith("generations.py")]
    return family


def age_at(family, function):
    """What is said of the line in that function, by age."""
    return next(each["kept"]["age"] for each in family["sites"]
                if each["where"].endswith(" " + function))


def test_a_leak_in_each_generation_is_one_leak_with_its_line(runs):
    folder, document = runs["leak"]
    family = family_of(document)
    age = age_at(family, "keep")

    assert all(each["verdict"]["class"] == "insufficient-data"
               for each in document["processes"])
    assert family["class"] == document["summary"]["class"] == "leak"
    assert age["trend"] == "grows"
    assert age["children"] >= COUNT // 2
    assert age["rising"] == age["children"]
    assert age["bytes_per_s"]["low"] > 0
    text = seep("report", folder, COLUMNS="400").stdout.decode()
    assert any(line.startswith("LEAK  ") and " keep keeps " in line
               and ", more the older it gets: " in line
               for line in text.splitlines()), text


def test_a_cache_that_each_fills_is_no_leak(runs):
    family = family_of(runs["cache"][1])
    age = age_at(family, "remember")

    assert family["class"] in ("insufficient-data", "bounded")
    assert age["trend"] == "not-enough-data"
    assert age["flattens"]
    assert "let a process live longer" in family["sentence"]


def test_what_each_loads_as_it_begins_is_no_leak(runs):
    family = family_of(runs["quiet"][1])

    assert family["class"] in ("insufficient-data", "bounded")
    assert age_at(family, "load")["trend"] == "not-enough-data"
    assert not age_at(family, "load")["flattens"]
