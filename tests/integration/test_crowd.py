# SPDX-License-Identifier: LGPL-2.1-or-later
"""Of crowds two small ones run at once, and a large one alone."""
import select
import subprocess
import sys

import pytest

import crowd
from crowd import SMALL

HERE = __file__.rsplit("/", 1)[0]
HOLD = """
import pathlib, sys
import crowd
crowd.BUILD = pathlib.Path(sys.argv[1])
with crowd.crowd(int(sys.argv[2])):
    print("in", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(name="begin")
def begin_(tmp_path):
    """Begins a crowd of so many in a process of its own."""
    begun = []

    def begin(count):
        begun.append(subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path), str(count)], cwd=HERE,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return begun[-1]

    yield begin
    for process in begun:
        if process.poll() is None:
            process.communicate("\n")


def is_in(process):
    return process.stdout.readline() == "in\n"


def test_two_small_ones_run_at_once(begin):
    assert is_in(begin(SMALL)) and is_in(begin(1))


@pytest.mark.parametrize("first, second", [(SMALL + 1, 1), (1, SMALL + 1)])
def test_a_large_one_runs_alone(begin, first, second):
    one = begin(first)
    assert is_in(one)
    two = begin(second)
    assert not select.select([two.stdout], [], [], 1)[0]
    one.communicate("\n")
    assert is_in(two)


def test_who_waits_for_all_is_not_passed(begin):
    one = begin(1)
    assert is_in(one)
    large = begin(SMALL + 1)
    assert not select.select([large.stdout], [], [], 1)[0]
    small = begin(1)
    assert not select.select([small.stdout], [], [], 1)[0]
    one.communicate("\n")
    assert is_in(large)
    large.communicate("\n")
    assert is_in(small)


def test_a_crowd_within_a_crowd_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(crowd, "BUILD", tmp_path)
    with crowd.crowd(1):
        with pytest.raises(AssertionError):
            with crowd.crowd(1):
                pass
