# SPDX-License-Identifier: LGPL-2.1-or-later
"""`seep run` as process 1, the entry point of a container."""
import os
import shutil
import signal
import subprocess

import pytest

from command_line import LIMIT_S, PYTHON, SEEP, environment

SPACE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
ORPHANS = 60

# Each parent ends at once, and process 1 has its child.
LEAVE = f"""
import os, signal, sys, time

def orphan():
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(3)
        os._exit(0)
    os.wait()

def zombies():
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = open(f"/proc/{{pid}}/stat").read()
        except OSError:
            continue
        count += stat.rpartition(")")[2].split()[0] == "Z"
    return count

for _ in range({ORPHANS}):
    orphan()
end = time.monotonic() + 60
while zombies() and time.monotonic() < end:
    time.sleep(0.05)
print(zombies(), os.getppid())
"""
WAIT = """
import os, signal, time
def tell(number, _):
    print(number, flush=True)
    os._exit(7)
for number in (signal.SIGTERM, signal.SIGWINCH, signal.SIGALRM,
               signal.SIGRTMIN):
    signal.signal(number, tell)
print("ready", flush=True)
time.sleep(60)
"""


def may_make_spaces():
    return shutil.which("unshare") and subprocess.run(
        [*SPACE, "true"], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(
    not may_make_spaces(), reason="no pid namespace can be made here")


def as_first(folder, program):
    """The words that run @program under process 1, which is seep."""
    return [*SPACE, SEEP, "run", "--quiet", "-o", f"{folder}/", "--", PYTHON,
            "-c", program]


def test_process_1_reaps_what_outlives_its_parent(tmp_path):
    done = subprocess.run(as_first(tmp_path, LEAVE), env=environment(),
                          capture_output=True, timeout=LIMIT_S, check=False)

    assert done.stdout.split() == [b"0", b"1"], done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGWINCH,
                                    signal.SIGALRM, signal.SIGRTMIN])
def test_process_1_hands_a_signal_on(tmp_path, number):
    with subprocess.Popen(as_first(tmp_path, WAIT), env=environment(),
                          stdout=subprocess.PIPE) as space:
        try:
            assert space.stdout.readline() == b"ready\n"
            children = f"/proc/{space.pid}/task/{space.pid}/children"
            with open(children, encoding="ascii") as file:
                first, = file.read().split()
            os.kill(int(first), number)
            told = space.stdout.readline()
            assert space.wait(timeout=LIMIT_S) == 7
        finally:
            space.kill()
    assert int(told) == number
