# SPDX-License-Identifier: LGPL-2.1-or-later
"""A run is judged by its life, not by what is freed at its end."""
import pytest

from conftest import dump, execute, need, program, report

PYTHON = "/usr/bin/python3"
KEEP = """
kept = [bytearray(100000) for _ in range({count})]
gone = [bytearray(100000) for _ in range({count})]
del gone
print(len(kept))
"""


def bytearrays(document):
    """Live bytes of the sites that made bytearrays."""
    return sum(site["live_bytes"] for site in document["processes"][0]["sites"]
               if any("PyByteArray" in (frame["function"] or "")
                      for frame in site["frames"]))


@pytest.mark.parametrize("sample", [1, 16384])
def test_what_python_frees_when_it_finalises_counts_as_kept(folder, sample):
    need(PYTHON)
    run = execute([PYTHON, "-c", KEEP.format(count=200)], folder,
                  sample=sample)
    assert run.seen == (0, b"200\n", b"")
    document = report(*run.recordings)
    assert document["processes"][0]["process"]["state"] == "exited"
    assert bytearrays(document) == pytest.approx(200 * 100001, rel=0.05)


def test_a_killed_python_says_the_same(folder):
    need(PYTHON)
    script = KEEP.format(count=200) + "import os; os.kill(os.getpid(), 9)"
    run = execute([PYTHON, "-u", "-c", script], folder, sample=1)
    assert run.seen[0] == -9
    assert bytearrays(report(*run.recordings)) == pytest.approx(
        200 * 100001, rel=0.02)


@pytest.mark.parametrize("how", ["return", "main", "twice", "signal", "thread",
                                 "fork", "vfork", "quick"])
def test_exit_is_as_without_us(folder, how):
    """Status, handlers and what they print, however exit() is reached."""
    argv = [program("exit_cases"), how]
    plain = execute(argv)
    recorded = execute(argv, folder, sample=1)
    assert recorded.seen == plain.seen
    assert recorded.recordings


def test_what_handlers_free_is_recorded(folder):
    run = execute([program("exit_cases"), "main"], folder, sample=1)
    assert run.status == 4
    sites = report(*run.recordings)["processes"][0]["sites"]
    blocks = [site for site in sites if site["allocated_count"] == 100]
    assert [site["live_bytes"] for site in blocks] == [0]


def test_no_stack_shows_that_exit_was_forwarded(folder):
    run = execute([program("exit_cases"), "main"], folder, sample=1)
    sites = report(*run.recordings)["processes"][0]["sites"]
    frames = next([frame["function"] for frame in site["frames"]]
                  for site in sites if any(frame["function"] == "allocate"
                                           for frame in site["frames"]))
    assert frames.count("exit") == 1
    assert "main" in frames


def test_exit_in_the_middle_of_a_hook_is_an_end_as_any(folder):
    assert execute([program("exit_in_hook")]).status == 3
    run = execute([program("exit_in_hook")], folder, sample=1)
    assert run.seen == (6, b"", b"")
    assert dump(*run.recordings)["counters"]["nested"] > 0
    process, = report(*run.recordings)["processes"]
    assert process["process"]["state"] == "exited"


def test_the_end_of_a_child_is_not_its_parents(folder):
    """One that did nothing else has no recording, and leaves none of its
    parent's marked: that is killed later."""
    run = execute([program("fork_cases"), "exit_at_once"], folder,
                  sample="1GiB")
    assert run.seen == (-9, b"", b"")
    process, = report(*run.recordings)["processes"]
    assert not process["process"]["fork"]
    assert process["process"]["state"] != "exited"
