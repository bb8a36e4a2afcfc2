# SPDX-License-Identifier: LGPL-2.1-or-later
"""Objects loaded with RTLD_DEEPBIND look past us: they do as without us, and
each dlopen of one is counted as a loss.

By calls that are linked, by dlsym, in the object itself and in one that it
needs, bound at once and at the first call; by path and by name alone.
"""
import os
import pathlib

import pytest

from conftest import PROGRAMS, dump, execute, program

DRIVER = os.environ.get("SEEP_FAKE_CUDA", "")
LIBRARIES = ["linked", "linked_lazy", "asks", "asks_lazy", "outer_linked",
             "outer_asks"]
BYTES = 3 * 1000000

pytestmark = pytest.mark.skipif(not DRIVER, reason="no driver of the tests")


def deep(how, *libraries, folder=None, **more):
    return execute([program("cuda_deep"), how, *libraries], folder, sample=1,
                   LD_LIBRARY_PATH=pathlib.Path(DRIVER).parent, **more)


def seen(run):
    """Bytes on the device, and the counters."""
    document = dump(*run.recordings)
    bytes_ = sum(site["live_bytes"] for site in document["sites"]
                 if site["space"] == "device")
    return bytes_, document["counters"]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("how", ["now", "lazy", "shallow"])
def test_what_a_deep_bound_object_may_allocate_is_told(how, library, folder):
    path = PROGRAMS / f"libcuda_deep_{library}.so"
    plain = deep(how, path)
    recorded = deep(how, path, folder=folder)
    assert plain.stdout.count(b"0 1\n") == 3, plain
    assert recorded.seen == plain.seen
    live_bytes, counters = seen(recorded)
    assert counters.get("cuda_deep_missed", 0) == (how != "shallow")
    if how == "shallow":
        assert live_bytes == BYTES


@pytest.mark.parametrize("name", ["libcuda_deep_asks.so",
                                  "$ORIGIN/libcuda_deep_asks.so"])
@pytest.mark.parametrize("how", ["now", "shallow"])
def test_a_name_is_searched_for_where_its_caller_says(how, name, folder):
    plain = deep(how, name)
    recorded = deep(how, name, folder=folder)
    assert plain.stdout.count(b"0 1\n") == 3, plain
    assert recorded.seen == plain.seen
    live_bytes, counters = seen(recorded)
    assert live_bytes == (BYTES if how == "shallow" else 0)
    assert counters.get("cuda_deep_missed", 0) == (how == "now")


def test_a_library_that_is_not_there_has_its_own_error(folder):
    plain = deep("now", "/no/such/library.so")
    assert deep("now", "/no/such/library.so", folder=folder).seen == plain.seen
    assert plain.status == 1 and b"/no/such/library.so" in plain.stdout


def test_without_a_recorder_nothing_is_counted(folder):
    path = PROGRAMS / "libcuda_deep_asks.so"
    recorded = deep("now", path, folder=folder, SEEP_CUDA="off")
    assert recorded.seen == deep("now", path).seen
    assert seen(recorded)[1].get("cuda_deep_missed", 0) == 0


def test_threads_that_load_and_unload_are_not_disturbed(folder):
    paths = [PROGRAMS / f"libcuda_deep_{name}.so" for name in LIBRARIES]
    recorded = deep("storm", *paths, folder=folder)
    assert recorded.stdout == b"0 failures\n", recorded
    assert seen(recorded)[1]["cuda_deep_missed"] > 0


def test_a_driver_that_went_unseen_is_not_asked(folder):
    path = PROGRAMS / "libcuda_deep_asks.so"
    plain = deep("reload", path)
    recorded = deep("reload", path, folder=folder)
    assert plain.stdout == b"1 found\n0\n", plain
    assert recorded.seen == plain.seen
