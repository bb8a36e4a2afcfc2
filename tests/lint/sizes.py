# SPDX-License-Identifier: LGPL-2.1-or-later
"""No C file over 900 lines, no function over 60, no line over 80 columns.

A function is what lies between a brace that opens in the first column and
the one that closes there: .clang-format puts nothing else in that form. It
keeps the columns of C files, too.
"""
import tree

FILE_MAX = 900
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


def check(root):
    faults = []
    for path in tree.files(root, '.c', '.h',
                           under=('include', 'src', 'tools', 'tests',
                                  'examples')):
        lines = tree.lines(root, path)
        if len(lines) > FILE_MAX:
            faults.append(f'{path}:1: sizes: {len(lines)} lines, the most is '
                          f'{FILE_MAX}')
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
    tree.main(check)
