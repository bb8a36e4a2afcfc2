# SPDX-License-Identifier: LGPL-2.1-or-later
"""The example does what its README says: the kept copies are at their line."""
import glob
import os

from conftest import leaking_line, processes_of, recorded, requests_to

FOLDER = os.path.dirname(os.path.abspath(__file__))
SCORES_BYTES = 4096 * 4
SECONDS = 12


def test_the_kept_copies_are_at_their_line(tmp_path):
    with recorded(tmp_path, FOLDER, '--sample', '16KiB') as (_, port):
        requests = requests_to(FOLDER, port, SECONDS)
    process, = processes_of(*glob.glob(str(tmp_path / '*.seep')))
    line = leaking_line(os.path.join(FOLDER, 'server.py'))

    assert requests > 0
    leak, = (site for site in process['sites'] if site['space'] == 'heap' and
             site['where'].startswith(f'server.py:{line} '))
    modules = [frame['module'] or '' for frame in leak['frames']]
    assert any('_multiarray_umath' in module for module in modules)
    # A block of the mean's size is sampled with probability 1 - 1/e: the
    # error of the sum of n is 0.76 sqrt(n) blocks.
    wanted = requests * SCORES_BYTES
    error = 5 * 0.77 * requests ** 0.5 * SCORES_BYTES
    assert abs(leak['live_bytes'] - wanted) < error
