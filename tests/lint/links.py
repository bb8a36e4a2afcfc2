# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a page of the project points to is there: links, and paths in `...`.

A path may be a pattern (`diff*`, `{run,probe}/`); one in capitals (cmd_VERB.c)
stands for many. Links to other hosts are not followed.
"""
import glob
import os
import re

import tree

LINK = re.compile(r'\]\(([^)#\s]+)(?:#[^)]*)?\)')
PATH = re.compile(r'`((?:src|tools|tests|include|docs|share|examples)/'
                  r'[\w./*{},-]+)`')
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
    return faults


if __name__ == '__main__':
    tree.main(check)
