# SPDX-License-Identifier: LGPL-2.1-or-later
"""A clock that somebody fakes for the program is not seep's.

Invariant: a duration is compared with one that was measured here.
"""
import contextlib
import json
import subprocess
import time

import pytest

from conftest import (PRELOAD, SEEP, environment, execute, need, program,
                      recordings_in, report)

PYTHON = "/usr/bin/python3"
WORK = """
import time
end = time.perf_counter() + 0.2  # ten times as much
kept = []
while time.perf_counter() < end:
    kept.append(bytearray(100000))
    time.sleep(0.01)
"""


def is_as_long(path, took_s):
    """As long as it was, but for what came before its first event."""
    process, = report(path)["processes"]
    return took_s / 2 < process["process"]["duration_s"] <= took_s + 1


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_a_faked_clock_is_not_believed(tmp_path, first):
    libraries = [PRELOAD, program("faked_clock.so")]
    before = time.monotonic()

    done = execute([PYTHON, "-c", WORK], tmp_path, LD_PRELOAD=":".join(
        map(str, libraries if first == "ours" else libraries[::-1])))
    took_s = time.monotonic() - before

    assert done.status == 0 and took_s > 1
    assert is_as_long(done.recordings[0], took_s)


def test_a_reader_with_a_faked_clock_reads_the_same(tmp_path):
    path = tmp_path / "x.seep"
    before = time.monotonic()

    subprocess.run([SEEP, "run", "-o", path, "--", PYTHON, "-c", WORK],
                   env=environment(LD_PRELOAD=program("faked_clock.so")),
                   check=True, capture_output=True, timeout=120)
    took_s = time.monotonic() - before

    assert is_as_long(path, took_s)


# Says when it is recorded, and goes on until its input ends.
LIVING = """
import sys
kept = [bytearray(100000) for _ in range(100)]
print("recorded", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def living_elsewhere(folder):
    """A process whose clock of the boot is a day ahead of ours."""
    need("unshare")
    elsewhere = ["unshare", "--time", "--boottime", "86400", "--fork"]
    if subprocess.run([*elsewhere, "true"], capture_output=True,
                      check=False).returncode != 0:
        pytest.skip("no time namespaces here")
    with subprocess.Popen(
            [*elsewhere, PYTHON, "-c", LIVING], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env=environment(folder)) as process:
        try:
            assert process.stdout.readline() == b"recorded\n"
            # Not of unshare, if that was slow.
            path, = (each for each in recordings_in(folder)
                     if "python" in each.name)
            yield path
        finally:
            process.stdin.close()
            process.wait()


def state_of(path):
    done = subprocess.run([SEEP, "info", "--json", path], capture_output=True,
                          check=True, timeout=120)
    return json.loads(done.stdout)["recordings"][0]["process"]["state"]


def test_who_lives_in_another_time_namespace_lives(tmp_path):
    with living_elsewhere(tmp_path) as path:
        assert state_of(path) == "running"
        probe = subprocess.run([SEEP, "probe", "--host-free", "1KiB", path],
                               capture_output=True, check=False, timeout=120)
        assert probe.returncode == 0, probe.stdout
    assert state_of(path) == "exited"


def test_what_lives_in_another_time_namespace_is_not_removed(tmp_path):
    killed = [PYTHON, "-c", "k = bytearray(1 << 22)\n"
              "import os\nos.kill(os.getpid(), 9)"]
    with living_elsewhere(tmp_path) as path:
        for _ in range(6):
            assert execute(killed, tmp_path, SEEP_KEEP=2).status == -9
        assert path.exists()
    for _ in range(2):
        execute(killed, tmp_path, SEEP_KEEP=2)
    assert not path.exists()
