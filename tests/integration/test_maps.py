# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each mapping is recorded, not samples, however many threads make them."""
import json

from conftest import dump, execute, program

THREADS, TURNS = 4, 20000


def test_threads_that_map_and_unmap_lose_nothing(folder):
    run = execute([program("maps"), THREADS, TURNS], folder)

    assert (run.status, run.stderr) == (0, b"")
    path, = run.recordings
    document = dump(path)
    counters = document["counters"]
    assert counters["dropped_allocs"] == counters["dropped_frees"] == 0
    assert counters["ranges_full"] == 0
    live = sum(site["live_bytes"] for site in document["sites"]
               if site["space"] == "mapped"
               and "keep_mapped" in site["frames"])
    assert live == json.loads(run.stdout)["kept_bytes"]
