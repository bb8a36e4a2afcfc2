# SPDX-License-Identifier: LGPL-2.1-or-later
"""A worker that does as it is told, and probes of its recording.

Invariant: every process that is started here is ended here, by its pid, and no
answer is waited for longer than LIMIT_S.
"""
import subprocess
import time

import pytest

from conftest import SEEP, environment
from command_line import PYTHON

PROBE = SEEP.parent / "seep-probe"
FORMS = {"verb": (SEEP, "probe"), "file": (PROBE,)}
LIMIT_S = 60
MOST_S = 10  # a generous one, of a machine that does other things
READY, FAILED, USAGE, HEADROOM, UNKNOWN, GROWTH, STALE, NOT_CONFIGURED = \
    range(8)

# Does as it is told, a line at a time: take and give bytes, or wait.
WORKER = """
import sys
kept = []
print("ready", flush=True)
for line in sys.stdin:
    word, size = (line.split() + [0])[:2]
    if word == "take":
        kept.append(bytearray(int(size)))
    print(word, flush=True)
"""


class Worker:
    """A program under the preload that does what it is told."""

    def __init__(self, folder, code, *words, speaks=True, sample=65536,
                 **variables):
        self.process = subprocess.Popen(
            [PYTHON, "-c", code, *words], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, start_new_session=True, text=True,
            env=environment(folder, sample=sample) | variables)
        if speaks:
            assert self.process.stdout.readline() == "ready\n"

    def tell(self, line):
        """One command, done when this returns."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().split()[0] == line.split()[0]

    def end(self):
        """It may be stopped."""
        self.process.kill()
        self.process.communicate(timeout=LIMIT_S)


@pytest.fixture(name="workers")
def workers_fixture():
    """Start workers that are ended with the test."""
    started = []

    def start(*words, **more):
        started.append(Worker(*words, **more))
        return started[-1]

    yield start
    for worker in started:
        worker.end()


@pytest.fixture(name="live")
def live_fixture(workers, tmp_path):
    """A worker that has recorded something, and its folder."""
    worker = workers(tmp_path, WORKER)
    for _ in range(8):
        worker.tell(f"take {1 << 20}")
    return worker, tmp_path


def probe(*words, form="file", limit_s=LIMIT_S, **variables):
    """One answer, and how long it took."""
    begin = time.monotonic()
    done = subprocess.run(
        [*FORMS[form], *map(str, words)], capture_output=True, text=True,
        env=environment() | variables, timeout=limit_s, check=False,
        start_new_session=True)
    done.seconds = time.monotonic() - begin
    return done


def answer(*words, **more):
    """(code, line) of one that says nothing on stderr."""
    done = probe(*words, **more)
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    assert len(done.stdout.encode()) <= 1024
    return done.returncode, done.stdout.rstrip("\n")
