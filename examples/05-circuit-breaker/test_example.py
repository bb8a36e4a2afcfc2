# SPDX-License-Identifier: LGPL-2.1-or-later
"""The breaker opens on the probe's word before requests hang, and closes.

The GPU is a driver in host memory (tests/fake). What other processes hold of
it is written into a file that it reads, so a test can be a greedy neighbour.
"""
import contextlib
import glob
import json
import os
import signal
import struct
import subprocess
import sys
import time

import pytest

import load
from breaker import CLOSED, HALF_OPEN, OPEN, PAUSE_S, Breaker
from conftest import SEEP, leaking_line, processes_of, wait_for_file
from gpu import CONTEXT_BYTES, SCRATCH_BYTES

FOLDER = os.path.dirname(os.path.abspath(__file__))
PROBE = os.path.join(os.path.dirname(SEEP), 'seep-probe')
DRIVER = os.environ.get('SEEP_FAKE_CUDA', '')
MIB = 1 << 20
MEMORY_BYTES = 384 * MIB
USED_BYTES = 64 * MIB  # by the driver's context
FREE_BYTES = 128 * MIB  # under this it must open
REFUSED_IN_S = 1.0
WAIT_S = 20

needs_driver = pytest.mark.skipif(not DRIVER, reason='no fake driver')


class Server:
    """The server under seep, and the neighbour on its GPU."""

    def __init__(self, folder, *options):
        self.folder = folder
        self.neighbour = str(folder / 'others')
        self.take(0)
        ready = str(folder / 'ready')
        self.process = subprocess.Popen(
            [SEEP, 'run', '--no-report', '-o', f'{folder}/', '--',
             sys.executable, os.path.join(FOLDER, 'server.py'),
             '--ready', ready, '--recordings', str(folder),
             '--gpu-free-mib', str(FREE_BYTES // MIB), '--probe', PROBE,
             *options],
            env={**os.environ, 'SEEP_FAKE_CUDA_MEMORY': str(MEMORY_BYTES),
                 'SEEP_FAKE_CUDA_OTHERS': self.neighbour,
                 'LD_LIBRARY_PATH': os.path.dirname(DRIVER)},
            start_new_session=True)
        try:
            self.pid, self.port = wait_for_file(ready, self.process)
        except AssertionError:
            self.kill()
            raise

    def take(self, size_bytes):
        """The neighbour holds that much from now on."""
        with open(self.neighbour, 'wb') as file:
            file.write(struct.pack('=Q', size_bytes))

    def ask(self, *words, **more):
        return load.ask(self.port, *words, **more)

    def state(self):
        return json.loads(self.ask('/state', 'GET')[2])

    def wait_for(self, status):
        """Until a request is answered so; what it was."""
        end = time.monotonic() + WAIT_S
        while True:
            asked = self.ask()
            if asked[0] == status:
                return asked
            assert time.monotonic() < end, (asked, self.state())
            time.sleep(0.05)

    def wait_until_not_ready(self, reason):
        end = time.monotonic() + WAIT_S
        while True:
            status, _, text, _ = self.ask('/ready', 'GET')
            if status == 503 and reason in text:
                return
            assert time.monotonic() < end, (status, text)
            time.sleep(0.05)

    def end(self):
        """As an operator would; what is left then, by force."""
        try:
            os.kill(self.pid, signal.SIGTERM)
            self.process.wait(timeout=30)
        finally:
            self.kill()

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=30)


@contextlib.contextmanager
def serving(folder, *options):
    server = Server(folder, *options)
    try:
        yield server
    finally:
        server.end()


def leaked_bytes(folder):
    """By the recording, of the line that leaks."""
    recording, = glob.glob(f'{folder}/*.seep')
    process, = processes_of(recording)
    line = leaking_line(os.path.join(FOLDER, 'gpu.py'))
    return sum(site['live_bytes'] for site in process['sites']
               if site['space'] == 'device' and
               any(frame['function'] == 'Model.keep_context' and
                   frame['line'] == line for frame in site['frames']))


def fill(server):
    """Load until the first refusal, and for a second after it; what came of
    all requests."""
    stop, clients = load.start(server.port)
    end = time.monotonic() + WAIT_S
    while not any(one[1] != 200 for one in load.collect(clients)):
        assert time.monotonic() < end, 'nothing was refused'
        time.sleep(0.05)
    time.sleep(1)
    stop.set()
    for client in clients:
        client.join(2 * load.GIVE_UP_S)
    return load.collect(clients)


@needs_driver
def test_a_leak_opens_it_before_a_request_hangs(tmp_path):
    with serving(tmp_path) as server:
        server.wait_for(200)
        asked = fill(server)
        answered = sum(one[1] == 200 for one in asked)

        # Every request was answered or refused, and none late.
        assert {one[1] for one in asked} == {200, 503}
        assert max(one[2] for one in asked) < REFUSED_IN_S
        # Memory was left: nobody had to wait for it first.
        leaked = leaked_bytes(tmp_path)
        assert answered * CONTEXT_BYTES <= leaked
        assert leaked < MEMORY_BYTES - USED_BYTES - SCRATCH_BYTES
        status, seconds, reason, retry_after = server.ask()
        assert (status, int(retry_after) >= 1) == (503, True)
        assert seconds < REFUSED_IN_S
        assert 'GPU 0' in reason
        assert server.ask('/ready', 'GET')[0] == 503
        assert server.ask('/live', 'GET')[0] == 200

        server.ask('/reload')
        server.wait_for(200)
        assert server.ask('/ready', 'GET')[0] == 200
        assert server.state()['history'] == [
            OPEN, HALF_OPEN, CLOSED, OPEN, HALF_OPEN, CLOSED]


@needs_driver
def test_a_neighbour_that_takes_all_is_noticed_and_survived(tmp_path):
    with serving(tmp_path) as server:
        server.wait_for(200)
        # All at once: the first request can be in before anybody knows.
        server.take(MEMORY_BYTES)
        status, seconds, _, retry_after = server.ask()
        assert (status, int(retry_after) >= 1) == (503, True)
        assert seconds < REFUSED_IN_S
        server.wait_until_not_ready('GPU 0 has 0 B left')
        server.take(0)
        server.wait_for(200)

        # Little by little, and nobody asks for memory but the canary.
        server.take(MEMORY_BYTES - 96 * MIB)
        server.wait_until_not_ready('GPU 0 has ')
        server.take(0)
        server.wait_for(200)


@needs_driver
def test_without_it_requests_hang_and_the_server_looks_well(tmp_path):
    with serving(tmp_path, '--no-breaker') as server:
        server.wait_for(200)
        server.take(MEMORY_BYTES)
        assert server.ask(timeout_s=2)[0] is None
        assert server.ask('/live', 'GET')[0] == 200
        assert server.ask('/ready', 'GET')[0] == 200
        server.take(0)
        server.wait_for(200)


@needs_driver
def test_the_canary_notices_weights_that_are_wrong():
    program = ('from gpu import *; model = Model(Gpu()); '
               'assert model.check(); '
               'model.gpu.write(model.weights, b"drift"); '
               'assert not model.check()')
    subprocess.run([sys.executable, '-c', program], check=True, cwd=FOLDER,
                   timeout=30, env={**os.environ, 'LD_LIBRARY_PATH':
                                    os.path.dirname(DRIVER)})


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def closed(clock):
    breaker = Breaker(clock)
    breaker.tell(True, 'well')
    breaker.leave(breaker.enter(), True)
    assert breaker.state == CLOSED
    return breaker


def test_half_open_lets_one_trial_through():
    clock = Clock()
    breaker = closed(clock)
    breaker.tell(False, 'low')
    assert breaker.enter() is None
    breaker.tell(True, 'well')
    assert breaker.state == OPEN  # not before the pause is over
    clock.now += PAUSE_S
    breaker.tell(True, 'well')
    assert breaker.state == HALF_OPEN
    trial = breaker.enter()
    assert trial is not None
    assert breaker.enter() is None
    breaker.leave(trial, False, 'hung')
    assert breaker.state == OPEN
    clock.now += PAUSE_S
    breaker.tell(True, 'well')
    breaker.leave(breaker.enter(), True)
    assert breaker.state == CLOSED


def test_a_trial_that_ends_late_decides_nothing():
    clock = Clock()
    breaker = closed(clock)
    breaker.tell(False, 'low')
    clock.now += PAUSE_S
    breaker.tell(True, 'well')
    trial = breaker.enter()
    breaker.tell(False, 'low again')
    breaker.leave(trial, True)
    assert breaker.state == OPEN


def test_failures_in_a_row_open_it_and_others_do_not():
    breaker = closed(Clock())
    for is_well in (False, False, True, False, False):
        breaker.leave(breaker.enter(), is_well, 'late')
    assert breaker.state == CLOSED
    breaker.leave(breaker.enter(), False, 'late')
    assert breaker.state == OPEN
