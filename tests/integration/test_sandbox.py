# SPDX-License-Identifier: LGPL-2.1-or-later
"""Threads that may only read, write, exit and return from handlers any more:
captures go on, nothing is killed, and no event is lost.
"""
import pathlib
import sys

import pytest

from conftest import PROGRAMS, dump, execute, program, report, sums_by_site
from test_python_frames import known

PYTHON_SANDBOX = pathlib.Path(__file__).parent / "programs/python_sandbox.py"
LIBRARY = PROGRAMS / "libsandbox_library.so"
ROUNDS = 5000
PYTHON_ROUNDS = 100
WORDS = b"went on in the sandbox\n"
OUTERMOST = {"_start", "clone3", "__clone", "clone"}


def went_on(argv, folder, sample, **options):
    run = execute(argv, folder, sample=sample, **options)
    if run.status == 77:
        pytest.skip("no seccomp here")
    assert run.seen == (0, WORDS, b"")
    path, = run.recordings
    return path


@pytest.mark.parametrize("sample", [1, 4096], ids=["exact", "4KiB"])
def test_threads_go_on_each_with_its_stack(folder, sample):
    document = dump(went_on([program("sandbox"), ROUNDS], folder, sample))
    assert document["counters"]["restricted"] == 1
    assert document["losses"] == {}
    # 2 blocks a round, of which one is kept; the late one has one turn.
    blocks = {"site_main": 4 * ROUNDS, "site_known": 4 * ROUNDS,
              "site_late": 2 * ROUNDS}
    if "site_handler" in str(document["sites"]):
        blocks["site_handler"] = 200
    sites = sums_by_site(document["sites"], [
        {"name": name, "space": "heap"} for name in blocks])
    for name, count in blocks.items():
        if sample == 1:
            assert sites[name]["allocated_count"] == count
            assert sites[name]["live_count"] == count / 2
        elif count > 1000:
            assert 0.7 < sites[name]["allocated_count"] / count < 1.4
    for site in document["sites"]:
        if set(site["frames"]) & set(blocks):
            assert site["cut"] == 0 and site["frames"][-1] in OUTERMOST, site


def innermost(site):
    """The last name of the innermost Python function."""
    for frame in site["frames"]:
        if frame["kind"] == "python":
            return frame["function"].split(".")[-1]
    return None


@pytest.mark.parametrize("path", known())
@pytest.mark.parametrize("python", ["objects", "frames"])
def test_python_goes_on_with_its_lines(folder, path, python):
    recording = went_on([path, "-S", "-E", PYTHON_SANDBOX, LIBRARY,
                         PYTHON_ROUNDS], folder, 1, SEEP_PYTHON=python)
    process, = report(recording)["processes"]
    assert process["process"]["python"]["state"] == "on"
    assert process["facts"]["restricted"] == 1
    # Of three times, two were under the filter; each block stays.
    for name, least in (("large_blocks", 3000), ("numbers", 2000),
                        ("late", 2500), ("in_c", 333), ("failing", 2200)):
        live = sum(site["live_bytes"] for site in process["sites"]
                   if innermost(site) == name)
        assert 1 <= live / (3 * PYTHON_ROUNDS * least) < 1.15, name
    borrowed = [site for site in process["sites"]
                if any(frame["function"] == "site_borrowed"
                       for frame in site["frames"])]
    # Without the GIL it takes a system call to read Python's frames.
    assert sum(site["allocated_count"] for site in borrowed) == \
        4 * PYTHON_ROUNDS
    assert {innermost(site) for site in borrowed} <= {"in_a_thread", None}


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-s"]))
