# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a page of the project points to is there: links, and paths in `...`.

A path may be a pattern (`diff*`, `{run,probe}/`); one in capitals (cmd_VERB.c)
stands for many. A test is a path and its name (`tests/a.py::test_b`). Links to
other hosts are not followed.
"""
import glob
import os
import re

import tree

LINK = re.compile(r'\]\(([^)#\s]+)(?:#[^)]*)?\)')
PATH = re.compile(r'`((?:src|tools|tests|include|docs|share|examples)/'
                  r'[\w./*{},-]+)`')
TEST = re.compile(r'`(tests/[\w/]+\.\w+)::(\w+)`')
NEW = re.compile(r'^A new file `([^`]+)`:$')


def patterns(path):
    """a{b,c} as ab and ac."""
    match = re.search(r'\{([^}]*)\}', path)
    if not match:
        return [path]
    return [name for part in match[1].split(',')
            for name in patterns(path.replace(match[0], part, 1))]


def is_there(root, path):
    if re.search(r'[A-Z]{3,}', os.path.basename(path).replace('README', '')):
        return True
    return all(glob.glob(os.path.join(root, name)) for name in patterns(path))


def has_test(root, path, name):
    path = os.path.join(root, path)
    if not os.path.isfile(path):
        return False
    with open(path, encoding='utf-8') as file:
        return re.search(rf'^(?:def|static void) {name}\(', file.read(), re.M)


def check(root):
    faults = []
    for path in tree.files(root, '.md'):
        lines = tree.lines(root, path)
        made = {m[1] for m in map(NEW.match, lines) if m}
        for number, line in enumerate(lines, 1):
            wanted = [os.path.normpath(os.path.join(os.path.dirname(path), to))
                      for to in LINK.findall(line)
                      if not re.match(r'\w+:', to)]
            wanted += [to.rstrip('/') for to in PATH.findall(line)
                       if to not in made]
            faults += [f'{path}:{number}: links: {to} is not there'
                       for to in wanted if not is_there(root, to)]
            faults += [f'{path}:{number}: links: {file} has no {name}'
                       for file, name in TEST.findall(line)
                       if not has_test(root, file, name)]
    return faults


if __name__ == '__main__':
    tree.main(check)
