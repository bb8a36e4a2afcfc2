# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads what Meson knows of tests, for tools/test.

    results.py match BUILD testlog|benchmarklog WORD
        the names of the tests that have WORD in their name or suite
    results.py sum LOG...
        how many passed, failed, were skipped

A log that is not there or not whole counts as one failure: a run that died
must not look like one that passed.
"""
import json
import subprocess
import sys

PASSED = {'OK', 'EXPECTEDFAIL'}
SKIPPED = {'SKIP'}


def match(build, log, word):
    kind = '--benchmarks' if log == 'benchmarklog' else '--tests'
    tests = json.loads(subprocess.check_output(
        ['meson', 'introspect', kind, build], text=True))
    for test in tests:
        if word in test['name'] or word in ' '.join(test['suite']):
            print(test['name'])


def count(path):
    """Passed, skipped, and the names of those that failed, of one log."""
    passed, skipped, failed = 0, 0, []
    try:
        with open(path, encoding='utf-8', errors='replace') as log:
            for line in log:
                test = json.loads(line)
                if test['result'] in PASSED:
                    passed += 1
                elif test['result'] in SKIPPED:
                    skipped += 1
                else:
                    failed.append(f"{test['name']}: {test['result']}")
    except (OSError, ValueError, KeyError) as error:
        failed.append(f'{path}: {error}')
    return passed, skipped, failed


def add_up(paths):
    counts = [count(path) for path in paths]
    failed = [(path, name) for path, (_, _, names) in zip(paths, counts)
              for name in names]
    for path, name in failed:
        print(f'FAILED {name} ({path})')
    print(f'{sum(c[0] for c in counts)} passed, {len(failed)} failed, '
          f'{sum(c[1] for c in counts)} skipped')
    return 1 if failed else 0


if __name__ == '__main__':
    if sys.argv[1] == 'match':
        match(*sys.argv[2:])
    else:
        sys.exit(add_up(sys.argv[2:]))
