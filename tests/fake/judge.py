# SPDX-License-Identifier: LGPL-2.1-or-later
"""The vendor's header judges ours, where one is installed (else: skipped).

Every definition of the fake driver is compiled against cuda.h's prototypes,
and the layouts that both headers give are compared.
"""
import os
import subprocess
import sys
import tempfile

FOLDERS = [os.environ.get('SEEP_CUDA_TOOLKIT', '/usr/local/cuda') + '/include',
           '/opt/cuda/include', '/usr/include']
FLAGS = ['-std=c11', '-D_GNU_SOURCE', '-fvisibility=hidden', '-w']


def layout(compiler, here, out, arguments):
    program = os.path.join(out, 'layout')
    subprocess.run([*compiler, *FLAGS, *arguments, f'-I{here}',
                    os.path.join(here, 'layout.c'), '-o', program], check=True)
    return subprocess.run([program], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.splitlines()


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    compiler = sys.argv[1:] or ['cc']
    folder = next((f for f in FOLDERS
                   if os.path.isfile(os.path.join(f, 'cuda.h'))), None)
    if folder is None:
        print('no cuda.h is installed')
        return 77
    vendor = ['-DFAKE_VENDOR_HEADER', '-isystem', folder]
    failed = 0
    for name in sorted(os.listdir(here)):
        if name.startswith(('driver_', 'fake_')) and name.endswith('.c'):
            failed += subprocess.run(
                [*compiler, *FLAGS, *vendor, f'-I{here}', '-fsyntax-only',
                 os.path.join(here, name)]).returncode != 0
    with tempfile.TemporaryDirectory() as out:
        ours = layout(compiler, here, out, [])
        theirs = layout(compiler, here, out, vendor)
    for one, other in zip(ours, theirs):
        if one != other:
            print(f'ours: {one}, cuda.h: {other}')
            failed += 1
    return 1 if failed or len(ours) != len(theirs) else 0


if __name__ == '__main__':
    sys.exit(main())
