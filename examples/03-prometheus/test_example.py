# SPDX-License-Identifier: LGPL-2.1-or-later
"""The example holds together: rules, dashboard and worker name metrics that
seep has. What a real Prometheus makes of them is an integration test.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent
SEEP = os.environ['SEEP']
NEEDS_DEVICE = {'seep_device_free_bytes'}
NEEDS_TIME = {'seep_growth_bytes_per_second_lower',
              'seep_site_growth_bytes_per_second', 'seep_oom_eta_seconds'}


def metrics_of(text):
    """Names of metrics in an expression or a document."""
    return set(re.findall(r'\bseep_[a-z_]+', text))


def promtool(*words):
    if shutil.which('promtool') is None:
        pytest.skip('promtool is not installed')
    done = subprocess.run(['promtool', *words], cwd=FOLDER, text=True,
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope='module')
def told(tmp_path_factory):
    """What seep tells of the leaking worker after two seconds."""
    folder = tmp_path_factory.mktemp('data')
    subprocess.run(
        [SEEP, 'run', '-o', f'{folder}/', '--sample', '16KiB', '--no-report',
         '--', sys.executable, FOLDER / 'worker.py', 'leak', '--seconds', '2'],
        check=True, stdout=subprocess.PIPE, timeout=60)
    done = subprocess.run([SEEP, 'metrics', '--once', folder], check=True,
                          stdout=subprocess.PIPE, text=True, timeout=60)
    return done.stdout


def test_the_rules_are_valid_and_fire_when_they_should():
    promtool('check', 'rules', 'seep.rules.yml')
    promtool('test', 'rules', 'rules_test.yml')


def test_the_configuration_is_valid():
    promtool('check', 'config', 'prometheus.yml')


def test_the_rules_ask_for_metrics_that_there_are(told):
    rules = (FOLDER / 'seep.rules.yml').read_text()
    assert metrics_of(rules) <= metrics_of(told) | NEEDS_DEVICE | NEEDS_TIME


def test_the_dashboard_asks_for_metrics_that_there_are(told):
    dashboard = json.loads((FOLDER / 'dashboard.json').read_text())
    asked = metrics_of(json.dumps(dashboard))
    assert len(asked) > 10
    assert asked <= metrics_of(told) | NEEDS_DEVICE | NEEDS_TIME
    places = [panel['gridPos'] for panel in dashboard['panels']]
    assert all(place['x'] + place['w'] <= 24 for place in places)


def test_the_leaking_line_is_named(told):
    lines = (FOLDER / 'worker.py').read_text().splitlines()
    number = next(at for at, line in enumerate(lines, 1)
                  if line.endswith('# the leak'))
    assert f'where="worker.py:{number} leak"' in told
