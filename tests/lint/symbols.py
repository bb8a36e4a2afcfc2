# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the built preload exports, needs and refers to.

    symbols.py SOURCE_ROOT LIBSEEP.SO [STATIC_LIB...]

It is loaded into programs of every kind: a name too many replaces theirs, a
library too many replaces theirs too, a lazily bound call or a dynamic TLS
block would allocate inside malloc.
"""
import os
import re
import subprocess

import tree

TLS_BYTES_MAX = 64
# Mapped before it can be asked what the process may have (decision 0060).
MAPPED_BYTES_MAX = 3 << 19
GLIBC_MAX = (2, 34)
NEEDED = re.compile(r'^(libc\.so\.6|ld-linux[\w.-]*\.so\.\d)$')
HOOK = re.compile(r'^\s*[A-Z][A-Z0-9_]*\(\s*([A-Za-z_]\w*)\s*[,)]')
# Nothing that allocates, locks, prints or ends the process.
FORBIDDEN = re.compile(
    r'^(malloc|calloc|realloc|reallocarray|free|strdup|asprintf|vasprintf|'
    r'\w*printf(_chk)?|__\w*printf_chk|puts|putchar|fputs|fwrite|fopen|perror|'
    r'pthread_mutex_\w+|pthread_rwlock_\w+|pthread_cond_\w+|pthread_create|'
    r'pthread_join|abort|exit|_exit|quick_exit|__assert_fail|__stack_chk_fail|'
    r'__tls_get_addr|atexit|system|popen)$')


def run(*command):
    return subprocess.run(command, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def hooks(root):
    names = set()
    for path in tree.files(root, 'hooks.def', under=('src',)):
        for line in tree.lines(root, path):
            match = HOOK.match(line)
            if match:
                names.add(match.group(1))
    return names


def symbols(library):
    """(name, defined) of each dynamic symbol that has a name."""
    for line in run('readelf', '--wide', '--dyn-syms', library).splitlines():
        field = line.split()
        if len(field) >= 8 and field[0].rstrip(':').isdigit():
            # Not the name of a version, which is a symbol too.
            if field[4] in ('GLOBAL', 'WEAK') and field[6] != 'ABS':
                yield field[7].split('@')[0], field[6] != 'UND'


def exports_faults(root, library):
    exported = {name for name, defined in symbols(library) if defined}
    wanted = hooks(root)
    return ([f'exports {n}, which no hooks.def names'
             for n in sorted(exported - wanted)]
            + [f'does not export {n} of hooks.def'
               for n in sorted(wanted - exported)])


def needs_faults(library):
    dynamic = run('readelf', '--wide', '-d', library)
    faults = [f'needs {name}' for name in
              re.findall(r'\(NEEDED\).*\[(.+)\]', dynamic)
              if not NEEDED.match(name)]
    if not re.search(r'BIND_NOW|Flags:.*\bNOW\b', dynamic):
        faults.append('is bound lazily')
    # Behind what it defines, which is there for those who ask for it.
    needs = run('readelf', '--wide', '-V', library).split('Version needs')[-1]
    versions = set(re.findall(r'Name: GLIBC_([\d.]+)', needs))
    faults += [f'needs GLIBC_{v}' for v in sorted(versions)
               if tuple(map(int, v.split('.'))) > GLIBC_MAX]
    return faults


def tls_faults(library):
    faults = []
    segment = re.search(r'^\s*TLS\s+(?:0x\w+\s+){4}(0x\w+)',
                        run('readelf', '--wide', '-l', library), re.MULTILINE)
    if segment and int(segment.group(1), 16) > TLS_BYTES_MAX:
        faults.append(f'has {int(segment.group(1), 16)} bytes of static TLS, '
                      f'the most is {TLS_BYTES_MAX}')
    if re.search(r'DTPMOD|TLSDESC', run('readelf', '--wide', '-r', library)):
        faults.append('reaches its TLS by a call that can allocate')
    return faults


def mapped_faults(library):
    ends = [int(address, 16) + int(size, 16) for address, size in re.findall(
        r'^\s*LOAD\s+0x\w+\s+(0x\w+)\s+0x\w+\s+0x\w+\s+(0x\w+)',
        run('readelf', '--wide', '-l', library), re.MULTILINE)]
    return ([f'takes {max(ends)} bytes of addresses when it is loaded, the '
             f'most is {MAPPED_BYTES_MAX}']
            if max(ends, default=0) > MAPPED_BYTES_MAX else [])


def archive_faults(archive):
    """Undefined in one member and defined in none: left to the program."""
    undefined, defined = set(), set()
    for line in run('nm', '-A', archive).splitlines():
        kind, name = line.split()[-2:]
        (undefined if kind in 'Uwv' else defined).add(name)
    return [f'refers to {n}' for n in sorted(undefined - defined)
            if FORBIDDEN.match(n)]


def check(root, library, *archives):
    found = {library: exports_faults(root, library) + needs_faults(library)
             + tls_faults(library) + mapped_faults(library)
             + [f'refers to {name}' for name, defined in symbols(library)
                if not defined and FORBIDDEN.match(name)]}
    found.update({archive: archive_faults(archive) for archive in archives})
    return [f'{os.path.basename(where)}: symbols: {fault}'
            for where, faults in found.items() for fault in faults]


if __name__ == '__main__':
    tree.main(check)
