# SPDX-License-Identifier: LGPL-2.1-or-later
"""Allocators inside of libraries, whose blocks no hook sees.

What they map is one row that says whose it is, and whether it is kept is told
by private memory. All run at once; no verdict comes before 30 s.
"""
import concurrent.futures
import pathlib

import pytest

from command_line import PYTHON, document, recordings, run, seep
from conftest import PROGRAMS

SCRIPT = pathlib.Path(__file__).parent / "programs" / "own_pool.py"
SECONDS = 36
CASES = {
    # name: library, kind, the row of the allocator
    "named": ("pool_named", "leak", "pool_named.so's own jemalloc"),
    "stripped": ("pool_stripped", "leak", "pool_stripped.so's own allocator"),
    "reserved": ("pool_exported", "leak", "pool_exported.so's own mimalloc"),
    "cache": ("pool_named", "cache", "pool_named.so's own jemalloc"),
    "churn": ("pool_exported", "churn", "pool_exported.so's own mimalloc"),
}
LEAKS = ("named", "stripped", "reserved")


@pytest.fixture(scope="module", name="outcomes")
def all_cases(tmp_path_factory):
    folders = {case: tmp_path_factory.mktemp(case) for case in CASES}

    def record(case):
        library, kind, _ = CASES[case]
        folder = folders[case]
        done = run(folder, PYTHON, SCRIPT, PROGRAMS / f"{library}.so", kind,
                   SECONDS)
        assert done.returncode == 0, done.stderr
        return recordings(folder)[0]

    with concurrent.futures.ThreadPoolExecutor(len(CASES)) as pool:
        paths = pool.map(record, CASES)
        return {case: (path, document(path)["processes"][0])
                for case, path in zip(CASES, paths)}


def pools_of(process):
    return [site for site in process["sites"]
            if site["space"] == "mapped" and "'s own " in site["where"]]


@pytest.mark.parametrize("case", LEAKS)
def test_what_is_kept_in_a_pool_is_no_reassurance(outcomes, case):
    verdict = outcomes[case][1]["verdict"]

    assert verdict["class"] in ("leak", "suspect")
    assert not verdict["reassures"]
    # 50 blocks of 32 KiB a second at most; on a busy machine fewer.
    assert 0 < verdict["growth_bytes_per_s"]["estimate"] < 2.5 * (1 << 20)


@pytest.mark.parametrize("case", LEAKS)
def test_the_verdict_names_whose_pool_it_is(outcomes, case):
    path, process = outcomes[case]

    assert f"in {CASES[case][2]}" in process["verdict"]["sentence"]
    assert process["sites"][0]["where"] == CASES[case][2]
    assert "not known" in process["verdict"]["advice"][-1]
    # in a row of its own, as a reader of the page sees it
    page = seep("report", path).stdout.decode()
    assert f"mapped  {CASES[case][2]}\n" in page


@pytest.mark.parametrize("case", CASES)
def test_a_limit_is_broken_by_a_pool_that_grows(outcomes, case):
    done = seep("check", "--max-growth", "1KiB/min", outcomes[case][0])

    assert done.returncode == 3 if case in LEAKS else 4, done.stdout


@pytest.mark.parametrize("case", CASES)
def test_all_that_a_pool_maps_is_one_row(outcomes, case):
    path, process = outcomes[case]
    rows = pools_of(process)

    assert [row["where"] for row in rows] == [CASES[case][2]]
    assert rows[0]["class"] == "backing"
    assert rows[0]["live_bytes"] % (8 << 20) == 0
    # each stack by itself: what was recorded is still there
    stacks = pools_of(document("--by", "stack", path)["processes"][0])
    assert sum(row["live_bytes"] for row in stacks) == rows[0]["live_bytes"]
    assert {row["line_id"] for row in stacks} <= {rows[0]["id"], None}


@pytest.mark.parametrize("case", ("cache", "churn"))
def test_what_a_pool_uses_again_is_no_leak(outcomes, case):
    verdict = outcomes[case][1]["verdict"]

    assert verdict["class"] not in ("leak", "suspect", "unexplained")
    # What of the pool is free could be filled unseen.
    assert not verdict["reassures"] or verdict["hidden_bytes_per_s"] > 1e5
