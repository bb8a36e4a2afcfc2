# SPDX-License-Identifier: LGPL-2.1-or-later
"""Python's own objects: to the byte, once, and whatever else is going on."""
import pytest

from object_fixtures import (KINDS, has_arenas, is_recorded, missing, run,
                             sites_of)
from test_python_frames import known


@pytest.mark.parametrize("path", known())
def test_objects_are_told_to_the_byte_and_once(folder, path):
    expected, (process,) = run(folder, path, *KINDS)
    assert is_recorded(process)
    assert missing(process, expected) == []
    for function in expected:
        assert sites_of(process, function, "heap") == []
        assert sites_of(process, function, "mapped") == []
    assert process["losses"] == {}
    # A free beneath ours that was told again would be one of no known block.
    assert process["counters"]["foreign_frees"] == 0
    assert process["counters"]["allocator_map_bytes"] >= 1 << 20
    assert not has_arenas(process)


@pytest.mark.parametrize("path", known())
def test_without_them_arenas_are_mapped_and_small_objects_unseen(folder, path):
    expected, (process,) = run(folder, path, "small", "large",
                               python="frames")
    assert process["python_objects"].startswith(
        "not recorded: SEEP_PYTHON=objects")
    assert missing(process, {"large": expected["large"]}, "heap") == []
    assert sites_of(process, "small", "python") == []
    assert process["counters"]["allocator_map_bytes"] == 0
    assert has_arenas(process)


@pytest.mark.parametrize("path", known())
def test_every_thread_and_every_child_has_its_own(folder, path):
    expected, processes = run(folder, path, "threads", "forked")
    parent, = (one for one in processes if not one["is_fork"])
    child, = (one for one in processes if one["is_fork"])
    in_child = {"in_a_child": expected.pop("in_a_child")}
    assert missing(parent, expected) == []
    assert missing(child, in_child) == []
    assert is_recorded(child)
    assert sites_of(child, "small") == []


@pytest.mark.parametrize("path", known())
def test_tracemalloc_comes_and_goes(folder, path):
    expected, (process,) = run(folder, path, "traced", "waits")
    expected["small"] = [[100, 3000, 0]]
    assert missing(process, expected) == []
    assert is_recorded(process)


@pytest.mark.parametrize("path", known())
def test_tracemalloc_from_the_start(folder, path):
    expected, (process,) = run(folder, path, "waits", *KINDS,
                               before=("-X", "tracemalloc"))
    assert missing(process, expected) == []
    # It frees its own blocks while Python's allocator works.
    assert process["counters"]["lost_frees_closed"] == 0
    assert is_recorded(process)


@pytest.mark.parametrize("path", known())
def test_another_interpreter_in_the_process_is_told_too(folder, path):
    # 3.14 warns at the end of one that was not closed.
    expected, (process,) = run(folder, path, "subinterpreter",
                               before=("-W", "ignore"))
    size, made, held = expected[""][0]
    ours = [site for site in process["sites"] if site["space"] == "python"
            and site["allocated_bytes"] == size * site["allocated_count"]]
    more = [sum(site[key] for site in ours) - count for key, count in
            (("allocated_count", made), ("live_count", held))]
    assert all(0 <= each < made / 100 for each in more), ours
