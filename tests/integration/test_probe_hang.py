# SPDX-License-Identifier: LGPL-2.1-or-later
"""`seep probe` and seep-probe answer in time, whatever hangs.

Invariant: every process that is started here is ended here, by its pid, and no
answer is waited for longer than LIMIT_S.
"""
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from conftest import PROGRAMS, environment
from probe_case import (FORMS, HEADROOM, LIMIT_S, MOST_S, READY, UNKNOWN,
                        answer, live_fixture, probe, workers_fixture)

HANG = PROGRAMS / "libprobe_hang.so"
FUSE = pathlib.Path(__file__).parent / "programs" / "small_fuse.py"

__all__ = ["live_fixture", "workers_fixture"]


def test_what_is_known_to_be_wrong_is_said_whatever_hangs_later(live):
    folder = live[1]
    other = folder / "z-hangs.seep"
    other.write_bytes(b"")

    code, line = answer(
        "--host-free", "1000TiB", "--deadline", "500ms", folder, form="verb",
        LD_PRELOAD=str(HANG), SEEP_TEST_HANG="z-hangs",
        SEEP_TEST_HANG_IN="open")
    assert code == HEADROOM
    assert line.endswith(f"; cannot tell: {other} did not answer within 500 ms")


def children_of(text):
    """Processes whose command line has @text."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (folder / "cmdline").read_bytes():
                found.append(folder.name)
        except OSError:
            pass  # it has ended
    return found


@pytest.mark.parametrize("call", ("stat", "open", "read"))
def test_a_file_that_does_not_answer_cannot_be_told_in_time(live, call,
                                                            tmp_path):
    told = tmp_path / "told"
    recording = next(live[1].glob("*.seep"))

    # That this returns says that nobody holds stdout any more.
    done = probe("--max-age", "30s", "--deadline", "500ms", "--tell", told,
                 recording, form="verb", LD_PRELOAD=str(HANG),
                 SEEP_TEST_HANG=recording.name, SEEP_TEST_HANG_IN=call)
    line = f"cannot tell: {recording} did not answer within 500 ms\n"

    assert (done.returncode, done.stdout, done.stderr) == (READY, line, "")
    assert .4 < done.seconds < MOST_S
    assert told.read_text() == line
    end = time.monotonic() + LIMIT_S
    while children_of(str(told)) and time.monotonic() < end:
        time.sleep(.05)
    assert not children_of(str(told))


def hang(recording, told, **more):
    """A probe that hangs as it looks for @recording, and is not waited for."""
    return subprocess.Popen(
        [*FORMS["verb"], "--max-age", "30s", "--deadline", "60s", "--tell",
         told, recording], start_new_session=True, stdout=subprocess.PIPE,
        env=environment() | {
            "LD_PRELOAD": str(HANG), "SEEP_TEST_HANG": recording.name,
            "SEEP_TEST_HANG_IN": "stat"} | more)


def test_a_probe_that_is_killed_leaves_nobody_and_holds_no_stream(live,
                                                                  tmp_path):
    told, streams = tmp_path / "told", tmp_path / "streams"
    process = hang(next(live[1].glob("*.seep")), told,
                   SEEP_TEST_HANG_STREAMS=str(streams))
    end = time.monotonic() + LIMIT_S / 3
    while not streams.exists() and time.monotonic() < end:
        time.sleep(.02)
    time.sleep(.1)

    held, begun = streams.read_text(), children_of(str(told))
    process.kill()
    process.communicate(timeout=LIMIT_S)
    while children_of(str(told)) and time.monotonic() < end:
        time.sleep(.02)
    left = children_of(str(told))
    for pid in left:
        os.kill(int(pid), signal.SIGKILL)
    assert (held, len(begun), left) == ("", 2, [])


@pytest.fixture(name="stopped")
def stopped_fixture(live, tmp_path):
    """A recording on a file system whose server is stopped."""
    point = tmp_path / "mounted"
    point.mkdir()
    server = subprocess.Popen(
        [sys.executable, FUSE, point, next(live[1].glob("*.seep"))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        said = server.stdout.readline().strip()
        if said != "ready":
            pytest.skip(f"no file system can be mounted here: {said}")
        yield server, point
    finally:
        os.kill(server.pid, signal.SIGCONT)
        server.communicate(timeout=LIMIT_S)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_system_that_stops_is_not_waited_for(stopped, form):
    server, point = stopped
    words = ("--max-age", "1h", "--deadline", "500ms", "--strict")

    assert answer(*words[:2], "--strict", point, form=form)[0] == READY
    os.kill(server.pid, signal.SIGSTOP)
    for path in (point, point / "x.seep"):
        done = probe(*words, path, form=form)
        assert done.returncode == UNKNOWN
        assert done.stdout == \
            f"cannot tell: {path} did not answer within 500 ms\n"
        assert .4 < done.seconds < MOST_S
    # Nor is what is told written there waited for.
    done = probe(*words, "--tell", point / "told", live_path(point))
    assert done.seconds < MOST_S


def live_path(point):
    """The recording that a mounted one is a view of."""
    return next(p for p in point.parent.glob("*.seep"))
