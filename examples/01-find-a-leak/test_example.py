# SPDX-License-Identifier: LGPL-2.1-or-later
"""The example does what its README says: the kept copies are at their line."""
import glob
import json
import os
import signal
import subprocess
import sys
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
SEEP = os.environ['SEEP']
SCORES_BYTES = 4096 * 4
SECONDS = 12


def wait_for(path, process):
    for _ in range(600):
        if os.path.exists(path):
            with open(path, encoding='ascii') as file:
                return [int(word) for word in file.read().split()]
        assert process.poll() is None, 'the server ended'
        time.sleep(0.1)
    raise AssertionError('the server did not start')


def record(folder):
    """Run the server under seep and the load against it; the report."""
    ready = str(folder / 'ready')
    run = subprocess.Popen(
        [SEEP, 'run', '-o', str(folder / '%e.%p.seep'), '--sample', '16KiB',
         '--', sys.executable, os.path.join(FOLDER, 'server.py'),
         '--ready', ready])
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
    recordings = glob.glob(str(folder / '*.seep'))
    assert len(recordings) == 1
    report = subprocess.run([SEEP, 'report', '--json', *recordings],
                            check=True, stdout=subprocess.PIPE, timeout=60)
    return int(load.stdout.split()[0]), json.loads(report.stdout)


def leaking_line():
    """Where the program says that it is."""
    with open(os.path.join(FOLDER, 'server.py'), encoding='utf-8') as file:
        return next(number for number, line in enumerate(file, 1)
                    if line.endswith('# the leak\n'))


def test_the_kept_copies_are_at_their_line(tmp_path):
    requests, report = record(tmp_path)

    assert requests > 0
    process = report['processes'][0]
    leak, = (site for site in process['sites'] if site['space'] == 'heap' and
             site['where'].startswith(f'server.py:{leaking_line()} '))
    modules = [frame['module'] or '' for frame in leak['frames']]
    assert any('_multiarray_umath' in module for module in modules)
    # A block of the mean's size is sampled with probability 1 - 1/e: the
    # error of the sum of n is 0.76 sqrt(n) blocks.
    wanted = requests * SCORES_BYTES
    error = 5 * 0.77 * requests ** 0.5 * SCORES_BYTES
    assert abs(leak['live_bytes'] - wanted) < error
