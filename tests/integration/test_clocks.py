# SPDX-License-Identifier: LGPL-2.1-or-later
"""A clock that somebody fakes for the program is not seep's.

Invariant: a duration is compared with one that was measured here.
"""
import subprocess
import time

import pytest

from conftest import PRELOAD, SEEP, environment, execute, program, report

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
