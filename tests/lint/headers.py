# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every header compiles alone, and those of src and tools have two users.

Alone: whoever includes it needs nothing before it; nor, in src and tools, its
own folder among those that are searched, where elf.h would take the place of
the system's. Users: files that include it, its own source and tests among
them; a header of one file belongs into that file. Those of include/ are for
other projects.
"""
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import tree

FLAGS = ['-std=c11', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Werror',
         '-Wno-unused-function', '-fsyntax-only', '-x', 'c']
FOLDERS = ['include', 'src', 'tools/seep']
TEST_FOLDERS = ['tests/unit', 'tests/unit/reader']
USERS_MIN = 2
INCLUDE = re.compile(r'\s*#\s*include\s+["<]([^">]+)[">]')


def compile_alone(root, path):
    own = [] if path.startswith(('src/', 'tools/')) else [
        os.path.dirname(path), *TEST_FOLDERS]
    result = subprocess.run(
        ['cc', *FLAGS,
         *('-I' + os.path.join(root, f) for f in FOLDERS + own), '-include',
         os.path.join(root, path), '/dev/null'],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if result.returncode == 0:
        return []
    why = next((line for line in result.stdout.splitlines()
                if 'error' in line), 'the compiler failed')
    return [f'{path}:1: headers: does not compile alone: {why.strip()}']


def user_faults(root):
    users = {path: set() for path in tree.files(root, '.h',
                                                under=('src', 'tools'))}
    for path in tree.files(root, '.c', '.h', '.S', under=('src', 'tools',
                                                         'tests')):
        for line in tree.lines(root, path):
            match = INCLUDE.match(line)
            for folder in FOLDERS if match else []:
                users.get(os.path.join(folder, match.group(1)),
                          set()).add(path)
    return [f'{path}:1: headers: only {" ".join(found) or "nothing"} '
            'includes it' for path, found in users.items()
            if len(found) < USERS_MIN]


def check(root):
    headers = tree.files(root, '.h', under=('include', 'src', 'tools',
                                            'tests'))
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda path: compile_alone(root, path), headers)
    return user_faults(root) + [fault for faults in found for fault in faults]


if __name__ == '__main__':
    tree.main(check)
