# SPDX-License-Identifier: LGPL-2.1-or-later
"""A walk is done as written, and one that is wrong is found."""
import os

import pytest

import walk

# The tree of these tests builds nothing: its test compares two files.
CHECK = "cmp -s tests/wanted src/x.c || { echo 'Fail:      1'; exit 1; }"
CODE = 'int one(void)\n{\n    return 1;\n}\n\nint three(void);\n'
TWO = '/* Two. */\nint two(void)\n{\n    return 2;\n}\n'
DONE = CODE.replace('}\n', '}\n\n' + TWO, 1)


def step(where, text):
    return f'{where}:\n\n```c\n{text}```\n\n'


def make(folder, *steps, command=CHECK):
    """A source with one walk, and the folder to do it in."""
    source = folder / 'source'
    for name in walk.COPIED:
        (source / name).mkdir(parents=True)
    (source / 'src' / 'x.c').write_text(CODE)
    (source / 'CONTRIBUTING.md').write_text(
        '# Contributing\n\n### A change\n\n' + ''.join(steps) +
        f'```sh\n{command}\n```\n\n### Another\n')
    built = folder / 'walks' / 'tree' / 'build'
    built.mkdir(parents=True)
    (built / 'build.ninja').write_text('')
    return str(source), str(folder / 'walks'), 'A change'


WANTED = step('A new file `tests/wanted`', DONE)
ADDED = step('In `src/x.c`, after the function `one`', TWO)


def test_a_walk_is_done_as_written_and_again(tmp_path):
    place = make(tmp_path, WANTED, ADDED)

    walk.main(*place)
    walk.main(*place)

    with open(os.path.join(place[1], 'tree/src/x.c'), encoding='utf-8') as f:
        assert f.read() == DONE


@pytest.mark.parametrize('steps, command, fault', [
    ([WANTED, step('In `src/x.c`, after the function `four`', TWO)], CHECK,
     '0 places with "four"'),
    ([WANTED, step('In `src/x.c`, after the function `three`', TWO)], CHECK,
     '0 places with "three"'),
    ([WANTED, step('In `src/x.c`, after the line with `int`', TWO)], CHECK,
     '2 places with "int"'),
    ([WANTED, step('In `src/y.c`, after the line with `int`', TWO)], CHECK,
     'names src/y.c, which is not there'),
    ([WANTED, step('In `src/x.c`, before the function `one`', TWO)], CHECK,
     'failed: cmp'),
    ([WANTED, ADDED], 'true', 'no test fails without the change'),
    ([WANTED, ADDED], 'false', 'no test fails without the change'),
    ([ADDED], CHECK, 'has 1 steps'),
])
def test_a_walk_that_is_wrong_is_found(tmp_path, steps, command, fault):
    place = make(tmp_path, *steps, command=command)

    with pytest.raises(SystemExit) as end:
        walk.main(*place)

    assert fault in str(end.value)
