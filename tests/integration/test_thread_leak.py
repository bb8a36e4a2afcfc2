# SPDX-License-Identifier: LGPL-2.1-or-later
"""Threads that never end: how many there are is told, and who starts them; of
as many that come and go nothing is."""
import json
import subprocess
import textwrap

import pytest

from conftest import PRELOAD, SEEP, environment, recordings_in

PYTHON = "/usr/bin/python3"
SECONDS = 36
TIMEOUT_S = 180
PROGRAM = textwrap.dedent("""\
    import sys
    import threading
    import time

    forever = threading.Event()

    def wait_for_reply(seconds):
        forever.wait(seconds)

    def handle(seconds):
        thread = threading.Thread(target=wait_for_reply, args=(seconds,))
        thread.daemon = True
        thread.start()

    begin = time.monotonic()
    while time.monotonic() < begin + float(sys.argv[1]):
        handle(float(sys.argv[2]))
        time.sleep(0.1)
    """)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """{kind: report}: threads that wait for an hour, and for half a second."""
    waits = {"leak": 3600, "pool": 0.5}
    running = {}
    for kind, wait in waits.items():
        folder = tmp_path_factory.mktemp(kind)
        (folder / "serve.py").write_text(PROGRAM)
        running[kind] = folder, subprocess.Popen(
            [SEEP, "run", "--quiet", "--no-report", "-o", f"{folder}/", "--",
             PYTHON, folder / "serve.py", str(SECONDS), str(wait)],
            env=environment(SEEP_PRELOAD=PRELOAD), stderr=subprocess.PIPE)
    reports = {}
    for kind, (folder, process) in running.items():
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, err) == (0, b"")
        done = subprocess.run(
            [SEEP, "report", "--json", *recordings_in(folder)],
            capture_output=True, check=True, timeout=TIMEOUT_S)
        [reports[kind]] = json.loads(done.stdout)["processes"]
    return reports


def told_in(process):
    return [reason for reason in process["verdict"]["reasons"]
            if " threads, " in reason]


def test_threads_that_never_end_are_told_with_who_starts_them(seen):
    threads = seen["leak"]["memory"]["threads"]
    assert threads["last"] > 0.7 * SECONDS / 0.1 > 10 * threads["first"]
    assert 5 < threads["slope_per_s"] < 11
    [told] = told_in(seen["leak"])
    assert told.endswith("they are started at serve.py:13 handle"), told
    assert "for what its threads wait" in seen["leak"]["verdict"]["advice"][0]


def test_threads_that_come_and_go_are_not_told(seen):
    threads = seen["pool"]["memory"]["threads"]
    assert threads["last"] < 30
    assert not told_in(seen["pool"])
    assert not any("threads" in advice
                   for advice in seen["pool"]["verdict"]["advice"])
