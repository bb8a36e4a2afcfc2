# SPDX-License-Identifier: LGPL-2.1-or-later
"""Small blocks that keep free memory apart: of a C program each is recorded, a
Python one is sampled, and a cache lets its blocks go again.

All run side by side, once, under `seep run`, which asks them by itself.
"""
import json
import pathlib
import subprocess
import time

import pytest

from command_line import LIMIT_S, PYTHON, SEEP, document, recordings, seep
from conftest import PRELOAD, environment, program

SOURCE = pathlib.Path(__file__).parent / "programs" / "pins.py"
SECONDS = 100
CASES = {
    "leak": ([program("pins"), "leak"], ["--exact"]),
    "python": ([PYTHON, SOURCE], []),
    "cache": ([program("pins"), "cache"], ["--exact"]),
}
GROWS = ("allocator-retention", "fragmentation")


def ask(path, until):
    """What `seep held` says once free memory is known to grow."""
    while True:
        done = seep("held", "--json", path)
        if done.returncode in (0, 4):
            pins = json.loads(done.stdout)["pins"]
            if pins is not None:
                return pins
        assert time.monotonic() < until, done
        time.sleep(2)


@pytest.fixture(name="runs", scope="module")
def runs_fixture(tmp_path_factory):
    """{name: its process as of a report}, and what `seep held` said of leak"""
    folders = {name: tmp_path_factory.mktemp(name) for name in CASES}
    started = {
        name: subprocess.Popen(
            [SEEP, "run", "-o", f"{folders[name]}/", "--quiet", "--no-report",
             *options, "--", *command, str(SECONDS)],
            env=environment() | {"SEEP_PRELOAD": str(PRELOAD)},
            start_new_session=True)
        for name, (command, options) in CASES.items()}
    until = time.monotonic() + SECONDS
    while not recordings(folders["leak"]):
        time.sleep(0.1)
    asked = ask(recordings(folders["leak"])[0], until)
    for process in started.values():
        assert process.wait(LIMIT_S) == 0
    return {name: document(*recordings(folder))["processes"][0]
            for name, folder in folders.items()} | {"asked": asked}


def test_the_line_of_what_stays_is_named(runs):
    verdict, pins = runs["leak"]["verdict"], runs["leak"]["pins"]

    assert verdict["class"] in GROWS
    assert "kept apart by blocks allocated at pins.c" in verdict["sentence"]
    assert pins["where"].endswith(" read_reply")
    assert pins["known_count"] >= 0.9 * pins["pin_count"]
    assert pins["sites"][0]["apart_bytes"] >= 0.9 * pins["apart_bytes"]
    assert pins["sentence"] in " ".join(verdict["reasons"])
    assert pins["remedy"] in " ".join(verdict["advice"])


def test_who_asks_is_told_the_same(runs):
    pins = runs["asked"]

    assert pins["where"].endswith(" read_reply")
    assert pins["pin_count"] > 100
    assert pins["apart_bytes"] > 100 * 60000
    assert pins["pin_bytes"] < 100 * pins["pin_count"]


def test_who_holds_what_was_not_sampled_is_named(runs):
    verdict, pins = runs["python"]["verdict"], runs["python"]["pins"]

    assert verdict["class"] in GROWS
    assert pins["pin_count"] > 100
    assert "held by pins.kept, a list of" in pins["held_by"]
    assert pins["held_by"] in " ".join(verdict["reasons"])


def test_what_a_cache_leaves_free_is_no_leak(runs):
    verdict = runs["cache"]["verdict"]

    assert verdict["class"] not in ("leak", "suspect")
    assert runs["cache"]["pins"] is None
