# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every C file is as clang-format with our .clang-format writes it."""
import re
import subprocess

import tree


def check(root):
    paths = tree.files(root, '.c', '.h', under=('include', 'src', 'tools',
                                                'tests', 'examples'))
    if not paths:
        return []
    result = subprocess.run(
        ['clang-format', '--style=file', '--dry-run', '-Werror', *paths],
        cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    first = {}
    for path, line in re.findall(r'^(.+?):(\d+):\d+: error:', result.stdout,
                                 re.MULTILINE):
        first.setdefault(path, line)
    if result.returncode and not first:
        first['.clang-format'] = 1
    return [f'{path}:{line}: format: run clang-format -i {path}'
            for path, line in sorted(first.items())]


if __name__ == '__main__':
    tree.main(check)
