# SPDX-License-Identifier: LGPL-2.1-or-later
"""Python's own objects where samples are taken, and where they are left alone:
by other allocators, by a Python that comes late or that comes again."""
import pytest

from conftest import LONG, PRELOAD, execute, program, report
from object_fixtures import (PROGRAM, by_turns, has_arenas, is_recorded,
                             libraries, live_bytes, processes_of, run,
                             sites_of)
from test_python_frames import EMBED, LIBRARY, known


# Frees are left to malloc where samples are far apart, and not where near.
@pytest.mark.parametrize("path,sample", by_turns(1 << 14, 1 << 16))
def test_samples_stand_for_all_and_arenas_are_not_counted_too(folder, path,
                                                              sample):
    _, (process,) = run(folder, path, *["small"] * 80, sample=sample)
    assert is_recorded(process)
    assert live_bytes(process, "small") == pytest.approx(80 * 3000 * 100,
                                                         rel=0.3)
    assert process["counters"]["allocator_map_bytes"] >= 4 << 20
    assert not has_arenas(process)


@pytest.mark.parametrize("path,way", by_turns(*(
    (before, sample) for before in ((), ("-X", "tracemalloc"))
    for sample in (1 << 14, 1 << 16))))
def test_what_was_sampled_is_seen_to_go(folder, path, way):
    before, sample = way
    _, (process,) = run(folder, path, *["small"] * 40, "gone", before=before,
                        sample=sample)
    sites = [site for name in ("small", "halved", "resized", "grow")
             for site in sites_of(process, name)]
    assert sum(site["allocated_count"] for site in sites) > 100
    # What is under way when a line is left may be kept for the next, and free
    # lists keep some of each kind.
    assert sum(site["live_bytes"] for site in sites) <= 4 * sample + sum(
        site["allocated_bytes"] for site in sites) / 10
    assert process["counters"]["lost_frees_closed"] == 0


# Of 64 bytes each Python's cache of methods has room for 512 of one type.
@pytest.mark.parametrize("path", known())
def test_names_that_are_looked_up_once_do_not_stay(folder, path):
    _, (process,) = run(folder, path, "looked_up", sample=1 << 16)
    assert is_recorded(process)
    assert sum(site["allocated_bytes"] for site in sites_of(
        process, "looked_up")) > 10 << 20
    assert live_bytes(process, "looked_up") <= 4 << 16


@pytest.mark.parametrize("path", known())
def test_texts_that_are_sampled_are_what_was_written(folder, path):
    _, (process,) = run(folder, path, "written", sample=1 << 16)
    assert is_recorded(process)
    sites = sites_of(process, "written")
    assert sum(site["allocated_bytes"] for site in sites) > 1 << 20


@pytest.mark.parametrize("path", known())
def test_a_child_frees_its_parents_samples_and_has_its_own(folder, path):
    _, processes = run(folder, path, *["small"] * 60, "forked", "threads",
                       "gone", sample=1 << 16)
    parent, = (one for one in processes if not one["is_fork"])
    assert live_bytes(parent, "small") <= 4 << 16
    assert live_bytes(parent, "in_a_thread") <= 4 << 16
    assert [one["counters"]["lost_frees_closed"] for one in processes] == (
        [0] * len(processes))
    for child in (one for one in processes if one["is_fork"]):
        assert sites_of(child, "small") == []


# Two interpreters unless at length: the one that is tested most, and another.
MODES = [(path, how) for path in known()[:None if LONG else 2]
         for how in ("malloc", "dev", *(() if path != known()[0] else (
             "debug", "malloc_debug", "pymalloc_debug", "pymalloc")))]


def live_count(process, function, size):
    """Of blocks of about that size on the heap: those of a line can be of
    several stacks, since Python adapts its code."""
    return sum(site["live_count"]
               for site in sites_of(process, function, "heap")
               if site["live_count"]
               and size <= site["live_bytes"] / site["live_count"] < 2 * size)


@pytest.mark.parametrize("path,how", MODES)
def test_allocators_that_python_sets_are_said(folder, path, how):
    before = ("-X", "dev") if how == "dev" else ()
    more = {} if how == "dev" else {"PYTHONMALLOC": how}
    done = execute([path, *before, "-S", "-W", "ignore", PROGRAM, "small",
                    "large", "waits"], folder, sample=1, SEEP_PYTHON="objects",
                   **more)
    assert (done.status, done.stderr) == (0, b"")
    process, = processes_of(done)
    assert process["python_objects"].endswith(
        "the program set other allocators")
    assert sites_of(process, "large", "python") == []
    assert live_count(process, "large", 70000) == 50
    small = live_count(process, "small", 100) == 3000
    assert small == ("malloc" == how or "malloc_debug" == how)
    assert has_arenas(process) != small


@pytest.mark.parametrize("path", known())
def test_the_end_of_python_is_as_without_us(folder, path):
    done = execute([path, "-S", "-E", PROGRAM, "at_exit", "threads"], folder,
                   sample=1, SEEP_PYTHON="objects")
    assert (done.status, done.stderr) == (0, b"")


@pytest.mark.parametrize("python", ["off", "0", "frames"])
def test_they_are_left_alone_unless_asked_for(folder, python):
    done = execute([known()[0], "-S", "-E", PROGRAM, "small"], folder,
                   sample=1, SEEP_PYTHON=python)
    process, = report("--no-symbols", "--no-series",
                      *done.recordings)["processes"]
    said = process["process"]["python"]
    assert (said is None) == (python != "frames")
    assert said is None or said["objects"].startswith("not recorded")
    assert not [site for site in process["sites"]
                if site["space"] == "python"]


@pytest.mark.parametrize("library,home", libraries())
def test_python_that_comes_late_is_not_touched(folder, library, home):
    if not LIBRARY.exists():
        pytest.skip("not built")
    done = execute([EMBED, library, LIBRARY, "-S", PROGRAM, "small"], folder,
                   sample=1, SEEP_PYTHON="objects", PYTHONHOME=home)
    assert (done.status, done.stderr) == (0, b"")
    process, = processes_of(done)
    assert process["python_objects"].endswith("not there at the start")


@pytest.mark.parametrize("library,home", libraries())
def test_python_may_begin_again(folder, library, home):
    text = "kept = [bytes(67) for _ in range(3000)]; print(len(kept))"
    variables = {"SEEP_PYTHON": "objects", "PYTHONHOME": home}
    done = execute([program("python_restart"), text], folder, sample=1,
                   LD_PRELOAD=f"{PRELOAD}:{library}", **variables)
    assert done.stdout == b"3000\n" * 3
    assert (done.status, done.stderr) == (0, b"")
