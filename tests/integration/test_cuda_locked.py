# SPDX-License-Identifier: LGPL-2.1-or-later
"""A call that is recorded asks nothing of the loader: another thread may be
inside it, and wait for a lock that the caller holds."""
import pytest

from conftest import BUILD, PROGRAMS, dump, execute, program

DRIVER = BUILD / "tests/fake"
LIBRARY = PROGRAMS / "libcuda_locked_library.so"
PLUGIN = PROGRAMS / "libcuda_deep_linked.so"


CASES = pytest.mark.parametrize("name, how, space", [
    ("cuda_locked", "driver", "device"), ("cuda_locked", "tensor", "tensor"),
    ("cuda_locked_plugin", PLUGIN, "device")])


@CASES
def test_the_loader_may_be_another_threads_meanwhile(name, how, space, folder):
    command = [program(name), how, LIBRARY]
    plain = execute(command, sample=1, LD_LIBRARY_PATH=DRIVER)
    recorded = execute(command, folder, sample=1, LD_LIBRARY_PATH=DRIVER)
    assert plain.seen == (0, b"0\n1\n", b""), plain
    assert recorded.seen == plain.seen
    sites = dump(*recorded.recordings)["sites"]
    assert sum(site["live_bytes"] for site in sites
               if site["space"] == space) == 4096


@CASES
def test_so_it_may_where_nothing_is_recorded(name, how, space, folder):
    del space
    command = [program(name), how, LIBRARY]
    skipped = execute(command, folder, LD_LIBRARY_PATH=DRIVER, SEEP_SKIP=name)
    assert skipped.seen == (0, b"0\n1\n", b""), skipped
    assert skipped.recordings == []
