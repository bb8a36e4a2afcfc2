# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the storms share: the program, and what must hold of any recording.

A folder for their many recordings is in memory; see conftest of integration,
whose fixtures these tests take.
"""
import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "integration"))

from conftest import (BUILD, LONG, TIMEOUT_S, dump, execute,  # noqa: E402
                      memory_folder)

FILES = BUILD / "tests/storms"
STORM = FILES / "storm"
LIBRARY = FILES / "storm_library.so"
MOST_RECORDINGS = 512  # that a folder holds
TOTAL_BYTES = 1 << 30  # of a folder, at most


def times(few, many):
    """How often: the long form is asked for by `tools/test --storms`."""
    return many if LONG else few


@pytest.fixture(name="place")
def place_():
    """A folder for many recordings."""
    with memory_folder(TOTAL_BYTES) as folder:
        yield folder


def same(folder, case, *words, **more):
    """The storm once without and once with us; returns how it ended."""
    argv = [STORM, case, *words]
    timeout = TIMEOUT_S * times(1, 8)
    plain = execute(argv, timeout=timeout)
    if plain.status == 77:
        pytest.skip("the kernel has none of that here")
    run = execute(argv, folder, timeout=timeout, **{"sample": 1} | more)
    assert run.seen == plain.seen
    return run


def is_consistent(document):
    """allocated - freed = live, of each site that is not torn."""
    for site in document["sites"]:
        off = abs(site["allocated_bytes"] - site["freed_bytes"]
                  - site["live_bytes"])
        assert off == 0 or site["torn"], site
    return document


def totals(path):
    """All figures of a recording, which must agree."""
    return is_consistent(dump(path, "--totals"))


def only(document, name):
    """The figures of all sites with that function."""
    sums = {"allocated_count": 0, "live_count": 0}
    for site in document["sites"]:
        if name in site["frames"]:
            for key in sums:
                sums[key] += site[key]
    return sums
