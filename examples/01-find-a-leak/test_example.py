# SPDX-License-Identifier: LGPL-2.1-or-later
"""The example does what its README says: the kept copies are at their line."""
import glob
import math
import os

from conftest import leaking_line, processes_of, recorded, requests_to

FOLDER = os.path.dirname(os.path.abspath(__file__))
SCORES_BYTES = 4096 * 4
SECONDS = 12


def test_the_kept_copies_are_at_their_line(tmp_path):
    with recorded(tmp_path, FOLDER) as (_, port):
        requests = requests_to(FOLDER, port, SECONDS)
    process, = processes_of(*glob.glob(str(tmp_path / '*.seep')))
    line = leaking_line(os.path.join(FOLDER, 'server.py'))

    assert requests > 0
    leak, = (site for site in process['sites'] if site['space'] == 'heap' and
             site['where'].startswith(f'server.py:{line} '))
    modules = [frame['module'] or '' for frame in leak['frames']]
    assert any('_multiarray_umath' in module for module in modules)
    # Each is sampled with probability p: the error of the sum of n is
    # sqrt(n (1 - p) / p) blocks, 0.76 sqrt(n) where the mean is their size.
    mean = process['process']['sample_bytes']
    sampled = 1 - math.exp(-SCORES_BYTES / mean)
    wanted = requests * SCORES_BYTES
    error = (5 * ((1 - sampled) / sampled * requests) ** 0.5 + 1) * SCORES_BYTES
    assert abs(leak['live_bytes'] - wanted) < error
