# SPDX-License-Identifier: LGPL-2.1-or-later
"""The example does what its README says: the soak passes, with the leak it
fails and names the line. Both at the same time."""
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as etree

import pytest

from conftest import leaking_line, processes_of

FOLDER = os.path.dirname(os.path.abspath(__file__))
SECONDS = 36
LIMIT_S = 150


def start(folder, *words):
    """soak.sh, its words in a file."""
    folder.mkdir()
    environment = {**os.environ, 'PYTHON': sys.executable}
    environment.pop('GITHUB_STEP_SUMMARY', None)
    with open(folder / 'words', 'wb') as file:
        return subprocess.Popen(
            [os.path.join(FOLDER, 'soak.sh'), str(folder), '--seconds',
             str(SECONDS), *words], env=environment, stdout=file,
            stderr=subprocess.STDOUT, start_new_session=True)


@pytest.fixture(name='soaks', scope='module')
def run_both(tmp_path_factory):
    """{kept or broken: (exit status, what was printed, folder)}"""
    top = tmp_path_factory.mktemp('soaks')
    runs = {'kept': start(top / 'kept'),
            'broken': start(top / 'broken', '--leak')}
    try:
        return {name: (run.wait(timeout=LIMIT_S),
                       (top / name / 'words').read_text(), top / name)
                for name, run in runs.items()}
    finally:
        for run in runs.values():
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()


def report_of(folder):
    recording, = folder.glob('*.seep')
    return processes_of(recording)[0]


def test_the_server_that_keeps_nothing_passes(soaks):
    status, words, folder = soaks['kept']

    assert status == 0, words
    assert 'PASS: all 3 limits hold' in words
    assert [mark['name'] for mark in report_of(folder)['marks']] == [
        'warm-up begins', 'warm-up done', 'soak begins', 'soak done']


def test_the_server_that_keeps_answers_fails_by_its_line(soaks):
    status, words, folder = soaks['broken']
    line = leaking_line(os.path.join(FOLDER, 'model_server.py'))

    assert status == 3, words
    assert 'FAIL: 2 of 3 limits violated' in words
    assert f'model_server.py:{line} Model.predict' in words
    assert '::error file=' in words
    cases = list(etree.parse(folder / 'soak.xml').iter('testcase'))
    assert sum(case.find('failure') is not None for case in cases) == 2
    assert len(cases) == 3


def test_the_leak_is_told_by_requests(soaks):
    _, words, folder = soaks['broken']
    growth = report_of(folder)['verdict']['growth_bytes_per_unit']

    assert growth['low'] <= 4096 + 33 <= growth['high'], words
