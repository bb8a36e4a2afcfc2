# SPDX-License-Identifier: LGPL-2.1-or-later
"""A child of a fork that ends at once pays hardly anything for having been
recorded, and one that stays is recorded as any process.
"""
import json

from conftest import dump, execute, program

CHILDREN = 20
KEPT_BYTES = 200 * 60000
SMALL = {"SEEP_SIZE": 4 << 20}


def faults(kind, children, *arguments, **variables):
    """Page faults of a child, and the recordings."""
    run = execute([program("forks"), kind, children], *arguments, **variables)
    assert (run.status, run.stderr) == (0, b"")
    return json.loads(run.stdout)["faults"] / children, run.recordings


def test_a_child_that_ends_at_once_costs_a_few_pages(folder):
    plain, _ = faults("short", CHILDREN)
    seen, recordings = faults("short", CHILDREN, folder)

    assert seen < plain + 40, (plain, seen)
    assert len(recordings) == 1


def test_the_tables_of_its_parent_are_not_copied_by_a_child(folder):
    plain, _ = faults("short", CHILDREN)
    seen, recordings = faults("short", CHILDREN, folder, sample=1, **SMALL)

    assert seen < plain + 600, (plain, seen)
    assert len(recordings) == 1 + CHILDREN


def test_a_child_that_stays_is_recorded_from_then_on(folder):
    _, recordings = faults("long", 2, folder)

    children = [each for each in map(dump, recordings) if each["is_fork"]]
    assert len(children) == 2
    for child in children:
        assert child["losses"] == {}
        kept = [site for site in child["sites"]
                if "keep_in_child" in site["frames"]]
        live = sum(site["live_bytes"] for site in kept)
        assert 0.85 * KEPT_BYTES < live < 1.15 * KEPT_BYTES
        assert sum(site["freed_bytes"] for site in child["sites"]) == 0
