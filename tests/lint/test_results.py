# SPDX-License-Identifier: LGPL-2.1-or-later
"""The last line of tools/test says what the logs say, and fails when in doubt.
"""
import json
import os
import subprocess
import sys

SOURCE = os.environ.get('SEEP_SOURCE',
                        os.path.join(os.path.dirname(__file__), '..', '..'))


def add_up(tmp_path, *results, tail=''):
    log = tmp_path / 'testlog.json'
    log.write_text(''.join(json.dumps({'name': 'x', 'result': result}) + '\n'
                           for result in results) + tail)
    run = subprocess.run(
        [sys.executable, os.path.join(SOURCE, 'tools/lib/results.py'), 'sum',
         str(log), str(log)], text=True, stdout=subprocess.PIPE)
    return run.returncode, run.stdout.splitlines()[-1]


def test_results_are_summed_over_the_logs(tmp_path):
    assert add_up(tmp_path, 'OK', 'OK', 'SKIP') == (
        0, '4 passed, 0 failed, 2 skipped')


def test_whatever_is_neither_good_nor_skipped_has_failed(tmp_path):
    for result in ('FAIL', 'TIMEOUT', 'ERROR', 'UNEXPECTEDPASS', 'INTERRUPT'):
        assert add_up(tmp_path, 'OK', result) == (
            1, '2 passed, 2 failed, 0 skipped')


def test_a_log_that_ends_in_mid_line_is_a_failure(tmp_path):
    assert add_up(tmp_path, 'OK', tail='{"name": "y"') == (
        1, '2 passed, 2 failed, 0 skipped')


def test_a_log_that_is_not_there_is_a_failure(tmp_path):
    run = subprocess.run(
        [sys.executable, os.path.join(SOURCE, 'tools/lib/results.py'), 'sum',
         str(tmp_path / 'absent.json')], text=True, stdout=subprocess.PIPE)

    assert run.returncode == 1
    assert run.stdout.splitlines()[-1] == '0 passed, 1 failed, 0 skipped'
