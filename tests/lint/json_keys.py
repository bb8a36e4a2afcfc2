# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each key that the JSON writer has stands in docs/json.md.

A key is a text given to one of the put functions or to json_pack, or a field
that SEEP_JSON_COPY takes as one; on the page it stands between backquotes.
"""
import glob
import os
import re

import tree

WRITER = 'tools/seep/json/*.c'
PAGE = 'docs/json.md'
PUT = re.compile(r'(?:seep_json_put\w*|print_member)\(\s*[^()"]*"(\w+)"')
COPY = re.compile(r'SEEP_JSON_COPY\(\s*[^,]+,[^,]+,([\w\s,]+)\)')
PACK = re.compile(r'json_pack\(\s*"[^"]*"(.*?)\);', re.S)
RAW = re.compile(r'\\"(\w+)\\":')


def keys(source):
    """Of one file."""
    source = re.sub(r'/\*.*?\*/', '', source, flags=re.S)
    source = source.replace('print_member(out, "",', 'print_member(out,')
    source = re.sub(r'(print_member\(&?out, )",?", ', r'\1', source)
    found = set(PUT.findall(source)) | set(RAW.findall(source))
    for fields in COPY.findall(source):
        found |= set(re.findall(r'\w+', fields))
    for arguments in PACK.findall(source):
        found |= set(re.findall(r'"(\w+)"', arguments))
    return found


def check(root):
    faults = []
    page = '\n'.join(tree.lines(root, os.path.join(root, PAGE)))
    known = set(re.findall(r'\w+', ' '.join(re.findall(r'`([^`]+)`', page))))
    for path in sorted(glob.glob(os.path.join(root, WRITER))):
        where = os.path.relpath(path, root)
        text = '\n'.join(tree.lines(root, path))
        for key in sorted(keys(text) - known):
            faults.append(f'{where}: json: `{key}` is not in {PAGE}')
    return faults


if __name__ == '__main__':
    tree.main(check)
