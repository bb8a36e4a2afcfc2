# SPDX-License-Identifier: LGPL-2.1-or-later
"""A recording costs what it holds, and no disk is too full for the program."""
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

from conftest import (LONG, TIMEOUT_S, dump, environment, execute,
                      recordings_in)

PYTHON = "/usr/bin/python3"
KIB = 1024
MIB = 1024 * KIB
# What a small program allocates at many call sites, and what it prints.
BUSY = """
import json, sys
kept = []
for round in range(6):
    kept.append(json.loads(json.dumps({str(i): [i] * 5 for i in range(900)})))
    exec("\\n".join(f"def f{round}_{i}(n): return bytearray(n)"
                    for i in range(40)))
    kept.extend(globals()[f"f{round}_{i}"](100 + i) for i in range(40))
print(len(kept), sum(len(item) for item in kept))
"""


def on_disk(path):
    return path.stat().st_blocks * 512


@contextlib.contextmanager
def small_disk(folder, size_kib, disk=None):
    """A tmpfs of that size."""
    if disk is None:
        disk = folder / "disk"
        disk.mkdir(exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_kib}k",
                       "seep-test", disk], capture_output=True,
                      check=False).returncode:
        pytest.skip("cannot mount a small disk here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("sample, most_kib", [
    (524288, 512), (16384, 512), (1, 4096)])
def test_a_short_python_costs_little(folder, sample, most_kib):
    if not pathlib.Path(PYTHON).exists():
        pytest.skip("Debian's python3 is not installed")
    run = execute([PYTHON, "-c", "pass"], folder, sample=sample)
    assert run.status == 0
    recording, = run.recordings
    dump(recording, "--no-symbols")
    assert on_disk(recording) <= most_kib * KIB


@pytest.mark.parametrize("argv, sample, most_kib", [
    (["/usr/bin/seq", "1"], 1, 320), ([PYTHON, "-c", "pass"], 524288, 256)])
def test_a_recording_begins_small(folder, argv, sample, most_kib):
    """A program that allocates next to nothing."""
    run = execute(argv, folder, sample=sample)
    recording, = run.recordings
    dump(recording, "--no-symbols")
    assert on_disk(recording) <= most_kib * KIB


@pytest.mark.parametrize("limit, bound_mib", [
    (None, 64), ("-v 900000", 16), ("-f 40000", 16)])
def test_a_process_of_tight_limits_has_the_smaller_bound(folder, limit,
                                                         bound_mib):
    """Its addresses are its own, and no file may be larger than it may be."""
    run = execute(["bash", "-c", f"ulimit {limit} && exec \"$@\"" if limit else
                   "exec \"$@\"", "bash", PYTHON, "-c", "pass"], folder,
                  sample=None, SEEP_SKIP="bash")
    assert run.seen == (0, b"", b"")
    recording, = run.recordings
    assert (bound_mib - 1) * MIB < recording.stat().st_size <= bound_mib * MIB


@pytest.mark.parametrize("sample", [1, 4096])
@pytest.mark.parametrize("floor", ["0", None])
def test_a_disk_that_fills_at_every_step(folder, sample, floor):
    """Whatever page the disk ends at: unharmed, readable, counted."""
    plain = execute([PYTHON, "-c", BUSY])
    assert plain.status == 0
    whole, = execute([PYTHON, "-c", BUSY], folder, sample=sample).recordings
    # Of a tmpfs a quarter stays free, if nobody says otherwise.
    whole_kib = on_disk(whole) * (1 if floor else 4 / 3) / KIB
    whole.unlink()
    sizes = [max(16, int(whole_kib * part / 40)) for part in range(1, 44)]
    if not LONG:
        sizes = random.Random(os.getpid()).sample(sizes, 4) + [
            int(whole_kib * part) for part in (0.7, 0.85, 0.93)]
    wanted = {} if floor is None else {"SEEP_FLOOR": floor}
    refused = lost = 0
    for size_kib in sizes:
        with small_disk(folder, size_kib) as disk:
            run = execute([PYTHON, "-c", BUSY], disk, sample=sample, **wanted)
            assert run.seen == plain.seen, size_kib
            for recording in run.recordings:
                counters = dump(recording, "--no-symbols")["counters"]
                refused += counters["room_refused"] > 0
                # The last of a run's refusals may cost nothing.
                if counters["room_refused"]:
                    lost += sum(counters[name] for name in (
                        "stacks_full", "sites_full", "series_full",
                        "live_full", "ranges_full", "strings_full",
                        "codes_full", "modules_full", "dropped_allocs",
                        "dropped_frees", "thinnings"))
    assert refused > 0 and lost > 0


def test_a_disk_that_another_fills_meanwhile(folder):
    """The room that a recording has not reserved is not its own."""
    with small_disk(folder, 8192) as disk:
        process = subprocess.Popen(
            [PYTHON, "-c", "import sys\nprint('ready', flush=True)\n"
             "sys.stdin.read()\n" + BUSY],
            env=environment(disk, sample=1, SEEP_FLOOR="0"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        with contextlib.suppress(OSError):
            with open(disk / "other", "wb", buffering=0) as other:
                while other.write(bytes(65536)):
                    pass
        out, err = process.communicate(b"", timeout=TIMEOUT_S)
        assert (process.returncode, err) == (0, b"")
        assert out == execute([PYTHON, "-c", BUSY]).stdout
        recording, = recordings_in(disk)
        assert dump(recording, "--no-symbols")["counters"]["room_refused"] > 0


@contextlib.contextmanager
def silent_disk(folder):
    """A folder that is reached through a server, and the server."""
    folder.mkdir()
    with subprocess.Popen(
            ["/usr/bin/python3", pathlib.Path(__file__).parent /
             "silent_disk.py", folder], stdout=subprocess.PIPE) as server:
        try:
            if server.stdout.readline() != b"ready\n":
                pytest.skip("cannot mount a disk of a program here")
            yield folder / "in", server
        finally:
            server.send_signal(signal.SIGCONT)
            subprocess.run(["umount", "-l", folder], check=False)
            server.kill()


def test_a_server_that_is_gone_is_not_waited_for(folder):
    """A disk of this machine, found through what no longer answers."""
    with silent_disk(folder / "served") as (served, server), \
            small_disk(folder, 65536, served) as disk:
        process = subprocess.Popen(
            [PYTHON, "-c", "import sys\nsys.stdin.read()\n" + BUSY],
            env=environment(disk, sample=1), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        end = time.monotonic() + TIMEOUT_S
        while not list(disk.glob("*.seep")):
            assert time.monotonic() < end
            time.sleep(0.01)
        recording, = disk.glob("*.seep")
        with open(recording, "rb") as held:
            before = os.fstat(held.fileno()).st_blocks
            server.send_signal(signal.SIGSTOP)
            try:
                out, err = process.communicate(b"", timeout=TIMEOUT_S)
            finally:
                process.kill()
                server.send_signal(signal.SIGCONT)
            assert os.fstat(held.fileno()).st_blocks > before
        assert (process.returncode, err) == (0, b"")
        assert out == execute([PYTHON, "-c", BUSY]).stdout


def test_a_kill_while_it_grows(folder):
    """Between any two steps of growth the file is a recording."""
    generator = random.Random(os.getpid())
    for number in range(60 if LONG else 15):
        place = folder / str(number)
        place.mkdir()
        process = subprocess.Popen(
            [PYTHON, "-c", BUSY], env=environment(place, sample=1),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        end = time.monotonic() + TIMEOUT_S
        while not recordings_in(place) and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.001)
        time.sleep(generator.uniform(0, 0.4))
        process.send_signal(signal.SIGKILL)
        process.wait(TIMEOUT_S)
        for recording in recordings_in(place):
            for site in dump(recording, "--no-symbols")["sites"]:
                assert (site["allocated_bytes"] - site["freed_bytes"]
                        == site["live_bytes"])
