# SPDX-License-Identifier: LGPL-2.1-or-later
"""clang-tidy with our .clang-tidy over what the build compiles.

    tidy.py SOURCE_ROOT BUILD_ROOT
"""
import json
import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

import tree

JOBS = 2
OURS = ('src', 'tools')


# Sources of the product whose atomics are made to something else.
INTERCEPTED = 'intercept.h'


def commands(build, folder):
    """What the build compiles as it is, as clang-tidy wants it."""
    with open(os.path.join(build, 'compile_commands.json')) as file:
        entries = [entry for entry in json.load(file)
                   if INTERCEPTED not in entry['command']]
    with open(os.path.join(folder, 'compile_commands.json'), 'w') as file:
        json.dump(entries, file)
    return entries


def sources(root, entries):
    paths = {os.path.relpath(os.path.join(entry['directory'], entry['file']),
                             os.path.realpath(root)) for entry in entries}
    return sorted(p for p in paths
                  if p.split(os.sep)[0] in OURS and p.endswith('.c'))


def tidy(root, build, paths):
    # The build is gcc's: clang need not know every warning that gcc knows, nor
    # what it links by.
    result = subprocess.run(
        ['clang-tidy', '--quiet', '-p', build,
         '--extra-arg=-Wno-unknown-warning-option',
         '--extra-arg=-Wno-ignored-optimization-argument',
         '--extra-arg=-Wno-unknown-attributes', *paths],
        cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    found = re.findall(r'^(?:.*?/)?((?:src|tools|include)/\S+?:\d+):\d+: '
                       r'(?:error|warning): (.*)$', result.stdout,
                       re.MULTILINE)
    if result.returncode and not found:
        found = [(' '.join(paths), result.stdout.strip()[-400:])]
    return [f'{place}: tidy: {why}' for place, why in found]


def check(root, build):
    with tempfile.TemporaryDirectory(prefix='seep-tidy-') as folder:
        paths = sources(root, commands(build, folder))
        shares = [paths[i::JOBS * 4] for i in range(JOBS * 4)
                  if paths[i::JOBS * 4]]
        with ThreadPoolExecutor(JOBS) as pool:
            found = list(pool.map(lambda share: tidy(root, folder, share),
                                  shares))
    return sorted({fault for faults in found for fault in faults})


if __name__ == '__main__':
    tree.main(check)
