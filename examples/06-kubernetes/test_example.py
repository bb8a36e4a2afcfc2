# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the manifest says is what seep understands, and after a kill the volume
has what a report needs.

No cluster is here: the commands of ours are run with the paths of a folder
that stands for the volumes.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

yaml = pytest.importorskip('yaml')

FOLDER = os.path.dirname(os.path.abspath(__file__))
SEEP = os.environ['SEEP']
PRELOAD = os.environ['SEEP_PRELOAD']
SECONDS = 5
LONG = os.environ.get('SEEP_TEST_LONG', '') not in ('', '0')
PROBED_S = 600 if LONG else 20
KEEP = None if LONG else '6,64MiB'  # so that it is met within that time
USER = 1000
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


def as_user():
    """securityContext, where we may."""
    user = POD['securityContext']
    assert user['runAsUser'] == user['fsGroup'] == USER
    return {'user': USER, 'group': USER, 'extra_groups': []} \
        if os.geteuid() == 0 else {}


def pod_at(folder, path):
    """The volumes as a kubelet makes them, and the container's variables."""
    folder.chmod(0o755)
    place = folder / 'recordings'
    place.mkdir()
    if os.geteuid() == 0:
        os.chown(place, 0, USER)
    place.chmod(0o2777)
    (folder / 'dev').mkdir()
    (folder / 'dev/termination-log').touch()
    (folder / 'dev/termination-log').chmod(0o666)
    for file in (PRELOAD, beside_seep('seep-probe'),
                 os.path.join(FOLDER, 'worker.py')):
        shutil.copy(file, folder)
        (folder / os.path.basename(file)).chmod(0o755)
    ours = variables_of(container('worker'))
    ours['LD_PRELOAD'] = str(folder / os.path.basename(PRELOAD))
    ours['SEEP_OUT'] = f'{folder}{ours["SEEP_OUT"]}'
    ours['SEEP_KEEP'] = KEEP or ours['SEEP_KEEP']
    return place, {'PATH': path, **ours}


def most_of(keep):
    """Files and bytes of a SEEP_KEEP, and two that are in the making."""
    files, size = keep.split(',')
    return int(files) + 2, (int(size.removesuffix('MiB')) + 32) << 20


@pytest.mark.skipif(not beside_seep('seep-probe'), reason='no seep-probe')
def test_a_pod_that_is_probed_each_second_stays_small_and_is_told_right():
    """An exec probe that is a program of its own is recorded, too."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix='seep-pod-'))
    place, ours = pod_at(folder, '/usr/bin:/bin')
    files_most, bytes_most = most_of(ours['SEEP_KEEP'])
    command = here(container('worker')['readinessProbe']['exec']['command'],
                   folder)
    command[0] = str(folder / 'seep-probe')
    python = shutil.which('python3', path=ours['PATH'])
    worker = subprocess.Popen([python, str(folder / 'worker.py')], env=ours,
                              cwd='/', **as_user())
    try:
        for second in range(PROBED_S):
            begin = time.monotonic()
            own = run(python, '-c', 'import json', env=ours, cwd='/',
                      **as_user())
            assert (own.returncode, own.stderr) == (0, '')
            done = run(*command, env=ours, cwd='/', **as_user())
            assert worker.poll() is None
            assert done.returncode == 0, done.stdout
            assert second < 3 or 'the host has' in done.stdout, done.stdout
            files = [entry.stat() for entry in os.scandir(place)]
            assert len(files) <= files_most
            assert sum(512 * one.st_blocks for one in files) <= bytes_most
            time.sleep(max(0, begin + 1 - time.monotonic()))
        worker.send_signal(signal.SIGKILL)
        worker.wait(timeout=30)
        assert run(*command, env=ours, cwd='/',
                   **as_user()).returncode in OVER_A_LIMIT
        kept = [one for one in os.listdir(place)
                if f'.{worker.pid}.' in one]
        assert len(kept) == 1
        text = run(SEEP, 'report', f'{place}/{kept[0]}').stdout
        assert 'embed' in text, text
    finally:
        worker.kill()
        worker.wait(timeout=30)
        shutil.rmtree(folder)


def test_variables_are_those_of_seep_env():
    done = run(SEEP, 'env', '--format', 'k8s', '-o', '/recordings/')
    wanted = {entry['name']: entry['value']
              for entry in yaml.safe_load(done.stdout)}
    ours = variables_of(container('worker'))
    assert ours.pop('SEEP_KEEP') == '200,512MiB'
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
