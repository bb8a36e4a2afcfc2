# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests of the examples share: run one, read what it recorded."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(
    pathlib.Path(__file__).resolve().parent.parent / 'tests/integration'))

import consistency  # noqa: E402

SEEP = os.environ['SEEP']


def wait_for_file(path, process):
    """The numbers in a file that @process writes when it is ready."""
    for _ in range(600):
        if os.path.exists(path):
            with open(path, encoding='ascii') as file:
                return [int(word) for word in file.read().split()]
        assert process.poll() is None, 'the server ended'
        time.sleep(0.1)
    raise AssertionError('the server did not start')


def leaking_line(path):
    """Where a program says that it leaks."""
    with open(path, encoding='utf-8') as file:
        return next(number for number, line in enumerate(file, 1)
                    if line.endswith('# the leak\n'))


def report(*words):
    """What `seep report` prints."""
    done = subprocess.run([SEEP, 'report', *words], check=True,
                          stdout=subprocess.PIPE, timeout=60, text=True)
    return done.stdout


def processes_of(*recordings):
    """The processes of `seep report --json`, which must not deny itself."""
    document = json.loads(report('--json', *recordings))
    assert not consistency.of_document(document)
    return document['processes']


@contextlib.contextmanager
def recorded(folder, example, *options, **variables):
    """An example's server under seep: its process and port. It is ended by
    SIGTERM, as an orchestrator does."""
    ready = str(folder / 'ready')
    run = subprocess.Popen(
        [SEEP, 'run', '-o', str(folder / '%e.%p.seep'), *options, '--',
         sys.executable, os.path.join(example, 'server.py'), '--ready', ready],
        env={**os.environ, **variables})
    try:
        server, port = wait_for_file(ready, run)
        yield server, port
        os.kill(server, signal.SIGTERM)
        assert run.wait(timeout=30) == 128 + signal.SIGTERM
    finally:
        run.kill()


def requests_to(example, port, seconds):
    """How many requests the example's load.py got answered."""
    done = subprocess.run(
        [sys.executable, os.path.join(example, 'load.py'), '--port',
         str(port), '--seconds', str(seconds)],
        check=True, text=True, stdout=subprocess.PIPE, timeout=seconds + 60)
    return int(done.stdout.split()[0])
