# SPDX-License-Identifier: LGPL-2.1-or-later
"""Replicas that are started with their runtime_env record themselves.

Ray is not here: the test starts the workers as Ray does, by a bash that has
the variables and execs Python, and ends them by SIGKILL.
"""
import glob
import json
import os
import re
import subprocess
import sys
import time

from conftest import SEEP, leaking_line, report

FOLDER = os.path.dirname(os.path.abspath(__file__))
PRELOAD = os.environ['SEEP_PRELOAD']
STAND_IN = os.path.join(FOLDER, 'stand_in')
SECONDS = 6

sys.path[:0] = [STAND_IN, FOLDER]
import serve_app  # noqa: E402  pylint: disable=wrong-import-position


def apply(env_vars):
    """As Ray's worker does: what is asked for in ${} is what was there."""
    variables = {name: value for name, value in os.environ.items()
                 if name != 'LD_PRELOAD'}
    for name, value in env_vars.items():
        variables[name] = re.sub(
            r'\$\{([A-Za-z0-9_]+)\}',
            lambda match: variables.get(match[1], ''), value)
    return variables | {'PYTHONPATH': f'{STAND_IN}:{FOLDER}'}


def env_vars_of(name, folder):
    """Of a deployment, with the paths of this machine."""
    options = getattr(serve_app, name).options['ray_actor_options']
    return {variable: value.replace('/opt/seep/lib/seep/libseep.so', PRELOAD)
            .replace('/traces', str(folder))
            for variable, value in options['runtime_env']['env_vars'].items()}


def start(name, folder):
    command = f'exec {sys.executable} {STAND_IN}/worker.py {name}'
    return subprocess.Popen(['bash', '-c', command],
                            env=apply(env_vars_of(name, folder)),
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def test_variables_are_those_of_seep_env():
    done = subprocess.run([SEEP, 'env', '--format', 'docker', '-o',
                           '/traces/'], check=True, text=True,
                          stdout=subprocess.PIPE, timeout=30)
    wanted = dict(line.split('=', 1) for line in done.stdout.splitlines())
    ours = serve_app.recorded(model='x')['env_vars']
    assert ours.pop('SEEP_LABELS') == 'model=x'
    assert ours.pop('LD_PRELOAD').endswith('/libseep.so:${LD_PRELOAD}')
    assert wanted.pop('LD_PRELOAD').endswith('/libseep.so')
    assert ours == wanted


def test_replicas_are_told_by_label(tmp_path):
    workers = [start(name, tmp_path)
               for name in ('Embedder', 'Embedder', 'Router')]
    time.sleep(SECONDS)
    try:
        assert [worker.poll() for worker in workers] == [None] * 3
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.communicate(timeout=30)[0] for worker in workers] == [
        b''] * 3

    paths = glob.glob(f'{tmp_path}/*.seep')
    document = json.loads(report('--json', *paths))
    processes = {process['process']['pid']: process
                 for process in document['processes']}
    assert set(processes) == {worker.pid for worker in workers}
    for worker, model in zip(workers, ('embedder', 'embedder', 'router')):
        labels = processes[worker.pid]['process']['labels']
        assert labels['model'] == model
    for worker in workers[:2]:
        site = max(processes[worker.pid]['sites'],
                   key=lambda one: one['live_bytes'])
        lines = {frame['line'] for frame in site['frames']
                 if (frame['file'] or '').endswith('serve_app.py')}
        assert leaking_line(serve_app.__file__) in lines
    rows = report('--by', 'label', *paths).splitlines()
    counts = [re.split(r'\s\s+', row.strip()) for row in rows
              if 'model=' in row]
    assert {(row[-2], row[-3]) for row in counts} == {
        ('model=embedder', '2'), ('model=router', '1')}
