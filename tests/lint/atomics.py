# SPDX-License-Identifier: LGPL-2.1-or-later
"""Atomic calls name their order, and every order names its partner.

An exception says why in a comment with "atomic exception:" close above.
"""
import re

import tree

NEAR = 6
# These have no form with an order, or take one always.
FREE = r'(?!init\b|is_lock_free\b|thread_fence\b|signal_fence\b)'
IMPLICIT = re.compile(r'\batomic_' + FREE + r'(\w+?)(?<!_explicit)\s*\(')
BUILTIN = re.compile(r'\b__(?:sync|atomic)_\w+\s*\(')
ORDERED = re.compile(r'\bmemory_order_(acquire|release|acq_rel)\b|'
                     r'\b__ATOMIC_(ACQUIRE|RELEASE|ACQ_REL)\b')
PARTNER = re.compile(r'pairs with', re.IGNORECASE)
EXCEPTION = re.compile(r'atomic exception:', re.IGNORECASE)


def near(lines, index):
    """The text above a line and on it, comments joined over line ends."""
    text = lines[max(0, index - NEAR):index + 1]
    return ' '.join(re.sub(r'^[\s/*]+', '', line) for line in text)


def code_of(line):
    return re.sub(r'/\*.*?(\*/|$)|^\s*\*.*|//.*|"(\\.|[^"\\])*"', '', line)


def check(root):
    faults = []
    for path in tree.files(root, '.c', '.h', under=('include', 'src')):
        lines = tree.lines(root, path)
        for index, line in enumerate(lines):
            code = code_of(line)
            at = f'{path}:{index + 1}: atomics:'
            if ((IMPLICIT.search(code) or BUILTIN.search(code))
                    and not EXCEPTION.search(near(lines, index))):
                faults.append(f'{at} a call without an explicit order')
            if ORDERED.search(code) and not PARTNER.search(near(lines, index)):
                faults.append(f'{at} no comment says what this pairs with')
    return faults


if __name__ == '__main__':
    tree.main(check)
