# SPDX-License-Identifier: LGPL-2.1-or-later
"""A worker that leaks in a control group of its own, until the kernel ends it.

Invariant: the group is gone at the end, and so is the worker.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

from truth import Work

GROUPS = pathlib.Path("/sys/fs/cgroup/memory")  # of version 1
BLOCK_BYTES = 256 << 10
LIFE_S = 300
parser = argparse.ArgumentParser()
parser.add_argument("--limit", type=int, default=400 << 20)
parser.add_argument("--rate", type=float, default=8 << 20)
parser.add_argument("--worker", type=pathlib.Path, help="its group")
parser.add_argument("--try", dest="only_try", action="store_true",
                    help="can a group be made? (exit status)")
arguments = parser.parse_args()
kept = []


def work_on():
    """Allocates and frees."""
    return sum(len(bytearray(BLOCK_BYTES)) for _ in range(10))


def keep_answer():
    """What is not given back."""
    kept.append(bytearray(BLOCK_BYTES))


def work():
    """To the end, which is not its own."""
    start = time.monotonic()
    while time.monotonic() - start < LIFE_S:
        work_on()
        while len(kept) * BLOCK_BYTES < arguments.rate * (
                time.monotonic() - start):
            keep_answer()
        time.sleep(0.02)


def make_group():
    """Of this process alone. @return it"""
    group = GROUPS / f"seep-real-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(arguments.limit))
        # what is swapped is not in memory, and the end would not come
        swappiness = group / "memory.swappiness"
        if swappiness.exists():
            swappiness.write_text("0")
    except OSError:
        group.rmdir()
        raise
    return group


def kills_in(group):
    """How often the kernel killed there."""
    words = (group / "memory.oom_control").read_text("ascii").split()
    return int(words[words.index("oom_kill") + 1])


def main():
    """One worker, from its start to its end."""
    group = make_group()
    try:
        if arguments.only_try:
            return
        clock = Work(LIFE_S)
        with subprocess.Popen(
                [sys.executable, __file__, "--worker", group,
                 "--rate", str(arguments.rate)],
                preexec_fn=lambda: (group / "cgroup.procs").write_text(
                    str(os.getpid()))) as worker:
            status = worker.wait(2 * LIFE_S)
        # at its limit it may stand still for a while
        kept_bytes = min(arguments.rate * (time.monotonic() - clock.start),
                         arguments.limit)
        clock.tell(int(kept_bytes), worker=worker.pid, status=status,
                   kills=kills_in(group))
    finally:
        for _ in range(50):  # its pages are still being given back
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.1)


if arguments.worker:
    work()
else:
    main()
