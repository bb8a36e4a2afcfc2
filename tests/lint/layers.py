# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who may include whom: the layer table of src/README.md, enforced."""
import os
import re

import tree

WORKER = {'base', 'format', 'record', 'capture', 'cuda', 'preload'}
LAYERS = {
    'include/seep': {'seep'},
    'src/base': set(),
    'src/format': {'base', 'seep'},
    'src/record': {'base', 'format', 'seep'},
    'src/capture': {'base', 'seep/stack.h'},
    'src/cuda': {'base', 'record', 'capture', 'seep'},
    'src/preload': {'base', 'format', 'record', 'capture', 'cuda', 'seep'},
    'src/reader': {'base', 'format', 'seep'},
    'tools': {'base', 'format', 'reader', 'seep'},
}
# Headers of libraries: the only folders that may include them.
LIBRARIES = [
    (r'(elfutils/|dwarf\.h|libelf\.h|gelf\.h|libiberty/|demangle\.h)',
     {'src/reader'}),
    (r'jansson\.h', {'src/reader', 'tools'}),
    (r'libxml/', {'tools'}),
    (r'microhttpd\.h', {'tools'}),
    (r'libunwind', {'src/capture'}),
    (r'cuda', set()),
    # No output, no libm: neither may run inside malloc.
    (r'(stdio|math|syslog)\.h', {'src/reader', 'tools'}),
]
GENERATED = {'seep_version.h'}
INCLUDE = re.compile(r'\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')


def folder_of(path):
    parts = path.split(os.sep)
    return parts[0] if parts[0] == 'tools' else '/'.join(parts[:2])


def fault_of(root, path, own, quoted, angled):
    allowed = LAYERS[own]
    if quoted is None and not angled.startswith('seep/'):
        for pattern, folders in LIBRARIES:
            if re.match(pattern, angled) and own not in folders:
                return f'<{angled}>: {own} may not use this library'
        return None
    name = quoted or angled
    top = name.split('/')[0]
    if name in GENERATED:
        return None
    if '/' not in name:
        beside = os.path.join(root, os.path.dirname(path), name)
        return None if os.path.exists(beside) else (
            f'"{name}": not beside the file that includes it')
    if own == 'src/' + top or os.path.exists(os.path.join(root, own, name)):
        return None
    if top in allowed or name in allowed:
        return None
    return f'"{name}": {own} may include only {sorted(allowed) or "libc"}'


def check(root):
    faults = []
    for path in tree.files(root, '.c', '.h', '.def', '.S',
                           under=('include', 'src', 'tools')):
        own = folder_of(path)
        if own not in LAYERS:
            faults.append(f'{path}: {own} is no folder of the layer table')
            continue
        for number, line in enumerate(tree.lines(root, path), 1):
            match = INCLUDE.match(line)
            fault = match and fault_of(root, path, own, *match.groups())
            if fault:
                faults.append(f'{path}:{number}: layer: {fault}')
    return faults


if __name__ == '__main__':
    tree.main(check)
