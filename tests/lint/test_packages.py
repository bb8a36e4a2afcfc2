# SPDX-License-Identifier: LGPL-2.1-or-later
"""tools/lib/install.sh installs what is missing, and nothing else.

The commands that it would run as root are logged, not run.
"""
import os
import pathlib
import re
import subprocess

import pytest

SOURCE = os.environ.get('SEEP_SOURCE',
                        os.path.join(os.path.dirname(__file__), '..', '..'))
FAKES = {
    'id': 'echo 1000',
    'dpkg-query': 'case $4 in gcc) printf "ii ";; old) printf "rc ";; '
                  '*) exit 1;; esac',
    'sudo': 'echo "$@" >>"$LOG"; case $* in *$REFUSED*) exit 1;; esac',
    'there': '',
}


@pytest.fixture(name='install')
def faked(tmp_path):
    for name, body in FAKES.items():
        fake = tmp_path / name
        fake.write_text('#!/bin/sh\n' + body + '\n')
        fake.chmod(0o755)
    log = tmp_path / 'log'

    def install(*packages, refused='nothing'):
        log.write_text('')
        run = subprocess.run(
            ['bash', '-eu', '-c', '. "$0"; policy=$1; shift; '
             'install_missing "$@"',
             os.path.join(SOURCE, 'tools/lib/install.sh'),
             str(tmp_path / 'policy'), *packages],
            text=True, stdout=subprocess.PIPE,
            env={'PATH': f'{tmp_path}:/usr/bin:/bin', 'LOG': str(log),
                 'REFUSED': refused})
        return run, log.read_text().splitlines()
    return install


def test_where_nothing_is_missing_nothing_is_run(install):
    run, commands = install('gcc', 'there:absent')

    assert run.returncode == 0
    assert commands == []


def test_what_is_missing_or_was_removed_is_installed(install):
    run, commands = install('gcc', 'old', 'absent', 'nowhere:package')

    assert run.returncode == 0
    assert commands[-2].endswith(
        'install -q -y --no-install-recommends old absent package')
    assert 'installing: old absent package' in run.stdout


def test_no_service_is_started_meanwhile_and_the_policy_goes(
        install, tmp_path):
    _, commands = install('absent')

    assert commands[0] == f'tee {tmp_path}/policy'
    assert commands[-1] == f'rm -f {tmp_path}/policy'


def test_an_install_that_fails_is_a_failure_and_the_policy_goes(
        install, tmp_path):
    run, commands = install('absent', refused='apt-get install')

    assert run.returncode != 0
    assert commands[-1] == f'rm -f {tmp_path}/policy'


def test_who_calls_keeps_what_it_does_at_its_end(tmp_path, install):
    install('absent')  # makes the commands that stand for apt
    run = subprocess.run(
        ['bash', '-eu', '-c', '. "$0"; policy=$1; trap "echo cleaned" EXIT; '
         'install_missing absent',
         os.path.join(SOURCE, 'tools/lib/install.sh'),
         str(tmp_path / 'policy')],
        text=True, stdout=subprocess.PIPE,
        env={'PATH': f'{tmp_path}:/usr/bin:/bin', 'REFUSED': 'nothing',
             'LOG': str(tmp_path / 'log')})

    assert run.stdout.splitlines()[-1] == 'cleaned'


def test_a_policy_of_the_machine_s_own_stays(install, tmp_path):
    (tmp_path / 'policy').write_text('')

    _, commands = install('absent')

    assert not any('policy' in command for command in commands)


def asked(scope, word=''):
    return subprocess.run(
        ['bash', '-eu', '-c', '. tools/lib/install.sh; packages_for "$@"',
         'bash', scope, word], cwd=SOURCE, text=True, check=True,
        stdout=subprocess.PIPE).stdout.split()


def test_a_word_needs_what_its_tests_need_and_no_more():
    of_top = asked('all', 'test_top')
    assert 'meson' in of_top and 'tmux' in of_top
    assert not any('torch' in name or 'java' in name or 'clang' in name
                   for name in of_top)
    assert 'python3-torch' in asked('all', 'test_capture')
    assert set(asked('all', 'ring')) == set(asked('all', 'no such test'))


def test_the_quick_ones_need_little_and_all_need_everything():
    of_quick, of_all = asked('quick'), asked('all')
    assert 'clang-format' in of_quick and 'shellcheck' in of_quick
    assert not {'clang-tidy', 'python3-torch', 'valgrind'} & set(of_quick)
    assert {'clang-tidy', 'python3-torch', 'valgrind'} < set(of_all)
    assert set(of_quick) < set(of_all)


def test_every_test_that_a_package_is_for_is_there():
    root = pathlib.Path(SOURCE)
    built = ''.join(path.read_text()
                    for path in root.glob('tests/**/meson.build'))
    for line in (root / 'tools/lib/packages').read_text().splitlines():
        needs = line.partition('|')[2] if line[:1] != '#' else ''
        for suite, name in re.findall(r'(\w+) / ([^,]+)', needs):
            assert ((root / 'tests' / suite / f'{name}.py').is_file()
                    or (root / suite / name).is_dir()
                    or f"'{name}'" in built
                    or f"'{name.split()[-1]}'" in built), line
