# SPDX-License-Identifier: LGPL-2.1-or-later
"""The example does what its README says: 1 KiB a request, told by requests."""
import glob
import os

from conftest import processes_of, recorded, report, requests_to

FOLDER = os.path.dirname(os.path.abspath(__file__))
SECONDS = 45


def test_the_leak_is_told_by_requests(tmp_path):
    with recorded(tmp_path, FOLDER, '--exact',
                  SEEP_LABELS='model=none,role=worker') as (_, port):
        requests = requests_to(FOLDER, port, SECONDS)
    recording, = glob.glob(str(tmp_path / '*.seep'))
    process, = processes_of(recording)

    assert process['process']['units'] == requests
    assert process['process']['labels'] == {'model': 'bert-13',
                                            'role': 'worker'}
    assert [mark['name'] for mark in process['marks']] == [
        'warm-up begins', 'warm-up done']
    assert process['verdict']['class'] == 'leak'
    growth = process['verdict']['growth_bytes_per_unit']
    assert growth['low'] <= 1024 <= growth['high'], growth
    # An interval of no use would hold it too.
    assert growth['high'] - growth['low'] < 512, growth
    assert 'warm-up done at' in report(recording)
    assert 'model=bert-13' in report('--by', 'label', recording)
