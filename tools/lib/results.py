# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads what Meson knows of tests, for tools/test.

    results.py match BUILD testlog|benchmarklog WORD [SUITE]
        the names of the tests that have WORD in their name or suite
    results.py quick BUILD
        the names of the unit tests and lints that take no time
    results.py threaded BUILD
        the names of the unit tests that start threads
    results.py targets BUILD <NAMES
        what ninja has to make for the tests of these names
    results.py sum LOG...
        what failed, which tests took longest; how many passed, failed, were
        skipped
    results.py times LOG...
        of logs of the same tests: which failed, in how many of these runs

Of a program that counts its own cases (pytest, CMocka) the cases are counted,
so that one skipped by pytest is not told as passed. A log that is not there
or not whole counts as one failure: a run that died must not look like one
that passed.
"""
import json
import os
import re
import subprocess
import sys

PASSED = {'OK', 'EXPECTEDFAIL'}
SKIPPED = {'SKIP'}
# Of a long output the end is what is kept, and of that often little: what took
# long comes first, what failed next, and its last lines once more at the end.
TAIL_TESTS, TAIL_LINES, LAST_LINES, SLOWEST = 10, 40, 4, 20
PYTEST = re.compile(r'^(?:=+ )?(\d+ \w+(?:, \d+ \w+)*) in [\d.]+s',
                    re.MULTILINE)
FOLDER = re.compile(r'([^/]+)/meson-logs/')
CMOCKA = re.compile(r'^\[  (PASSED|FAILED)  \] (\d+) test\(s\)', re.MULTILINE)


def introspect(kind, build):
    return json.loads(subprocess.check_output(
        ['meson', 'introspect', '--' + kind, build], text=True))


def kind_of(log):
    return 'benchmarks' if log == 'benchmarklog' else 'tests'


def suites(test):
    """Of a test without one Meson tells the project alone."""
    return {suite.split(':')[-1] for suite in test['suite']}


def match(build, log, word, suite=None):
    return [test['name'] for test in introspect(kind_of(log), build)
            if (word in test['name'] or word in ' '.join(test['suite']))
            and (suite is None or suite in suites(test))]


def quick(build):
    return [test['name'] for test in introspect('tests', build)
            if suites(test) & {'unit', 'lint'} and 'slow' not in suites(test)]


def threaded(build):
    """By what the program asks of libc: so no list can be out of date."""
    own = os.path.abspath(build) + os.sep
    return [test['name'] for test in introspect('tests', build)
            if 'unit' in suites(test) and test['cmd'][0].startswith(own) and
            b'pthread_create' in
            subprocess.run(['nm', '-D', '-u', test['cmd'][0]], check=False,
                           stdout=subprocess.PIPE).stdout]


def targets(build, names):
    """Files, as ninja calls them, that the tests of these names depend on."""
    wanted = {target for kind in ('tests', 'benchmarks')
              for test in introspect(kind, build) if test['name'] in names
              for target in test['depends']}
    return sorted({os.path.relpath(path, os.path.abspath(build))
                   for target in introspect('targets', build)
                   if target['id'] in wanted for path in target['filename']})


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


def ending(test, count):
    """The last lines of what a failed test said, for people."""
    lines = (test.get('stdout', '') + test.get('stderr', '')).splitlines()
    return lines[-count:]


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


def read(path):
    """The tests of a log, each with where it ran; a log that is not there or
    not whole ends with one that says so and has failed."""
    found = FOLDER.search(path)
    folder = found.group(1) if found else 'build'
    tests = []
    try:
        with open(path, encoding='utf-8', errors='replace') as log:
            for line in log:
                test = json.loads(line)
                tests.append(test | {'where': f'{folder}: {test["name"]}',
                                     'counts': count_test(test)})
    except (OSError, ValueError, KeyError) as error:
        tests.append({'where': path, 'result': str(error),
                      'counts': (0, 0, 1)})
    return tests


def add_up(paths):
    tests = [test for path in paths for test in read(path)]
    failures = [test for test in tests if test['counts'][2]]
    print(f'The slowest of {len(tests)} tests, in seconds:')
    for test in sorted(tests, key=lambda test: -test.get('duration', 0)
                       )[:SLOWEST]:
        print(f'{test.get("duration", 0):8.1f}  {test["where"]}')
    for test in failures[:TAIL_TESTS]:
        print(f'---- {test["where"]}', *ending(test, TAIL_LINES), sep='\n')
    for test in failures:
        print(f'FAILED {test["where"]}: {test["result"]}')
        if test in failures[:TAIL_TESTS]:
            for line in ending(test, LAST_LINES):
                print(f'    {line}')
    passed, skipped, failed = (sum(test['counts'][i] for test in tests)
                               for i in range(3))
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed else 0


def of_runs(paths):
    """What failed in some of the runs, the most often first, as it ended."""
    failures = {}
    bad_runs = 0
    for run, path in enumerate(paths, 1):
        failed = [test for test in read(path) if test['counts'][2]]
        bad_runs += bool(failed)
        for test in failed:
            where = test['where'] if 'name' in test else 'the run itself'
            failures.setdefault(where, []).append((run, test))
    for where, found in sorted(failures.items(),
                               key=lambda item: (-len(item[1]), item[0])):
        runs = ', '.join(str(run) for run, _ in found)
        print(f'---- {where}: failed in {len(found)} of {len(paths)} runs '
              f'({runs}), the last time so:',
              *ending(found[-1][1], TAIL_LINES), sep='\n')
    for where, found in failures.items():
        print(f'FAILED {where}: {len(found)} of {len(paths)} runs')
    print(f'{len(paths)} runs, {bad_runs} failed')
    return 1 if bad_runs else 0


def main(verb, *arguments):
    if verb == 'sum':
        return add_up(arguments)
    if verb == 'times':
        return of_runs(arguments)
    if verb == 'targets':
        lines = targets(*arguments, set(sys.stdin.read().splitlines()))
    else:
        lines = {'match': match, 'quick': quick,
                 'threaded': threaded}[verb](*arguments)
    print(*lines, sep='\n', end='\n' if lines else '')
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
