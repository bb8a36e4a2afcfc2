# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every door into the driver, on the fake one: what the program keeps books of
is what the driver has, and being recorded changes no result."""
import glob
import json
import os
import subprocess

import pytest

BUILD = os.environ['SEEP_BUILD']
PROGRAMS = os.path.join(BUILD, 'tests', 'integration', 'programs')
DRIVER = os.path.dirname(os.environ['SEEP_FAKE_CUDA'])
DOORS = ['link', 'dlsym', 'noload', 'default', 'twins', 'address1', 'address2',
         'address2twins', 'runtime']


def run(door, threads, folder, **more):
    name = 'cuda_doors_linked' if door == 'link' else 'cuda_doors'
    env = dict(os.environ, LD_LIBRARY_PATH=DRIVER, **more)
    result = subprocess.run(
        [os.path.join(PROGRAMS, name), door, str(threads)], env=env, text=True,
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        timeout=120)
    assert result.stderr == ''
    assert result.returncode == 0, result.stdout
    return json.loads(result.stdout)


@pytest.mark.parametrize('threads', [1, 8])
@pytest.mark.parametrize('door', DOORS)
def test_the_books_are_the_drivers(door, threads, tmp_path):
    told = run(door, threads, tmp_path)
    assert told['agrees'] and told['unexpected'] == 0
    assert all(site['live_bytes'] > 0 for site in told['sites'])


@pytest.mark.parametrize('distinct', ['0', '1'])
@pytest.mark.parametrize('door', DOORS)
def test_a_recording_changes_no_result(door, distinct, tmp_path):
    """One thread makes the same calls each time; cuGetProcAddress gives what
    dlsym gives, or another address of the same."""
    more = {'SEEP_FAKE_CUDA_DISTINCT': distinct}
    bare = run(door, 1, tmp_path, **more)
    more['LD_PRELOAD'] = os.environ['SEEP_PRELOAD']
    assert run(door, 1, tmp_path, **more) == bare


def test_an_old_driver_has_no_door_for_new_runtimes(tmp_path):
    env = dict(os.environ, LD_LIBRARY_PATH=DRIVER,
               SEEP_FAKE_CUDA_VERSION='11040')
    result = subprocess.run(
        [os.path.join(PROGRAMS, 'cuda_doors'), 'runtime'], env=env, text=True,
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        timeout=60)
    assert result.returncode == 2 and 'no way in' in result.stderr


def runtimes():
    """The vendor's runtime as far as it is here: a shared one, a linked one."""
    shared = sorted(glob.glob(
        os.environ.get('SEEP_CUDA_TOOLKIT', '/usr/local/cuda')
        + '/lib*/libcudart.so.*'))
    linked = os.path.join(PROGRAMS, 'cuda_runtime_static')
    found = [[os.path.join(PROGRAMS, 'cuda_runtime'), shared[0]]] \
        if shared else []
    return found + ([[linked]] if os.path.exists(linked) else [])


def test_the_vendors_runtime_goes_its_own_way(tmp_path):
    """It looks up all its names, then refuses the driver, with and without."""
    if not runtimes():
        pytest.skip('no CUDA runtime is installed')
    for command in runtimes():
        said = []
        for more in ({}, {'LD_PRELOAD': os.environ['SEEP_PRELOAD']}):
            result = subprocess.run(
                command, env=dict(os.environ, LD_LIBRARY_PATH=DRIVER, **more),
                text=True, cwd=tmp_path, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, timeout=60)
            assert (result.returncode, result.stderr) == (0, '')
            said.append(json.loads(result.stdout))
        assert said[0] == said[1]
        assert said[0]['first'] != 0 and said[0]['pointer'] is None
        assert said[0]['look_ups'] > 300
