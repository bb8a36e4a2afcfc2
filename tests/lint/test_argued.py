# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which comments explain a branch that no test takes."""
import importlib.util
import pathlib

import pytest

SOURCE = pathlib.Path(__file__).parent.parent / 'coverage' / 'argued.py'
SPEC = importlib.util.spec_from_file_location('argued', SOURCE)
argued = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(argued)

TEXT = '''\
/* Not tested: a machine that has no clock. */
static int whole(int a)
{
    return a > 0 ? a : 0;
}

/* What it is for. */
static int part(int a)
{
    int b = 0;

    /* Not tested: another thread in these
     * two lines. */
    if (a > 0 &&
        a < 7) {
        b = a;
    }
    if (b > 3) {
        b++;
    }
    while (a > 9) { /* Not tested: never. */
        a--;
    }
    return b;
}
'''.splitlines()


@pytest.mark.parametrize('line, function, expected', [
    (4, 2, True),     # the comment of the function
    (14, 8, True),    # above the statement
    (15, 8, True),    # the same of its second line
    (18, 8, False),   # a comment of another statement
    (21, 8, True),    # on the line
    (24, 8, False),
])
def test_a_comment_explains_what_it_stands_at(line, function, expected):
    assert argued.is_argued(TEXT, line, function) is expected


def test_what_is_taken_needs_no_reason():
    file = {'functions': [{'lineno': 8}], 'lines': [
        {'line_number': 18, 'branches': [{'count': 3}, {'count': 0}]},
        {'line_number': 21, 'branches': [{'count': 0}, {'count': 0}]},
        {'line_number': 24, 'branches': [{'count': 1}, {'count': 1}]},
    ]}

    assert argued.missing_in(file, TEXT) == (3, [(18, 1)])
