# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each sentence of a verdict has a test that it is absent where it is false.

A sentence is a text of two words or more in the sources below; what of it is
between its figures must be in a holds() and in a fails() of the tests of
claims, which see to it that it is there where it is true, and not where it is
not (tests/unit/claims.h).
"""
import glob
import os
import re

import tree

SOURCES = ('tools/seep/words/verdict*.c', 'tools/seep/words/reasons*.c',
           'tools/seep/words/advice*.c', 'tools/seep/words/family*.c')
TESTS = 'tests/unit/**/test_claims*.c'
# Comments, and directives but for macros, are nothing; then texts and the rest.
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|#\s*include[^\n]*|\s+'
                   r'|"(?P<text>(?:[^"\\]|\\.)*)"'
                   r"|'(?:[^'\\]|\\.)+'|(?P<word>\w+)|(?P<other>.)", re.S)
FIGURE = re.compile(r'%[-+ #0]*[0-9*]*(?:\.[0-9*]+)?(?:hh|h|ll|l|z|j|t)?'
                    r'[a-zA-Z%]')
SENTENCE = re.compile(r'[A-Za-z]{2,}[ ,]+[A-Za-z]{2,}')
CLAIM = ('holds', 'fails')


def texts(source):
    """(line, name before the parenthesis before it, text joined)."""
    found, parts, start, words = [], [], 0, ['', '']
    for token in TOKEN.finditer(source):
        if token['text'] is not None:
            start = start if parts else token.start()
            parts.append(token['text'])
            continue
        if token['word'] is None and token['other'] is None:
            continue
        if parts:
            line = source.count('\n', 0, start) + 1
            found.append((line, words[-2], ''.join(parts)))
            parts = []
        words = [words[-1], token.group()]
    return found


def longest(text):
    """Its part of the most words between figures: what tells it from
    others."""
    return max((part.strip(' ,;:.(') for part in FIGURE.split(text)),
               key=lambda part: (len(part.split()), len(part)))


def claims(root):
    """{"holds": [texts], "fails": [texts]}"""
    found = {name: [] for name in CLAIM}
    for path in sorted(glob.glob(os.path.join(root, TESTS),
                                 recursive=True)):
        for _, name, text in texts('\n'.join(tree.lines(root, path))):
            if name in found:
                found[name].append(text)
    return found


def check(root):
    faults = []
    claimed = claims(root)
    for pattern in SOURCES:
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            where = os.path.relpath(path, root)
            for line, _, text in texts('\n'.join(tree.lines(root, path))):
                part = longest(text)
                missing = [name for name in CLAIM if not any(
                    part in claim for claim in claimed[name])]
                if SENTENCE.search(text) and missing:
                    faults.append(f'{where}:{line}: sentences: no '
                                  f'{" and no ".join(missing)} of "{part}"')
    return faults


if __name__ == '__main__':
    tree.main(check)
