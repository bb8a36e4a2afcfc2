# SPDX-License-Identifier: LGPL-2.1-or-later
"""A hook is left, interrupted or killed at each of its instructions.

The short form takes one of many, others each time; the long form all.
"""
import random

import pytest

from storms import (FILES, TIMEOUT_S, dump, execute, is_consistent,
                    place_, times)
from conftest import recordings_in  # noqa: E402

STEPS = FILES / "steps"
STRIDE = times(211, 1)
WORKS = ["start", "record", "map"]
READ = 40  # recordings: each takes a while
AFTER = 20  # blocks that a child makes when it has acted
assert place_


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("action", ["jump", "allocate", "fork", "kill"])
def test_at_each_instruction(place, action, work):
    run = execute([STEPS, action, work, random.randrange(STRIDE), STRIDE],
                  place, sample=1, timeout=TIMEOUT_S * times(1, 20),
                  SEEP_SIZE=16 << 20, SEEP_KEEP=256)
    print(run.stderr)
    assert (run.status, run.stdout) == (0, b"ended\n")
    paths = recordings_in(place)
    pids = [path.name.split(".")[1] for path in paths]
    assert len(set(pids)) == len(pids)
    after = []
    for path in random.sample(paths, min(len(paths), READ)):
        document = is_consistent(dump(path))
        lost = sum(document["losses"].values())
        counts = [site["allocated_count"] for site in document["sites"]
                  if "site_after" in site["frames"]]
        assert not counts or AFTER - lost <= sum(counts) <= AFTER
        after += counts
    assert after or action == "kill"
