# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the lints share: the files of a source tree, and how faults are told.

A lint is a function from the root of a tree to a list of faults, so that
test_lints.py can run it on a tree with a planted fault.
"""
import os
import sys

# Of a checkout that shares its history with another one .git is a file; beside
# the folder of a build lies its log while it is built.
SKIPPED = {'.git', '__pycache__', '.pytest_cache', 'subprojects'}


def is_of_tree(root, folder, name):
    return name not in SKIPPED and not (
        name.startswith('build') and
        (os.path.isdir(os.path.join(folder, name)) or
         os.path.samefile(folder, root)))


def files(root, *endings, under=('',)):
    """Paths relative to root, sorted, of files with one of the endings."""
    found = set()
    for top in under:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = [f for f in folders if is_of_tree(root, folder, f)]
            for name in names:
                path = os.path.join(folder, name)
                if (name.endswith(endings) and is_of_tree(root, folder, name)
                        and not os.path.islink(path)):
                    found.add(os.path.relpath(path, root))
    return sorted(found)


def scripts(root):
    """Paths of the shell scripts, told by their first line."""
    found = []
    for path in files(root, ''):
        if not path.endswith(('.c', '.h', '.py', '.md')):
            with open(os.path.join(root, path), 'rb') as file:
                first = file.readline()
            if first.startswith(b'#!') and b'sh' in first:
                found.append(path)
    return found


def lines(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read().splitlines()


def main(check):
    """Run check on the tree in argv[1]; exit 1 if it finds a fault."""
    faults = check(*sys.argv[1:])
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)
