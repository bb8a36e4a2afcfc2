# SPDX-License-Identifier: LGPL-2.1-or-later
"""What was recorded survives SIGKILL at any instant."""
import os
import pathlib
import random
import signal
import struct
import subprocess
import tempfile
import time

from conftest import LONG, dump, environment, program, recordings_in

KILLS = 200 if LONG else 40
THREADS, SITES = 4, 6
SHARDS = 65
ROW = struct.Struct("<4Q")


def kill_once(folder, generator):
    """Kill a busy program at a random moment of its run."""
    log = folder / "log"
    process = subprocess.Popen(
        [program("kill_me"), log], env=environment(folder, sample=1),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + 30
    while not (log.exists() and recordings_in(folder)):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.001)
    time.sleep(generator.uniform(0.001, 0.3))
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    return read_log(log)


def read_log(path):
    """{site: [alloc begun, alloc done, free begun, free done]}"""
    data = path.read_bytes()
    sites = {number: [0, 0, 0, 0] for number in range(SITES)}
    for index in range(len(data) // ROW.size):
        for step, count in enumerate(ROW.unpack_from(data, index * ROW.size)):
            sites[index % SITES][step] += count
    return sites


def site_number(site):
    for name in site["frames"]:
        if name.startswith("site_killed_"):
            return int(name.rsplit("_", 1)[1])
    return None


def off_by(count, done, begun):
    """How far a count lies outside of what was done and what was begun."""
    return max(0, done - count, count - begun)


def judge(document, log):
    """The worst distance of any site from its log, in events."""
    sums = {number: [0, 0, 0] for number in range(SITES)}
    for site in document["sites"]:
        number = site_number(site)
        if number is not None:
            sums[number][0] += site["allocated_count"]
            sums[number][1] += site["freed_count"]
            sums[number][2] += site["live_bytes"]
        assert (site["allocated_bytes"] - site["freed_bytes"]
                == site["live_bytes"])
    worst = 0
    for number, (begun, done, free_begun, free_done) in log.items():
        allocated, freed, live_bytes = sums[number]
        worst = max(worst, off_by(allocated, done, begun),
                    off_by(freed, free_done, free_begun))
        bytes_off = off_by(live_bytes / (16 << number), done - free_begun,
                           begun - free_done)
        worst = max(worst, bytes_off)
    return worst


def test_every_recording_opens_and_is_within_one_event_a_shard():
    generator = random.Random()
    worst, torn, lost = 0, 0, 0
    for _ in range(KILLS):
        with tempfile.TemporaryDirectory(prefix="seep-test-") as name:
            folder = pathlib.Path(name)
            log = kill_once(folder, generator)
            path, = recordings_in(folder)
            document = dump(path)
            assert document["state"] in ("gone", "killed")
            counters = document["counters"]
            lost_here = (counters["dropped_allocs"]
                         + counters["dropped_frees"])
            off = judge(document, log)
            assert off <= SHARDS + lost_here
            worst = max(worst, off)
            torn = max(torn, counters["torn"] + document["torn_sites"])
            lost += lost_here
    print(f"{KILLS} kills: worst site {worst} events off, most torn {torn}, "
          f"events lost {lost}")
    assert worst <= THREADS + lost
