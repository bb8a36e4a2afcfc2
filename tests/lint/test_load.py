# SPDX-License-Identifier: LGPL-2.1-or-later
"""The busy loops of tools/test --beside: they run, and none is left over."""
import os
import signal
import subprocess
import time

import pytest

SOURCE = os.environ.get('SEEP_SOURCE',
                        os.path.join(os.path.dirname(__file__), '..', '..'))
PATIENCE_S = 60  # for what hangs


def state_of(pid):
    """As in /proc: R for one that runs, none where it is gone."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8') as stat:
            return stat.read().rsplit(')', 1)[1].split()[0]
    except OSError:
        return None


def wait_until(holds):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture(name='shell')
def shell_with_a_load():
    """A shell as tools/test is, and the pids of its loops."""
    with subprocess.Popen(
            ['bash', '-c', '. tools/lib/load.sh; trap end_load EXIT; '
             "trap 'exit 1' TERM; start_load 2; "
             'echo "${loops[@]}"; read -r line'], cwd=SOURCE, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        pids = [int(pid) for pid in process.stdout.readline().split()]
        yield process, pids
        process.kill()


def test_there_are_as_many_as_were_asked_for(shell):
    _, pids = shell

    assert len(pids) == 2
    for pid in pids:
        wait_until(lambda: state_of(pid) == 'R')  # noqa: B023


@pytest.mark.parametrize('how', ['end', signal.SIGTERM, signal.SIGKILL])
def test_no_loop_outlives_the_shell(shell, how):
    process, pids = shell

    if how == 'end':
        process.stdin.close()
    else:
        process.send_signal(how)
    process.wait(PATIENCE_S)

    wait_until(lambda: not any(state_of(pid) in ('R', 'S') for pid in pids))


@pytest.mark.parametrize('words', [
    ['--beside', '3'], ['--times'], ['--times', '0'], ['--times', 'ring'],
    ['--times', '1000'], ['--times', '2', '--beside', '-1']])
def test_what_is_no_count_is_refused_before_anything_is_done(words):
    done = subprocess.run(['tools/test', *words], cwd=SOURCE, text=True,
                          capture_output=True, check=False)

    assert done.returncode == 2
    assert 'usage' in done.stderr
    assert done.stdout == ''
