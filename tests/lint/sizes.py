# SPDX-License-Identifier: LGPL-2.1-or-later
"""No C file over 900 lines or under 100, no function over 60, no line over 80
columns.

A function is what lies between a brace that opens in the first column and
the one that closes there: .clang-format puts nothing else in that form. It
keeps the columns of C files, too.
"""
import os

import tree

FILE_MAX = 900
# What a stranger opens for less than this belongs into the file that it serves;
# of the product only: a test has the length of what it tests.
SOURCE_MIN = 100
SHORT = {
    'src/base/state.c': 'the variables of headers that are inlined',
    'src/preload/probes.c': 'functions that no caller may inline',
    'tools/seep/cmd_digest.c': 'a verb is a file: verbs.h',
    'tools/seep/cmd_doctor.c': 'a verb is a file: verbs.h',
    'tools/seep/probe/main.c': 'main() of a program of its own',
}
FUNCTION_MAX = 60
COLUMNS_MAX = 80


def functions(lines):
    """Line number and length of every function body."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == '{':
            start = number
        elif line == '}' and start is not None:
            yield start, number - start - 1
            start = None


def is_short(path, lines):
    return (path.startswith(('src/', 'tools/')) and path.endswith('.c') and
            len(lines) < SOURCE_MIN and path not in SHORT)


def stale(root):
    """What SHORT excuses and need not: it is gone, or has grown."""
    return [path for path in SHORT
            if not os.path.exists(os.path.join(root, path))
            or len(tree.lines(root, path)) >= SOURCE_MIN]


def check(root, whole=False):
    """@whole: the tree has every file, and so all of SHORT."""
    faults = [f'sizes.py: {path} is not short any more: take it out of SHORT'
              for path in stale(root)] if whole else []
    for path in tree.files(root, '.c', '.h',
                           under=('include', 'src', 'tools', 'tests',
                                  'examples')):
        lines = tree.lines(root, path)
        if len(lines) > FILE_MAX:
            faults.append(f'{path}:1: sizes: {len(lines)} lines, the most is '
                          f'{FILE_MAX}')
        if is_short(path, lines):
            faults.append(f'{path}:1: sizes: {len(lines)} lines, the least is '
                          f'{SOURCE_MIN}: join it to the file that it serves')
        for number, length in functions(lines):
            if length > FUNCTION_MAX:
                faults.append(f'{path}:{number}: sizes: a function of {length} '
                              f'lines, the most is {FUNCTION_MAX}')
    for path in tree.files(root, '.py', 'meson.build'):
        for number, line in enumerate(tree.lines(root, path), 1):
            if len(line) > COLUMNS_MAX:
                faults.append(f'{path}:{number}: sizes: {len(line)} columns, '
                              f'the most is {COLUMNS_MAX}')
    return faults


if __name__ == '__main__':
    tree.main(lambda root: check(root, whole=True))
