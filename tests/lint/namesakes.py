# SPDX-License-Identifier: LGPL-2.1-or-later
"""One name is one thing: over all headers, and over all our libraries.

    namesakes.py SOURCE_ROOT [LIBRARY...]

All headers of src compile in one translation unit, and so do those of the
tool. No two objects of the libraries define a symbol of one name: who links
two of them, as a test does, would get either. Of a module, LIB.so, the objects
are those beside it, in LIB.so.p: it holds copies of what it is linked from.
"""
import glob
import os
import subprocess

import tree

FLAGS = ['-std=c11', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Werror',
         '-Wno-unused-function', '-fsyntax-only', '-x', 'c', '-']
FOLDERS = ['include', 'src', 'tools/seep']
TOGETHER = [['include', 'src'], ['tools/seep']]


def header_faults(root, folders):
    headers = [path for folder in folders
               for path in tree.files(root, '.h', under=(folder,))]
    unit = ''.join(f'#include "{os.path.join(root, path)}"\n'
                   for path in headers)
    result = subprocess.run(
        ['cc', *FLAGS, *('-I' + os.path.join(root, f) for f in FOLDERS)],
        input=unit, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    if result.returncode == 0:
        return []
    why = [line.removeprefix(root).lstrip('/')
           for line in result.stdout.splitlines()
           if 'error:' in line and line.startswith(root)]
    return [f'{line.strip()} (namesakes: with all headers of '
            f'{" and ".join(folders)})' for line in why or ['<stdin>: error']]


def objects(library):
    if library.endswith('.so'):
        return glob.glob(os.path.join(glob.escape(library) + '.p', '*.o'))
    return [library]


def symbol_faults(libraries):
    files = [file for library in libraries for file in objects(library)]
    if not files:
        return []
    listed = subprocess.run(
        ['nm', '--print-file-name', '--defined-only', '--extern-only', *files],
        check=True, text=True, stdout=subprocess.PIPE).stdout
    homes = {}
    for line in filter(None, listed.splitlines()):
        where, name = line.split()[0], line.split()[-1]
        homes.setdefault(name, []).append(
            os.path.basename(where.rsplit(':', 1)[0]))
    return [f'{" and ".join(where)}: namesakes: define {name}'
            for name, where in sorted(homes.items()) if len(where) > 1]


def check(root, *libraries):
    return [fault for folders in TOGETHER
            for fault in header_faults(root, folders)] + symbol_faults(
                libraries)


if __name__ == '__main__':
    tree.main(check)
