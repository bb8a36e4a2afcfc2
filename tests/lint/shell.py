# SPDX-License-Identifier: LGPL-2.1-or-later
"""shellcheck finds nothing in any shell script."""
import subprocess

import tree


def check(root):
    paths = sorted(set(tree.files(root, '.sh') + tree.scripts(root)))
    if not paths:
        return []
    result = subprocess.run(
        ['shellcheck', '--external-sources', '--format=gcc', *paths],
        cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return [f'{line}' for line in result.stdout.splitlines()]


if __name__ == '__main__':
    tree.main(check)
