# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the manifest says is what seep understands, and after a kill the volume
has what a report needs.

No cluster is here: the commands of ours are run with the paths of a folder
that stands for the volumes.
"""
import os
import re
import signal
import subprocess
import sys
import time

import pytest

yaml = pytest.importorskip('yaml')

FOLDER = os.path.dirname(os.path.abspath(__file__))
SEEP = os.environ['SEEP']
PRELOAD = os.environ['SEEP_PRELOAD']
SECONDS = 5
OVER_A_LIMIT = (3, 5, 6)

with open(os.path.join(FOLDER, 'pod.yaml'), encoding='utf-8') as manifest:
    POD = yaml.safe_load(manifest)['spec']


def container(name):
    return next(one for one in POD['containers'] if one['name'] == name)


def variables_of(one):
    return {entry['name']: entry['value'] for entry in one['env']}


def beside_seep(name):
    """A program of ours, built or installed."""
    folder = os.path.dirname(SEEP)
    for path in (os.path.join(folder, name),
                 os.path.join(folder, '..', 'libexec', name)):
        if os.path.exists(path):
            return path
    return None


def here(words, folder):
    """A command of the manifest with the paths of this machine."""
    own = {'/seep/seep-probe': beside_seep('seep-probe'), 'seep': SEEP}
    return [own.get(words[0], words[0])] + [
        re.sub('^/(recordings|dev/termination-log)', f'{folder}/\\1', word)
        for word in words[1:]]


def run(*words, **more):
    done = subprocess.run(words, check=False, text=True, timeout=30,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          **more)
    assert 'usage' not in done.stderr, done.stderr
    return done


@pytest.fixture(scope='module')
def volumes(tmp_path_factory):
    """The volumes, after the worker was killed in them as by the kernel; and
    what the probe said before and after that."""
    folder = tmp_path_factory.mktemp('pod')
    (folder / 'recordings').mkdir()
    (folder / 'dev').mkdir()
    (folder / 'dev/termination-log').touch()
    ours = variables_of(container('worker'))
    ours['LD_PRELOAD'] = PRELOAD
    ours['SEEP_OUT'] = f'{folder}{ours["SEEP_OUT"]}'
    worker = subprocess.Popen(
        [sys.executable, os.path.join(FOLDER, 'worker.py')],
        env={**os.environ, **ours})
    probe = container('worker')['readinessProbe']['exec']['command']
    said = {}
    try:
        time.sleep(SECONDS)
        assert worker.poll() is None
        if beside_seep('seep-probe'):
            # The kubelet gives it the variables of the container.
            said['alive'] = run(*here(probe, folder), env={**os.environ,
                                                           **ours})
        worker.send_signal(signal.SIGKILL)
        assert worker.wait(timeout=30) == -signal.SIGKILL
    finally:
        worker.kill()
    said['message'] = (folder / 'dev/termination-log').read_text()
    if beside_seep('seep-probe'):
        said['dead'] = run(*here(probe, folder))
    return folder, said


def test_variables_are_those_of_seep_env():
    done = run(SEEP, 'env', '--format', 'k8s', '-o', '/recordings/')
    wanted = {entry['name']: entry['value']
              for entry in yaml.safe_load(done.stdout)}
    ours = variables_of(container('worker'))
    assert ours.pop('SEEP_LABELS') == 'model=embedder,version=13'
    assert ours.pop('LD_PRELOAD') == '/seep/libseep.so'
    assert wanted.pop('LD_PRELOAD').endswith('/libseep.so')
    assert ours == wanted


def test_every_volume_is_mounted_and_where_it_is_said():
    worker = container('worker')
    mounts = {mount['mountPath']: mount['name']
              for mount in worker['volumeMounts']}
    names = {volume['name'] for volume in POD['volumes']}
    assert names == set(mounts.values()) == {'seep', 'recordings'}
    assert variables_of(worker)['SEEP_OUT'].startswith('/recordings/')
    probe = worker['readinessProbe']['exec']['command']
    assert worker['terminationMessagePath'] in probe
    # The kubelet must hear the reason, not its own "timed out".
    deadline = probe[probe.index('--deadline') + 1]
    assert int(deadline.removesuffix('ms')) < 1000 * worker[
        'readinessProbe']['timeoutSeconds']


@pytest.mark.skipif(not beside_seep('seep-probe'), reason='no seep-probe')
def test_the_probe_is_understood_and_leaves_its_word(volumes):
    folder, said = volumes
    assert said['alive'].returncode == 0, said
    assert said['message'].strip() == said['alive'].stdout.strip() != ''
    assert said['dead'].returncode in OVER_A_LIMIT, said
    assert len(os.listdir(folder / 'recordings')) == 1


def test_the_sidecar_is_understood(volumes):
    command = here(container('seep')['command'], volumes[0])
    if run(SEEP, 'metrics', '--help').returncode != 0:
        pytest.skip('no seep metrics')
    listen = command.index('--listen')
    done = run(*command[:listen], '--textfile', str(volumes[0] / 'x.prom'),
               '--once', *command[listen + 2:])
    assert done.returncode == 0, done.stderr
    text = (volumes[0] / 'x.prom').read_text()
    assert 'model="embedder"' in text


def test_after_the_kill_the_report_has_all(volumes):
    done = run(SEEP, 'report', f'{volumes[0]}/recordings')
    assert done.returncode == 0, done.stderr
    text = ' '.join(done.stdout.split())
    assert 'killed' in text
    assert 'worker.py:12 embed' in text
    with open(os.path.join(FOLDER, 'worker.py'), encoding='utf-8') as file:
        assert 'return' in file.read().splitlines()[11]
    assert 'model=embedder' in run(SEEP, 'report', '--by', 'label',
                                   f'{volumes[0]}/recordings').stdout
