# SPDX-License-Identifier: LGPL-2.1-or-later
"""The example does what its README says: who died of memory says by which line.
"""
import glob
import os
import resource
import subprocess
import sys

from conftest import SEEP, processes_of

FOLDER = os.path.dirname(os.path.abspath(__file__))
LIMIT_BYTES = 560 << 20


def test_who_died_of_memory_tells_the_line_that_filled_it(tmp_path):
    done = subprocess.run(
        [SEEP, 'run', '--no-report', '-o', str(tmp_path / '%p.seep'), '--',
         sys.executable, os.path.join(FOLDER, 'worker.py')],
        stderr=subprocess.PIPE, timeout=150, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES)))
    assert done.returncode == 1 and 'MemoryError' in done.stderr

    process, = processes_of(*glob.glob(str(tmp_path / '*.seep')))
    assert process['process']['status'] == {'exit': 1, 'signal': None}
    assert process['verdict']['class'] == 'leak'
    assert 'worker.py:12 predict' in process['verdict']['sentence']
    most = max(process['sites'], key=lambda site: site['live_bytes'])
    assert most['where'] == 'worker.py:12 predict'
