# SPDX-License-Identifier: LGPL-2.1-or-later
"""The example does what its README says: 1 KiB a request, told by requests."""
import glob
import json
import os
import signal
import subprocess
import sys
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
SEEP = os.environ['SEEP']
SECONDS = 45


def wait_for(path, process):
    for _ in range(600):
        if os.path.exists(path):
            with open(path, encoding='ascii') as file:
                return [int(word) for word in file.read().split()]
        assert process.poll() is None, 'the server ended'
        time.sleep(0.1)
    raise AssertionError('the server did not start')


def record(folder):
    """Run the service under seep and the load against it; the recording."""
    ready = str(folder / 'ready')
    run = subprocess.Popen(
        [SEEP, 'run', '-o', str(folder / '%e.%p.seep'), '--exact', '--',
         sys.executable, os.path.join(FOLDER, 'server.py'), '--ready', ready],
        env={**os.environ, 'SEEP_LABELS': 'model=none,role=worker'})
    try:
        server, port = wait_for(ready, run)
        load = subprocess.run(
            [sys.executable, os.path.join(FOLDER, 'load.py'), '--port',
             str(port), '--seconds', str(SECONDS)],
            check=True, text=True, stdout=subprocess.PIPE, timeout=100)
        os.kill(server, signal.SIGTERM)
        assert run.wait(timeout=30) == 128 + signal.SIGTERM
    finally:
        run.kill()
    recording, = glob.glob(str(folder / '*.seep'))
    return int(load.stdout.split()[0]), recording


def seep(*words):
    done = subprocess.run([SEEP, 'report', *words], check=False, text=True,
                          stdout=subprocess.PIPE, timeout=60)
    assert done.returncode in (0, 3), done
    return done.stdout


def test_the_leak_is_told_by_requests(tmp_path):
    requests, recording = record(tmp_path)

    process = json.loads(seep('--json', recording))['processes'][0]
    assert process['process']['units'] == requests
    assert process['process']['labels'] == {'model': 'bert-13',
                                            'role': 'worker'}
    assert [mark['name'] for mark in process['marks']] == [
        'warm-up begins', 'warm-up done']
    assert process['verdict']['class'] == 'leak'
    growth = process['verdict']['growth_bytes_per_unit']
    assert growth['low'] <= 1024 <= growth['high'], growth
    # An interval of no use would hold it too.
    assert growth['high'] - growth['low'] < 512, growth
    assert 'warm-up done at' in seep(recording)
    assert 'model=bert-13' in seep('--by', 'label', recording)
