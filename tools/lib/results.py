# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads what Meson knows of tests, for tools/test.

    results.py match BUILD testlog|benchmarklog WORD
        the names of the tests that have WORD in their name or suite
    results.py sum LOG...
        how many passed, failed, were skipped

Of a program that counts its own cases (pytest, CMocka) the cases are counted,
so that one skipped by pytest is not told as passed. A log that is not there
or not whole counts as one failure: a run that died must not look like one
that passed.
"""
import json
import re
import subprocess
import sys

PASSED = {'OK', 'EXPECTEDFAIL'}
SKIPPED = {'SKIP'}
PYTEST = re.compile(r'^(?:=+ )?(\d+ \w+(?:, \d+ \w+)*) in [\d.]+s',
                    re.MULTILINE)
CMOCKA = re.compile(r'^\[  (PASSED|FAILED)  \] (\d+) test\(s\)', re.MULTILINE)


def match(build, log, word):
    kind = '--benchmarks' if log == 'benchmarklog' else '--tests'
    tests = json.loads(subprocess.check_output(
        ['meson', 'introspect', kind, build], text=True))
    for test in tests:
        if word in test['name'] or word in ' '.join(test['suite']):
            print(test['name'])


def cases(output):
    """Cases by what became of them, as the program itself tells."""
    summary = PYTEST.findall(output)
    if summary:
        pairs = [part.split() for part in summary[-1].split(', ')]
        return {what.rstrip('s'): int(number) for number, what in pairs}
    told = {}
    for what, number in CMOCKA.findall(output):
        told[what.lower()] = told.get(what.lower(), 0) + int(number)
    return told


def count_test(test):
    """Passed, skipped and failed of one test; Meson's result decides."""
    told = cases(test.get('stdout', '') + test.get('stderr', ''))
    passed, skipped = told.get('passed', 0), told.get('skipped', 0)
    failed = told.get('failed', 0) + told.get('error', 0)
    if test['result'] in PASSED:
        return (passed, skipped, 0) if passed + skipped else (1, 0, 0)
    if test['result'] in SKIPPED:
        return 0, max(skipped, 1), 0
    return passed, skipped, max(failed, 1)


def count(path):
    """Passed, skipped, failed, and the names of tests that failed, of a log.
    """
    sums, names = [0, 0, 0], []
    try:
        with open(path, encoding='utf-8', errors='replace') as log:
            for line in log:
                test = json.loads(line)
                counts = count_test(test)
                sums = [a + b for a, b in zip(sums, counts)]
                if counts[2]:
                    names.append(f"{test['name']}: {test['result']}")
    except (OSError, ValueError, KeyError) as error:
        sums[2] += 1
        names.append(f'{path}: {error}')
    return *sums, names


def add_up(paths):
    counts = [count(path) for path in paths]
    for path, (_, _, _, names) in zip(paths, counts):
        for name in names:
            print(f'FAILED {name} ({path})')
    passed, skipped, failed = (sum(c[i] for c in counts) for i in range(3))
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed else 0


if __name__ == '__main__':
    if sys.argv[1] == 'match':
        match(*sys.argv[2:])
    else:
        sys.exit(add_up(sys.argv[2:]))
