# SPDX-License-Identifier: LGPL-2.1-or-later
"""Kills, forks, threads, loads, execs, signals and readers in great numbers.

How many were run, and what was seen, is in README.md.
"""
import concurrent.futures
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

import pytest

from storms import (LIBRARY, MOST_RECORDINGS, STORM, TIMEOUT_S, dump,
                    is_consistent, only, place_, same, times, totals)
from conftest import (SEEP, environment, program,  # noqa: E402
                      recordings_in)

MODES = pytest.mark.parametrize("sample", [None, 1], ids=["sampled", "exact"])
BLOCKS = 20000  # of the program that is killed; each is of a site of its own
OF_OTHERS = 16  # what the loader and stdio may have allocated
SHARDS = 65
assert place_


def kill_when_at(folder, count):
    """Kill a program that allocates when it has that many blocks; returns how
    many it had begun, and had."""
    log = folder / "log"
    with subprocess.Popen(
            [STORM, "grow", "4000000", log], env=environment(
                folder, sample=1, SEEP_SIZE=64 << 20),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            start_new_session=True) as process:
        end = time.monotonic() + TIMEOUT_S
        while done_of(log)[1] < count:
            assert process.poll() is None
            assert time.monotonic() < end
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    return done_of(log)


def done_of(log):
    """(begun, done), 0 while there is no log."""
    try:
        return struct.unpack("<2Q", log.read_bytes()[:16])
    except (FileNotFoundError, struct.error):
        return 0, 0


def test_a_growing_recording_survives_each_kill(place):
    generator = random.Random()
    worst = torn = 0
    sizes = []
    for turn in range(times(15, 1000)):
        with tempfile.TemporaryDirectory(dir=place) as name:
            folder = pathlib.Path(name)
            begun, done = kill_when_at(folder, generator.randrange(1, BLOCKS))
            path, = recordings_in(folder)
            document = totals(path)
            assert document["state"] in ("gone", "killed")
            lost = document["counters"]["dropped_allocs"]
            count = sum(site["allocated_count"] for site in document["sites"]
                        if site["space"] == "heap")
            off = max(done - count - lost, count - OF_OTHERS - begun)
            assert off <= SHARDS, (count, begun, done, lost)
            worst = max(worst, off)
            torn += document["torn_sites"]
            sizes.append(path.stat().st_blocks * 512)
            if turn % 20 == 0:
                shown = subprocess.run([SEEP, "report", path], check=False,
                                       capture_output=True, timeout=TIMEOUT_S)
                assert shown.returncode in (0, 3, 4), shown.stderr
    print(f"{len(sizes)} kills of files of {min(sizes) >> 10} to "
          f"{max(sizes) >> 10} KiB: worst {worst} off, {torn} torn")


@MODES
def test_children_of_four_threads_end_as_without_us(place, sample):
    count, most = times(800, 10000), times(100, MOST_RECORDINGS)
    run = same(place, "forks", count, sample=sample, SEEP_SIZE=8 << 20,
               SEEP_KEEP=most)
    assert run.stdout == f"{count} children ended as they should\n".encode()
    # One child in 16 cleans, if by then another one does not.
    assert len(run.recordings) < times(0.8, 0.2) * count
    print(f"{count} children left {len(run.recordings)} recordings")
    forks = 0
    for path in run.recordings[::1 + len(run.recordings) // times(30, 1000)]:
        document = totals(path)
        if sample == 1 and document["is_fork"]:
            assert document["losses"] == {}
            assert sum(site["live_count"] for site in document["sites"]) == 20
            forks += 1
    assert forks > 0 or sample is None


def test_threads_in_turn_lose_nothing(place):
    count = times(1600, 100000)
    run = same(place, "threads", count)
    document = is_consistent(dump(*run.recordings))
    assert document["losses"] == {}
    assert only(document, "site_kept") == {"allocated_count": 2 * count,
                                           "live_count": count}


def test_libraries_come_and_go(place):
    count = times(2000, 1000000)
    run = same(place, "loads", count, LIBRARY)
    document = is_consistent(dump(*run.recordings))
    assert only(document, "storm_make")["live_count"] == 0
    assert document["losses"] == {}
    assert only(document, "storm_make")["allocated_count"] == count


def test_each_program_of_a_chain_has_a_recording(place):
    count = times(40, 1000)
    run = same(place, "execs", count)
    # None is removed: the process that they are of still lives.
    assert len(run.recordings) == count + 1
    for path in run.recordings[::times(10, 1)]:
        assert totals(path)["losses"] == {}


@MODES
def test_handlers_allocate_and_fork_wherever_they_interrupt(place, sample):
    count = times(2000, 200000)
    run = same(place, "signals", count, sample=sample, SEEP_SIZE=16 << 20)
    assert run.stdout == f"{count} signals\n".encode()
    for path in run.recordings[::times(4, 1)]:
        totals(path)


def progress(log):
    """How many steps the program has made."""
    data = log.read_bytes() if log.exists() else b""
    return sum(struct.unpack(f"<{len(data) // 8}Q", data))


def test_many_readers_see_a_whole_recording(place):
    log = place / "log"
    with subprocess.Popen(
            [program("kill_me"), log, "3600"], start_new_session=True,
            env=environment(place, sample=1, SEEP_SIZE=32 << 20)) as process:
        try:
            end = time.monotonic() + TIMEOUT_S
            while not (recordings_in(place) and progress(log) > 10000):
                assert process.poll() is None and time.monotonic() < end
                time.sleep(0.01)
            path, = recordings_in(place)
            before, start = progress(log), time.monotonic()
            with concurrent.futures.ThreadPoolExecutor(4) as readers:
                seen = list(readers.map(lambda _: totals(path)["state"],
                                        range(times(60, 2000))))
            passed = time.monotonic() - start
            steps = progress(log) - before
            assert process.poll() is None
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert set(seen) == {"running"}
    assert steps > len(seen)
    print(f"{len(seen) / passed:.0f} readings a second, {steps} steps")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-s"]))
