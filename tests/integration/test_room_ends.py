# SPDX-License-Identifier: LGPL-2.1-or-later
"""A process that ran out of memory: which limit it was, what it did last."""
import contextlib
import os
import pathlib
import re
import subprocess
import tempfile

import pytest

from command_line import seep
from conftest import SEEP, TIMEOUT_S, environment, execute, report

PYTHON = "/usr/bin/python3"
MIB = 1 << 20
LIMIT_BYTES = 400 * MIB
GROUPS = pathlib.Path("/sys/fs/cgroup/memory")

# What it asks for fails at once; it sets its limit itself, after its start.
FAILS = """
import resource
resource.setrlimit(resource.{which}, ({limit}, {limit}))
def ask():
    return bytearray({asked})
for _ in range(3):
    try:
        ask()
    except MemoryError:
        print("no room")
"""

# Nothing that it holds, nor has mapped.
WRITES = """
import os, pathlib, time
pathlib.Path("{group}/cgroup.procs").write_text(str(os.getpid()))
start = time.monotonic()
count = 0
while time.monotonic() - start < {seconds}:
    [bytearray(3000) for _ in range(50)]
    while count < (time.monotonic() - start) * 8:
        pathlib.Path("{folder}", str(count)).write_bytes(bytes(200_000))
        count += 1
    time.sleep(.05)
"""

# At a pace, so that it lasts as long as a verdict needs.
KEEPS = """
import os, pathlib, time
pathlib.Path("{group}/cgroup.procs").write_text(str(os.getpid()))
kept = []
start = time.monotonic()
def keep():
    kept.append(bytearray(1 << 17))
while True:
    while len(kept) < (time.monotonic() - start) * 24:
        keep()
    bytearray(1 << 17)
    time.sleep(0.02)
"""


@pytest.mark.parametrize("which, part", [
    ("RLIMIT_AS", "address_space"), ("RLIMIT_DATA", "data")])
@pytest.mark.parametrize("sample", [1, None])
def test_what_found_no_room_is_told_with_its_line(
        folder, which, part, sample):
    script = folder / "ask.py"
    script.write_text(FAILS.format(which=which, limit=LIMIT_BYTES,
                                   asked=LIMIT_BYTES + MIB))
    run = execute([PYTHON, script], folder, sample=sample)

    assert run.seen == (0, b"no room\n" * 3, b"")
    process, = report(*run.recordings)["processes"]
    failed = process["process"]["failed_allocations"]
    assert failed["count"] >= 3
    assert failed["last_bytes"] >= LIMIT_BYTES + MIB
    assert failed["where"] == "ask.py:5 ask"
    bound = process["memory"][part]
    assert bound["limit_bytes"] == LIMIT_BYTES
    assert 0 < bound["used_bytes"] <= LIMIT_BYTES
    other = {"address_space", "data"} - {part}
    assert process["memory"][other.pop()] is None


def test_where_nothing_failed_nothing_is_told(folder):
    run = execute([PYTHON, "-c", "kept = [bytearray(1000)] * 1000"], folder,
                  sample=1)

    process, = report(*run.recordings)["processes"]
    assert process["process"]["failed_allocations"] is None
    assert process["memory"]["address_space"] is None
    assert process["memory"]["data"] is None


@contextlib.contextmanager
def group_of(name, limit_bytes):
    """A control group of version 1."""
    group = GROUPS / f"seep-test-{name}-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
    except OSError as error:
        if group.is_dir():
            group.rmdir()
        pytest.skip(f"no control group can be made: {error}")
    try:
        yield group
    finally:
        group.rmdir()


@pytest.fixture(name="group")
def make_group():
    """One of 100 MiB."""
    with group_of("small", 100 * MIB) as group:
        yield group


def test_who_was_killed_by_its_group_has_a_post_mortem(folder, group):
    path = folder / "killed.seep"
    done = subprocess.run(
        [SEEP, "run", "--no-report", "-o", path, "--", PYTHON, "-c",
         KEEPS.format(group=group)],
        env=environment(), timeout=TIMEOUT_S, check=False,
        capture_output=True)

    assert done.returncode == 128 + 9, done.stderr
    process, = report(path)["processes"]
    assert process["process"]["status"]["signal"] == 9
    assert process["memory"]["cgroup_limit_bytes"] == 100 * MIB
    assert process["memory"]["cgroup"]["last_bytes"] > 60 * MIB
    verdict = process["verdict"]
    assert verdict["class"] in ("leak", "suspect"), verdict
    assert "keep" in verdict["sentence"]
    growth = verdict["growth_bytes_per_s"]
    assert growth["low"] < 3 * MIB < growth["high"]
    forecast = verdict["forecast"]
    assert (forecast["what"], forecast["limit_bytes"]) == ("cgroup", 100 * MIB)
    last = process["process"]["before_end"]
    assert "keep" in last["where"]
    assert 0.5 < last["stayed_bytes"] / (3 * MIB * last["span_s"]) < 2
    text = seep("report", path).stdout.decode()
    assert "killed by signal 9" in text
    assert "in its last" in text and "of 100 MiB when" in text


@contextlib.contextmanager
def writer(folder, kind, where):
    """`seep run` of one who writes files, in a group of its own."""
    with group_of(kind, 300 * MIB) as group, \
            tempfile.TemporaryDirectory(dir=where) as files:
        yield subprocess.Popen(
            [SEEP, "run", "--quiet", "--no-report", "-o",
             folder / f"{kind}.seep", "--", PYTHON, "-c",
             WRITES.format(group=group, folder=files, seconds=45)],
            env=environment(), start_new_session=True)


def test_what_grows_in_the_group_beside_it_is_told(folder):
    """Files in memory fill a container as blocks do; of those on a disk the
    kernel gives the pages back."""
    with writer(folder, "memory", "/dev/shm") as memory, \
            writer(folder, "disk", "/var/tmp") as disk:
        assert memory.wait(TIMEOUT_S) == 0
        assert disk.wait(TIMEOUT_S) == 0
    memory, = report(folder / "memory.seep")["processes"]
    disk, = report(folder / "disk.seep")["processes"]
    for process in memory, disk:
        assert process["verdict"]["class"] == "steady", process["verdict"]
        grown = process["memory"]["cgroup"]
        assert grown["last_bytes"] - grown["first_bytes"] > 40 * MIB
    rate = 8 * 200_000
    for part in ("cgroup_held", "cgroup_shmem"):
        told = memory["memory"][part]["slope_bytes_per_s"]
        assert 0.6 * rate < told < 1.5 * rate, (part, told)
    assert "but its cgroup grows beside it by" in memory["verdict"]["sentence"]
    assert "files in a tmpfs" in " ".join(memory["verdict"]["reasons"])
    forecast = memory["verdict"]["forecast"]
    assert (forecast["answer"], forecast["by_others"]) == ("time", True)
    held = memory["memory"]["cgroup_held"]
    assert forecast["seconds"]["estimate"] == pytest.approx(
        (300 * MIB - held["last_bytes"]) / held["slope_bytes_per_s"])
    assert "cgroup" not in disk["verdict"]["sentence"]
    assert disk["verdict"]["forecast"]["answer"] != "time"
    assert disk["memory"]["cgroup_held"]["slope_bytes_per_s"] < rate / 4
    for kind, process, when in (("memory", memory, "full in "),
                                ("disk", disk, "never by the process itself")):
        top = seep("top", "--once", folder / f"{kind}.seep").stdout.decode()
        row, = re.findall("^ cgroup .*", top, re.M)
        whole = process["memory"]["cgroup"]
        if whole["slope_bytes_per_s"] > whole["slope_error_bytes_per_s"]:
            assert when in row and "not growing" not in row, top
        check = " ".join(seep("check", "--max-growth", "50MiB/min",
                              folder / f"{kind}.seep").stdout.decode().split())
        assert "PASS" in check
        assert ("beside it, which no limit is about" in check) \
            == (kind == "memory")
