# SPDX-License-Identifier: LGPL-2.1-or-later
"""Nothing that is true on one machine only, and no loose ends.

Figures and captured output come from somebody's machine: paths of it must
not stay in a file that others read.
"""
import re

import tree

WORDS = [
    (r'/(?:work|root)/', 'a path of one machine'),
    (r'\b[\w.-]*(?:artifactory|pypi|npmjs|nodesource|snapshot\.debian)\.'
     r'(?:org|com|net|io)\b', 'a registry host'),
    (r'\b(?:TO' r'DO|FIX' r'ME|X' r'XX)\b', 'a loose end'),
    (r'@(?:author|date)\b', 'an author or a date'),
]


def check(root):
    faults = []
    for path in tree.files(root, ''):
        try:
            lines = tree.lines(root, path)
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, 1):
            for pattern, what in WORDS:
                match = re.search(pattern, line)
                if match:
                    faults.append(f'{path}:{number}: words: {what}: '
                                  f'{match.group()}')
    return faults


if __name__ == '__main__':
    tree.main(check)
