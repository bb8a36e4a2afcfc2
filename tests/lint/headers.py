# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every header compiles alone: whoever includes it needs nothing before it."""
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import tree

FLAGS = ['-std=c11', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Werror',
         '-Wno-unused-function', '-fsyntax-only', '-x', 'c']


def compile_alone(root, path):
    folders = [os.path.join(root, f) for f in ('include', 'src', 'tools',
                                           'tools/seep')]
    folders.append(os.path.dirname(os.path.join(root, path)))
    result = subprocess.run(
        ['cc', *FLAGS, *(f'-I{f}' for f in folders), '-include',
         os.path.join(root, path), '/dev/null'],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if result.returncode == 0:
        return []
    why = next((line for line in result.stdout.splitlines()
                if 'error' in line), 'the compiler failed')
    return [f'{path}:1: headers: does not compile alone: {why.strip()}']


def check(root):
    headers = tree.files(root, '.h', under=('include', 'src', 'tools',
                                            'tests'))
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda path: compile_alone(root, path), headers)
    return [fault for faults in found for fault in faults]


if __name__ == '__main__':
    tree.main(check)
