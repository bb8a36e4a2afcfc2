# SPDX-License-Identifier: LGPL-2.1-or-later
"""The last line of tools/test says what the logs say, and fails when in doubt.
"""
import json
import os
import subprocess
import sys

import pytest

SOURCE = os.environ.get('SEEP_SOURCE',
                        os.path.join(os.path.dirname(__file__), '..', '..'))


def sum_of(*logs):
    return subprocess.run(
        [sys.executable, os.path.join(SOURCE, 'tools/lib/results.py'), 'sum',
         *map(str, logs)], text=True, stdout=subprocess.PIPE)


def add_up(tmp_path, *results, tail=''):
    log = tmp_path / 'testlog.json'
    log.write_text(''.join(json.dumps({'name': 'x', 'result': result}) + '\n'
                           for result in results) + tail)
    run = sum_of(log, log)
    return run.returncode, run.stdout.splitlines()[-1]


def test_results_are_summed_over_the_logs(tmp_path):
    assert add_up(tmp_path, 'OK', 'OK', 'SKIP') == (
        0, '4 passed, 0 failed, 2 skipped')


def test_whatever_is_neither_good_nor_skipped_has_failed(tmp_path):
    for result in ('FAIL', 'TIMEOUT', 'ERROR', 'UNEXPECTEDPASS', 'INTERRUPT'):
        assert add_up(tmp_path, 'OK', result) == (
            1, '2 passed, 2 failed, 0 skipped')


@pytest.mark.parametrize('result, stdout, line', [
    ('OK', '....s\n4 passed, 1 skipped in 1.50s\n',
     '4 passed, 0 failed, 1 skipped'),
    ('OK', 's\n1 skipped in 0.01s\n', '0 passed, 0 failed, 1 skipped'),
    ('FAIL', '=== 1 failed, 2 passed, 3 errors in 63.20s (0:01:03) ===\n',
     '2 passed, 4 failed, 0 skipped'),
    ('FAIL', '3 passed in 1.50s\nthen it crashed\n',
     '3 passed, 1 failed, 0 skipped'),
    ('OK', '[  PASSED  ] 5 test(s).\n[  PASSED  ] 2 test(s).\n',
     '7 passed, 0 failed, 0 skipped'),
    ('OK', 'nothing that counts\n', '1 passed, 0 failed, 0 skipped'),
])
def test_cases_are_counted_where_the_program_counts_them(
        tmp_path, result, stdout, line):
    log = tmp_path / 'testlog.json'
    log.write_text(json.dumps({'name': 'x', 'result': result,
                               'stdout': stdout}) + '\n')

    run = sum_of(log)

    assert run.stdout.splitlines()[-1] == line


def test_a_log_that_ends_in_mid_line_is_a_failure(tmp_path):
    assert add_up(tmp_path, 'OK', tail='{"name": "y"') == (
        1, '2 passed, 2 failed, 0 skipped')


def test_a_log_that_is_not_there_is_a_failure(tmp_path):
    run = sum_of(tmp_path / 'absent.json')

    assert run.returncode == 1
    assert run.stdout.splitlines()[-1] == '0 passed, 1 failed, 0 skipped'


def log_of(tmp_path, tests):
    log = tmp_path / 'testlog.json'
    log.write_text(''.join(json.dumps(test) + '\n' for test in tests))
    return log


def test_the_end_of_what_failed_is_said_near_the_end(tmp_path):
    said = ''.join(f'line {i}\n' for i in range(100))
    log = log_of(tmp_path, [
        {'name': 'good', 'result': 'OK', 'stdout': 'of no interest'},
        {'name': 'bad', 'result': 'FAIL', 'stdout': said, 'stderr': 'why\n'}])

    run = sum_of(log)

    lines = run.stdout.splitlines()
    assert 'line 99' in lines and 'why' in lines
    assert 'line 50' not in lines and 'of no interest' not in lines
    assert lines.index('why') > lines.index(next(
        line for line in lines if line.startswith('The slowest')))
    assert lines[-3:] == ['    line 99', '    why',
                          '1 passed, 1 failed, 0 skipped']


def test_of_many_failures_all_are_named_and_some_are_quoted(tmp_path):
    run = sum_of(log_of(tmp_path, [
        {'name': f'bad {i}', 'result': 'FAIL', 'stdout': f'quoted {i}\n'}
        for i in range(30)]))

    assert sum(line.startswith('FAILED ')
               for line in run.stdout.splitlines()) == 30
    assert run.stdout.count('quoted') == 20  # at length, and its last lines


def test_the_slowest_are_told_longest_first(tmp_path):
    run = sum_of(log_of(tmp_path, [
        {'name': f'test {i}', 'result': 'OK', 'duration': float(i % 25)}
        for i in range(25)]))

    told = [line.split() for line in run.stdout.splitlines()
            if ': test ' in line]
    assert [float(row[0]) for row in told] == [float(i) for i in
                                               range(24, 4, -1)]


def times_of(*logs):
    run = subprocess.run(
        [sys.executable, os.path.join(SOURCE, 'tools/lib/results.py'), 'times',
         *map(str, logs)], text=True, stdout=subprocess.PIPE)
    return run.returncode, run.stdout.splitlines()


def run_log(tmp_path, number, **results):
    log = tmp_path / f'times-{number}.json'
    log.write_text(''.join(
        json.dumps({'name': name, 'result': result,
                    'stdout': f'{name} in run {number}\n'}) + '\n'
        for name, result in results.items()))
    return log


def test_of_many_runs_it_is_said_how_many_failed_and_by_what(tmp_path):
    status, lines = times_of(
        run_log(tmp_path, 1, one='OK', two='FAIL', three='OK'),
        run_log(tmp_path, 2, one='OK', two='OK', three='SKIP'),
        run_log(tmp_path, 3, one='OK', two='TIMEOUT', three='FAIL'))

    assert status == 1
    assert lines[-1] == '3 runs, 2 failed'
    assert [line for line in lines if line.startswith('FAILED')] == [
        'FAILED build: two: 2 of 3 runs', 'FAILED build: three: 1 of 3 runs']
    assert 'two in run 3' in lines and 'two in run 1' not in lines
    assert any('two: failed in 2 of 3 runs (1, 3)' in line for line in lines)


def test_runs_without_a_failure_are_good(tmp_path):
    assert times_of(run_log(tmp_path, 1, one='OK'),
                    run_log(tmp_path, 2, one='SKIP')) == (
        0, ['2 runs, 0 failed'])


def test_a_run_that_left_no_log_has_failed(tmp_path):
    status, lines = times_of(run_log(tmp_path, 1, one='OK'),
                             tmp_path / 'times-2.json')

    assert status == 1
    assert lines[-2:] == ['FAILED the run itself: 1 of 2 runs',
                          '2 runs, 1 failed']


def test_what_breaks_a_fuzzer_is_kept_in_the_build(tmp_path):
    """And nothing is written into the corpus."""
    corpus = tmp_path / 'corpus'
    build = tmp_path / 'build'
    corpus.mkdir()
    build.mkdir()
    fuzzer = build / 'fuzz_x'
    fuzzer.write_text(
        '#!/bin/sh\nfor word; do case $word in\n'
        '-artifact_prefix=*) : >"${word#*=}crash-1" ;;\nesac; done\nexit 77\n')
    fuzzer.chmod(0o755)

    run = subprocess.run(
        [os.path.join(SOURCE, 'tests/fuzz/minute'), corpus, fuzzer, '-runs=1'],
        cwd=corpus)

    # libFuzzer's own 77 would be a test that was skipped.
    assert run.returncode == 1
    assert [path.name for path in build.iterdir() if path != fuzzer] == [
        'fuzz_x-crash-1']
    assert not list(corpus.iterdir())
