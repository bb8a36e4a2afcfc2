# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who may include whom: the rooms of src/README.md, enforced.

A room is a folder. A header is named by its path from include, src or
tools/seep, which leads to its room; that of the includer must have it in
ROOMS, whose lines have no cycle. LEFT are the steps against it that are still
there: one that nothing takes any more is a fault, so that they only get fewer.
"""
import re

import tree

BASE = {'src/base', 'include/seep'}
DATA = BASE | {'src/format'}
READER = 'src/reader/'
TOOL = 'tools/seep/'


def rooms(top, names):
    return {top + name for name in names.split()}


ALL_READER = rooms(READER, 'statistics recording symbols process judge '
                   'compare report')
ROOMS = {
    'include/seep': set(),
    'src/base': set(),
    'src/format': BASE,
    'src/record': DATA,
    'src/capture/native': {'src/base', 'include/seep/stack.h'},
    'src/capture/python': {'src/base', 'include/seep/stack.h',
                           'src/capture/native'},
    'src/cuda': BASE | {'src/record', 'src/capture/native'},
    'src/preload': DATA | {'src/record', 'src/capture/native',
                           'src/capture/python', 'src/cuda'},
    'src/preload/python': DATA | {'src/record', 'src/capture/native',
                                  'src/capture/python', 'src/preload'},
    READER + 'statistics': DATA,
    READER + 'recording': DATA | rooms(READER, 'statistics'),
    READER + 'symbols': DATA | rooms(READER, 'statistics recording'),
    READER + 'process': DATA | rooms(READER, 'statistics recording'),
    READER + 'judge': DATA | rooms(READER, 'statistics recording symbols '
                                   'process'),
    READER + 'compare': DATA | rooms(READER, 'statistics recording symbols '
                                     'process judge'),
    READER + 'report': DATA | ALL_READER,
    'src/held': DATA | ALL_READER,
    TOOL + 'words': DATA | ALL_READER | {'src/held'},
    TOOL + 'options': DATA | rooms(TOOL, 'words'),
    TOOL + 'text': DATA | ALL_READER | rooms(TOOL, 'options words'),
    TOOL + 'json': DATA | ALL_READER | {'src/held'} | rooms(TOOL, 'words'),
    TOOL + 'ci': DATA | ALL_READER | rooms(TOOL, 'words json'),
    TOOL + 'export': DATA | ALL_READER | rooms(TOOL, 'words json'),
    TOOL + 'html': DATA | ALL_READER | rooms(TOOL, 'words options json'),
    TOOL + 'run': DATA | ALL_READER | rooms(TOOL, 'options words text'),
    TOOL + 'read': DATA | ALL_READER | {'src/held'}
    | rooms(TOOL, 'options words text run'),
    TOOL + 'doctor': DATA | ALL_READER | rooms(TOOL, 'options words text json '
                                               'run'),
    # One static file with libc alone.
    TOOL + 'probe': DATA | rooms(READER, 'process recording')
    | rooms(TOOL, 'options words'),
    TOOL + 'pack': DATA | ALL_READER | {'src/held'}
    | rooms(TOOL, 'options words'),
    TOOL + 'metrics': DATA | ALL_READER | rooms(TOOL, 'options words text run '
                                                'read'),
    TOOL + 'top': DATA | ALL_READER | rooms(TOOL, 'options words text run '
                                            'read'),
    'tools/seep': DATA | ALL_READER | {'src/held'}
    | rooms(TOOL, 'options words text json ci export html run read doctor '
            'probe metrics pack top'),
}
# What a whole part speaks in: who is under the first may include the second.
VOCABULARY = [
    ('src/reader', 'src/reader/report/report.h'),
    ('tools/seep', 'src/reader/report/report.h'),
    ('tools/seep', 'tools/seep/text/page.h'),
    ('tools/seep', 'tools/seep/words/units.h'),
    ('tools/seep', 'tools/seep/verbs.h'),
]
LEFT = []
# Headers of libraries: the only folders under which they may be included.
LIBRARIES = [
    (r'(elfutils/|libiberty/|demangle\.h)', {READER + 'symbols'}),
    # The numbers of DWARF, and no function.
    (r'dwarf\.h', {READER + 'symbols', 'src/capture/native'}),
    # Who holds a block asks behind the wall (docs/decisions/0039); seep run
    # looks into the program that it is about to run.
    (r'(libelf\.h|gelf\.h)', {READER + 'symbols', TOOL + 'run'}),
    # Baselines and what was seen from outside are JSON.
    (r'jansson\.h', {READER + 'compare', READER + 'process', 'src/held',
                     TOOL + 'json',
                     TOOL + 'ci', TOOL + 'export', TOOL + 'text',
                     TOOL + 'pack'}),
    # What packs are made of.
    (r'zstd\.h', {READER + 'recording', TOOL + 'pack'}),
    (r'libxml/', {TOOL + 'ci'}),
    (r'protobuf-c/', {TOOL + 'export'}),
    (r'microhttpd\.h', {TOOL + 'metrics'}),
    (r'(n?curses|term)\.h', {TOOL + 'top'}),
    (r'libunwind', {'src/capture/native'}),
    (r'cuda', set()),
    # No output, no libm: neither may run inside malloc.
    (r'(stdio|math|syslog)\.h', {'src/reader', 'src/held', 'tools'}),
]
GENERATED = {'seep_version.h', 'profile.pb-c.h'}
INCLUDE = re.compile(r'\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')


def is_under(folder, top):
    return folder == top or folder.startswith(top + '/')


def path_of(name):
    """The path of a header from the root, by what its name begins with."""
    if name.startswith('seep/'):
        return 'include/' + name
    if any(room.startswith('src/' + name.split('/')[0] + '/')
           or room == 'src/' + name.split('/')[0] for room in ROOMS):
        return 'src/' + name
    return TOOL + name


def fault_of(own, quoted, angled, taken):
    if quoted is None and not angled.startswith('seep/'):
        for pattern, folders in LIBRARIES:
            if re.match(pattern, angled) and not any(
                    is_under(own, folder) for folder in folders):
                return f'<{angled}>: {own} may not use this library'
        return None
    if quoted in GENERATED:
        return None
    path = path_of(quoted or angled)
    room = path.rsplit('/', 1)[0]
    if own == room or room in ROOMS[own] or path in ROOMS[own]:
        return None
    if any(is_under(own, part) and path == header
           for part, header in VOCABULARY):
        return None
    if (own, room) in LEFT:
        taken.add((own, room))
        return None
    return f'"{quoted or angled}": {own} may not include {room}'


def cycle_faults():
    """A room may include only those that do not, however far, include it."""
    order, left = [], dict(ROOMS)
    while left:
        ready = [room for room, others in left.items()
                 if all(other not in left for other in others - {room})]
        if not ready:
            return [f'layers.py: {" ".join(sorted(left))}: a cycle']
        order += ready
        left = {room: left[room] for room in left if room not in ready}
    return []


def check(root, whole=False):
    """@whole: the tree has every room, and so all that is LEFT."""
    faults, taken = cycle_faults(), set()
    for path in tree.files(root, '.c', '.h', '.def', '.S',
                           under=('include', 'src', 'tools')):
        own = path.rsplit('/', 1)[0]
        if own not in ROOMS:
            faults.append(f'{path}: {own} is no folder of the layer table')
            continue
        for number, line in enumerate(tree.lines(root, path), 1):
            match = INCLUDE.match(line)
            fault = match and fault_of(own, *match.groups(), taken)
            if fault:
                faults.append(f'{path}:{number}: layer: {fault}')
    if whole:
        faults += [f'layers.py: nothing in {own} includes {room} any more: '
                   'take it out of LEFT'
                   for own, room in LEFT if (own, room) not in taken]
    return faults


if __name__ == '__main__':
    tree.main(lambda root: check(root, whole=True))
