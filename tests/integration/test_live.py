# SPDX-License-Identifier: LGPL-2.1-or-later
"""A recording can be read while it is written, and when it is large."""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from conftest import (LONG, PRELOAD, SEEP, TIMEOUT_S, dump, environment,
                      execute, program, recordings_in, report)

SLEEP = shutil.which("sleep")
READINGS = 100 if LONG else 25


@pytest.fixture
def busy(folder):
    """A program with four busy threads in exact mode."""
    process = subprocess.Popen(
        [program("kill_me"), folder / "log", "600"],
        env=environment(folder, sample=1, SEEP_SIZE=32 << 20),
        start_new_session=True, stdin=subprocess.DEVNULL)
    while not recordings_in(folder):
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.2)
    yield folder
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


EVENT_BYTES = 16 << 10  # no block of these programs is larger


def judge(sites):
    """Of a site whose writer was in it all the while one event may be half
    applied: it says so, and is off by that event at most."""
    for site in sites:
        slack = EVENT_BYTES if site["torn"] else 0
        assert site["live_bytes"] >= 0 and site["live_count"] >= 0
        assert site["freed_bytes"] <= site["allocated_bytes"]
        assert (site["allocated_bytes"] - site["freed_bytes"]
                == site["live_bytes"])
        for point in site["series"]:
            assert point["live_bytes"] >= 0
            assert point["low_bytes"] <= point["live_bytes"]
            assert 0 <= point["born_freed_bytes"]
            assert (point["born_freed_bytes"]
                    <= point["allocated_bytes"] + slack)
        for earlier, point in zip(site["series"], site["series"][1:]):
            assert abs(earlier["live_bytes"] + point["allocated_bytes"]
                       - point["freed_bytes"] - point["live_bytes"]) <= slack


def test_a_recording_that_is_being_written_is_consistent(busy):
    path, = recordings_in(busy)
    allocated = 0
    for _ in range(READINGS):
        document = dump(path)
        assert document["state"] == "running"
        judge(document["sites"])
        total = sum(site["allocated_bytes"] for site in document["sites"])
        assert total >= allocated
        allocated = total


def test_the_command_reads_a_recording_that_is_being_written(busy):
    path, = recordings_in(busy)
    for _ in range(READINGS):
        process, = report(path)["processes"]
        assert process["process"]["state"] == "running"
        judge(process["sites"])


def test_reading_does_not_change_the_worker_or_its_file(folder):
    run = execute([program("truth"), 2, 200, folder / "truth.json"], folder,
                  sample=1)
    path, = run.recordings
    before = path.read_bytes()
    dump(path)
    report(path)
    assert path.read_bytes() == before
    assert recordings_in(folder) == [path]


# An instrumenting launcher: it imports, and becomes the program.
BECOMES = """
import os, sys
kept = [bytearray(4096) for _ in range(2000)]
if sys.argv[1] == SLEEP:
    os.environ.pop("LD_PRELOAD")  # of its few blocks one may be sampled
os.execv(sys.argv[1], sys.argv[1:])
""".replace("SLEEP", repr(SLEEP))


def command_of(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8")


def test_what_became_another_program_is_gone(folder):
    """The process lives, and is not what was recorded: its time is over, and
    nobody may be asked who holds what."""
    with subprocess.Popen(
            [sys.executable, "-c", BECOMES, SLEEP, "60"],
            env=environment(folder, sample=1), start_new_session=True) as done:
        try:
            end = time.monotonic() + TIMEOUT_S
            while command_of(done.pid) != "sleep\n":
                assert time.monotonic() < end and done.poll() is None
                time.sleep(.01)
            time.sleep(1)
            path, = recordings_in(folder)
            [replaced] = report(path)["processes"]
            asked = subprocess.run([SEEP, "held", path], capture_output=True,
                                   timeout=TIMEOUT_S, check=False)
            top = subprocess.run([SEEP, "top", "--once", str(done.pid)],
                                 capture_output=True, timeout=TIMEOUT_S,
                                 check=False)
        finally:
            done.kill()
    assert replaced["process"]["state"] == "gone"
    assert replaced["process"]["pid"] == done.pid
    [later] = report(path)["processes"]
    assert (later["process"]["duration_s"]
            == replaced["process"]["duration_s"])
    assert asked.returncode != 0 and b"lost" not in asked.stdout, asked
    assert top.returncode != 0 and b"still running" not in top.stdout, top


@pytest.mark.parametrize("recorded", [False, True])
def test_the_status_is_of_the_program_that_it_became(folder, recorded):
    """What `seep run` waits for is not what it started."""
    words = [SLEEP, "3"] if not recorded else [
        sys.executable, "-c", "import os, time; time.sleep(3); "
        "k = [bytearray(4096) for _ in range(2000)]; os._exit(7)"]
    done = subprocess.run(
        [SEEP, "run", "--quiet", "--exact", "-o", f"{folder}/", "--",
         sys.executable, "-c", BECOMES, *words],
        env=environment() | {"SEEP_PRELOAD": str(PRELOAD)},
        capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == (7 if recorded else 0)
    processes = sorted((process["process"]
                        for process in report(folder)["processes"]),
                       key=lambda process: process["started"])
    assert [process["state"] for process in processes] == (
        ["gone", "exited"] if recorded else ["gone"])
    assert processes[0]["status"] is None
    assert processes[0]["duration_s"] < 2.5
    if recorded:
        assert processes[1]["status"]["exit"] == 7
        assert processes[1]["duration_s"] > 2.5


def timed(path, *options):
    """Seconds of a processor, which a busy machine does not add to, and the
    file with what was printed.

    The report may need the recording's own size and 512 MiB: where no site is
    left without a series, 11 KiB each.
    """
    limit = path.stat().st_size + (512 << 20)
    output = tempfile.TemporaryFile()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["sh", "-c", 'ulimit -v "$0" && exec "$@"',
                    str(limit >> 10), SEEP, "report", *options, path],
                   stdout=output, check=True, timeout=TIMEOUT_S)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = (after.ru_utime + after.ru_stime
               - before.ru_utime - before.ru_stime)
    output.seek(0)
    return seconds, output


def frames_by_name(value):
    """Of 760,000 frames their functions are enough."""
    return value["function"] if "build_id" in value else value


def judge_many(sites, bottom):
    """Totals are exact, for all sites; series come from a pool."""
    sites = [site for site in sites if bottom in site["frames"]]
    assert len(sites) == 20000
    assert all((site["live_count"],
                site.get("requested", site)["live_bytes"],
                site["allocated_count"]) == (2, 64, 3) for site in sites)
    judge(sites)
    return sum(len(site["series"]) for site in sites)


def test_twenty_thousand_sites_are_reported_in_a_moment(folder):
    run = execute([program("many_sites"), 20000, 3], folder, sample=1)
    path, = run.recordings
    document = dump(path)
    assert set(document["losses"]) <= {"series_full"}
    points = judge_many(document["sites"], "site_bottom")
    # three events a site, and where the series ends
    assert points <= 4 * 20000
    if not SEEP.exists():
        pytest.skip("the tool is not built")
    by = ("--by", "stack")
    seconds, _ = timed(path, *by)
    print(f"report of 20,000 sites: {seconds:.2f} s")
    assert seconds < 5
    seconds, output = timed(path, "--json", *by)
    size = os.fstat(output.fileno()).st_size
    print(f"the same --json: {seconds:.2f} s, {size >> 20} MiB of text")
    assert seconds < 20
    process, = json.load(output, object_hook=frames_by_name)["processes"]
    assert judge_many(process["sites"], "site_bottom") == points
