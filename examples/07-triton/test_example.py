# SPDX-License-Identifier: LGPL-2.1-or-later
"""A stub that is started as Triton starts it has one recording, with labels.

Triton is not here: stand_in/ starts the model as it does.
"""
import glob
import os
import signal
import subprocess
import sys

import pytest

from conftest import SEEP, leaking_line, processes_of

FOLDER = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.environ['SEEP_BUILD'], 'examples')
STUB = os.path.join(BUILD, 'triton_python_backend_stub')
STAND_IN = os.path.join(FOLDER, 'stand_in')
MODEL = os.path.join(FOLDER, 'models', 'sentiment', '1', 'model.py')
MODULE = os.path.join(os.environ['SEEP_SOURCE'], 'tools', 'python')
SECONDS = 6


def variables(folder, **more):
    """As `eval "$(seep env -o FOLDER)"` sets them."""
    done = subprocess.run([SEEP, 'env', '--format', 'docker', '-o', folder],
                          check=True, text=True, stdout=subprocess.PIPE,
                          timeout=30)
    ours = dict(line.split('=', 1) for line in done.stdout.splitlines())
    return {**os.environ, **ours, 'PYTHONPATH': f'{STAND_IN}:{MODULE}',
            **more}


def run(folder, *command, **more):
    """To its end; it must not have said anything, so we have not either."""
    process = subprocess.Popen(
        command, env=variables(f'{folder}/', **more), cwd=folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True)
    try:
        out = process.communicate(timeout=90)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert (process.returncode, out) == (0, b'')


def processes(folder):
    """{first word of the command line's file name: [processes]} of all."""
    found = {}
    for path in glob.glob(f'{folder}/*.seep'):
        for process in processes_of(path):
            name = os.path.basename(process['process']['exe'])
            found.setdefault(name, []).append(process)
    return found


def most_at(process, path):
    """Does most of what lives lie at the leaking line of that file?"""
    heap = [site for site in process['sites'] if site['space'] == 'heap']
    site = max(heap, key=lambda one: one['live_bytes'])
    return site['where'].startswith(
        f'{os.path.basename(path)}:{leaking_line(path)} ')


@pytest.mark.skipif(not os.path.exists(STUB), reason='no libpython-dev')
def test_an_instance_has_one_recording_with_labels(tmp_path):
    activate = tmp_path / 'activate'
    activate.write_text('export VIRTUAL_ENV=/nowhere\n', encoding='ascii')
    run(tmp_path, os.path.join(BUILD, 'tritonserver'), STUB, STAND_IN, MODEL,
        str(activate), str(SECONDS))

    found = processes(tmp_path)
    # No shell, no env, no trial run, and of tritonserver only what it did
    # itself, which here is nothing.
    assert set(found) == {'triton_python_backend_stub'}
    completing, serving = sorted(
        found['triton_python_backend_stub'],
        key=lambda process: len(process['process']['labels']))
    assert completing['process']['argv'][-1] == 'sentiment'
    assert completing['process']['labels'] == {}
    assert serving['process']['argv'][-1] == 'sentiment_0_0'
    assert serving['process']['labels'] == {
        'model': 'sentiment', 'version': '1', 'instance': 'sentiment_0_0'}
    assert serving['process']['state'] in ('killed', 'gone')
    assert serving['process']['units'] > 100
    assert most_at(serving, MODEL)


def test_pytriton_runs_the_model_in_its_own_process(tmp_path):
    script = os.path.join(FOLDER, 'pytriton_server.py')
    run(tmp_path, sys.executable, script, STAND_IN_SECONDS='4',
        SEEP_LABELS='model=sentiment,role=pytriton')

    (name, (process,)), = processes(tmp_path).items()
    assert name.startswith('python')
    assert process['process']['labels'] == {'model': 'sentiment',
                                            'role': 'pytriton'}
    assert most_at(process, script)
