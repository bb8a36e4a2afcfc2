# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the child of a fork pays for being recorded."""
import json

from conftest import execute, program

CHILDREN = 20
SMALL = {"SEEP_SIZE": 4 << 20}


def faults(kind, children, *arguments, **variables):
    """Page faults of a child, and the recordings."""
    run = execute([program("forks"), kind, children], *arguments, **variables)
    assert (run.status, run.stderr) == (0, b"")
    return json.loads(run.stdout)["faults"] / children, run.recordings


def test_the_tables_of_its_parent_are_not_copied_by_a_child(folder):
    plain, _ = faults("short", CHILDREN)
    seen, recordings = faults("short", CHILDREN, folder, sample=1, **SMALL)

    assert seen < plain + 600, (plain, seen)
    assert len(recordings) == 1 + CHILDREN
