# SPDX-License-Identifier: LGPL-2.1-or-later
"""Python's own objects: to the byte, once, and whatever else is going on."""
import ast
import pathlib
import subprocess

import pytest

from conftest import LONG, PRELOAD, execute, program, report
from test_python_frames import EMBED, LIBRARY, WHERE, known

PROGRAM = pathlib.Path(__file__).parent / "programs" / "python_objects.py"
KINDS = ("small", "large", "plain", "bodies", "churn", "halved", "resized")


def run(folder, path, *what, before=(), sample=1, python="objects",
        **variables):
    """(what should be found, each recording's process)"""
    done = execute([path, "-S", "-E", *before, PROGRAM, *what], folder,
                   sample=sample, SEEP_PYTHON=python, **variables)
    assert (done.status, done.stderr) == (0, b"")
    return (ast.literal_eval(done.stdout.decode()),
            report("--by", "stack", *done.recordings)["processes"])


def objects_of(process):
    return process["process"]["python"]["objects"]


def line_of(site):
    """The innermost Python function of a site, "" if it has none."""
    for frame in site["frames"]:
        if frame["kind"] == "python":
            return frame["function"].split(".")[-1]
    return ""


def sites_of(process, function, space=None):
    return [site for site in process["sites"] if line_of(site) == function
            and space in (None, site["space"])]


def is_there(process, function, row, space="python"):
    """That many blocks of that size were made and kept. They can be of several
    stacks: a line that ran often is run in another way."""
    size, made, held = row
    sites = sites_of(process, function, space)
    if made is None:
        return size == sum(site["live_bytes"] for site in sites)
    same = [site for site in sites
            if site["allocated_bytes"] == size * site["allocated_count"]]
    return (made, held * size, held) == tuple(
        sum(site[key] for site in same)
        for key in ("allocated_count", "live_bytes", "live_count"))


def live_bytes(process, function):
    """An interpreter that adapts its code has more than one stack a line."""
    return sum(site["live_bytes"] for site in process["sites"]
               if line_of(site) == function and site["space"] == "python")


def has_arenas(process):
    return any(site["space"] == "mapped" and site["largest_bytes"] >= 1 << 18
               for site in process["sites"])


def missing(process, expected, space="python"):
    return [(function, row, [(site["space"], site["allocated_bytes"],
                              site["allocated_count"], site["live_bytes"])
                             for site in sites_of(process, function)])
            for function, rows in expected.items() for row in rows
            if not is_there(process, function, row, space)]


@pytest.mark.parametrize("path", known())
def test_objects_are_told_to_the_byte_and_once(folder, path):
    expected, (process,) = run(folder, path, *KINDS)
    assert objects_of(process) == "recorded"
    assert missing(process, expected) == []
    for function in expected:
        assert sites_of(process, function, "heap") == []
        assert sites_of(process, function, "mapped") == []
    assert not any(process["losses"].values())
    # A free beneath ours that was told again would be one of no known block.
    assert process["facts"]["foreign_frees"] == 0
    assert process["facts"]["allocator_map_bytes"] >= 1 << 20
    assert not has_arenas(process)


@pytest.mark.parametrize("path", known())
def test_without_them_arenas_are_mapped_and_small_objects_unseen(folder, path):
    expected, (process,) = run(folder, path, "small", "large",
                               python="frames")
    assert objects_of(process).startswith("not recorded: SEEP_PYTHON=objects")
    assert missing(process, {"large": expected["large"]}, "heap") == []
    assert sites_of(process, "small", "python") == []
    assert process["facts"]["allocator_map_bytes"] == 0
    assert has_arenas(process)


# Frees are left to malloc where samples are far apart, and not where near.
@pytest.mark.parametrize("sample", [1 << 14, 1 << 16])
@pytest.mark.parametrize("path", known())
def test_samples_stand_for_all_and_arenas_are_not_counted_too(folder, path,
                                                              sample):
    _, (process,) = run(folder, path, *["small"] * 80, sample=sample)
    assert objects_of(process) == "recorded"
    assert live_bytes(process, "small") == pytest.approx(80 * 3000 * 100,
                                                         rel=0.3)
    assert process["facts"]["allocator_map_bytes"] >= 4 << 20
    assert not has_arenas(process)


@pytest.mark.parametrize("sample", [1 << 14, 1 << 16])
@pytest.mark.parametrize("before", [(), ("-X", "tracemalloc")], ids=len)
@pytest.mark.parametrize("path", known())
def test_what_was_sampled_is_seen_to_go(folder, path, before, sample):
    _, (process,) = run(folder, path, *["small"] * 40, "gone", before=before,
                        sample=sample)
    sites = [site for name in ("small", "halved", "resized", "grow")
             for site in sites_of(process, name)]
    assert sum(site["allocated_count"] for site in sites) > 100
    # What is under way when a line is left may be kept for the next, and free
    # lists keep some of each kind.
    assert sum(site["live_bytes"] for site in sites) <= 4 * sample + sum(
        site["allocated_bytes"] for site in sites) / 10
    assert process["losses"]["lost_frees_closed"] == 0


@pytest.mark.parametrize("path", known())
def test_every_thread_and_every_child_has_its_own(folder, path):
    expected, processes = run(folder, path, "threads", "forked")
    parent, = (one for one in processes if not one["process"]["fork"])
    child, = (one for one in processes if one["process"]["fork"])
    in_child = {"in_a_child": expected.pop("in_a_child")}
    assert missing(parent, expected) == []
    assert missing(child, in_child) == []
    assert objects_of(child) == "recorded"
    assert sites_of(child, "small") == []


@pytest.mark.parametrize("path", known())
def test_a_child_frees_its_parents_samples_and_has_its_own(folder, path):
    _, processes = run(folder, path, *["small"] * 60, "forked", "threads",
                       "gone", sample=1 << 16)
    parent, = (one for one in processes if not one["process"]["fork"])
    assert live_bytes(parent, "small") <= 4 << 16
    assert live_bytes(parent, "in_a_thread") <= 4 << 16
    assert [one["losses"]["lost_frees_closed"] for one in processes] == (
        [0] * len(processes))
    for child in (one for one in processes if one["process"]["fork"]):
        assert sites_of(child, "small") == []


@pytest.mark.parametrize("path", known())
def test_tracemalloc_comes_and_goes(folder, path):
    expected, (process,) = run(folder, path, "traced", "waits")
    expected["small"] = [[100, 3000, 0]]
    assert missing(process, expected) == []
    assert objects_of(process) == "recorded"


@pytest.mark.parametrize("path", known())
def test_tracemalloc_from_the_start(folder, path):
    expected, (process,) = run(folder, path, "waits", *KINDS,
                               before=("-X", "tracemalloc"))
    assert missing(process, expected) == []
    # It frees its own blocks while Python's allocator works.
    assert process["losses"]["lost_frees_closed"] == 0
    assert objects_of(process) == "recorded"


@pytest.mark.parametrize("path", known())
def test_another_interpreter_in_the_process_is_told_too(folder, path):
    expected, (process,) = run(folder, path, "subinterpreter")
    size, made, held = expected[""][0]
    assert (size * made, size * held) in [
        (site["allocated_bytes"], site["live_bytes"])
        for site in process["sites"] if site["space"] == "python"]


# Two interpreters unless at length: the one that is tested most, and another.
MODES = [(path, how) for path in known()[:None if LONG else 2]
         for how in ("malloc", "dev", *(() if path != known()[0] else (
             "debug", "malloc_debug", "pymalloc_debug", "pymalloc")))]


@pytest.mark.parametrize("path,how", MODES)
def test_allocators_that_python_sets_are_said(folder, path, how):
    before = ("-X", "dev") if how == "dev" else ()
    more = {} if how == "dev" else {"PYTHONMALLOC": how}
    done = execute([path, *before, "-S", "-W", "ignore", PROGRAM, "small",
                    "large", "waits"], folder, sample=1, SEEP_PYTHON="objects",
                   **more)
    assert (done.status, done.stderr) == (0, b"")
    process, = report("--by", "stack", *done.recordings)["processes"]
    assert objects_of(process).endswith("the program set other allocators")
    assert sites_of(process, "large", "python") == []
    large = [site for site in sites_of(process, "large", "heap")
             if site["live_count"] == 50]
    assert sum(site["live_bytes"] for site in large) >= 50 * 70000
    small = [site for site in sites_of(process, "small", "heap")
             if site["live_count"] == 3000]
    assert bool(small) == ("malloc" == how or "malloc_debug" == how)
    assert has_arenas(process) != bool(small)


@pytest.mark.parametrize("path", known())
def test_the_end_of_python_is_as_without_us(folder, path):
    done = execute([path, "-S", "-E", PROGRAM, "at_exit", "threads"], folder,
                   sample=1, SEEP_PYTHON="objects")
    assert (done.status, done.stderr) == (0, b"")


@pytest.mark.parametrize("python", ["off", "0", "frames"])
def test_they_are_left_alone_unless_asked_for(folder, python):
    _, (process,) = run(folder, known()[0], "small", python=python)
    said = process["process"]["python"]
    assert (said is None) == (python != "frames")
    assert said is None or said["objects"].startswith("not recorded")
    assert not [site for site in process["sites"]
                if site["space"] == "python"]


def libraries():
    """(path of a libpython, its home) of each interpreter that has one"""
    for path in known():
        done = subprocess.run([path, "-c", WHERE], capture_output=True,
                              text=True, timeout=60, check=True)
        home, folder, name = done.stdout.split()[:3]
        library = pathlib.Path(folder) / name
        if library.exists() and ".so" in library.name:
            yield str(library), home


@pytest.mark.parametrize("library,home", libraries())
def test_python_that_comes_late_is_not_touched(folder, library, home):
    if not LIBRARY.exists():
        pytest.skip("not built")
    done = execute([EMBED, library, LIBRARY, "-S", PROGRAM, "small"], folder,
                   sample=1, SEEP_PYTHON="objects", PYTHONHOME=home)
    assert (done.status, done.stderr) == (0, b"")
    process, = report("--by", "stack", *done.recordings)["processes"]
    assert objects_of(process).endswith("not there at the start")


@pytest.mark.parametrize("library,home", libraries())
def test_python_may_begin_again(folder, library, home):
    text = "kept = [bytes(67) for _ in range(3000)]; print(len(kept))"
    variables = {"SEEP_PYTHON": "objects", "PYTHONHOME": home}
    done = execute([program("python_restart"), text], folder, sample=1,
                   LD_PRELOAD=f"{PRELOAD}:{library}", **variables)
    assert done.stdout == b"3000\n" * 3
    assert (done.status, done.stderr) == (0, b"")
