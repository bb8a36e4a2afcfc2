# SPDX-License-Identifier: LGPL-2.1-or-later
"""README's list of what seep cannot do is true: each line has a test that
tries it (docs/promises.md), and what no other test tries is tried here.
"""
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from conftest import environment, execute, recordings_in, report

SOURCE = pathlib.Path(__file__).resolve().parents[2]
KEPT, LOST = 120, 80
BLOCKS = f"""
import ctypes, time
malloc = ctypes.CDLL(None).malloc
malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
def keep():
    return malloc(4096)
def lose():
    malloc(4096)
kept = [keep() for _ in range({KEPT})]
for _ in range({LOST}):
    lose()
"""
ALLOCATES = """
import sys
kept = []
print("ready", flush=True)
while True:
    kept.append(bytearray(4096))
    del kept[1000:]
"""
FILLS_AND_WAITS = """
import time
kept = [bytearray(4096) for _ in range(1000)]
print("full", flush=True)
time.sleep(60)
"""


def section(page, title):
    text = (SOURCE / page).read_text(encoding="utf-8")
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_each_line_of_the_list_has_a_test():
    lines = re.findall(r"^\* \*\*(.+?)[.,:]?\*\*",
                       section("README.md", "What it cannot do"), re.M | re.S)
    rows = re.findall(r"^\| ([^|]+) \|.*?\|$",
                      section("docs/promises.md", "What it cannot do"), re.M)
    assert [" ".join(line.split()) for line in lines] == rows[2:]


def test_a_recording_alone_does_not_tell_what_is_lost(folder):
    run = execute([sys.executable, "-c", BLOCKS], folder, sample=1)
    assert run.status == 0
    recorded, = report(*run.recordings)["processes"]
    live = {frame["function"]: site["live_count"]
            for site in recorded["sites"]
            for frame in site["frames"]
            if frame["function"] in ("keep", "lose")}
    assert live == {"keep": KEPT, "lose": LOST}
    assert {site["held"] for site in recorded["sites"]} == {None}


def test_who_is_killed_unseen_ended_at_its_last_allocation(folder):
    start = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", FILLS_AND_WAITS],
                          stdout=subprocess.PIPE, start_new_session=True,
                          env=environment(folder, sample=1)) as process:
        assert process.stdout.readline() == b"full\n"
        full_s = time.monotonic() - start
        time.sleep(3)
        process.kill()
    recorded, = report(*recordings_in(folder))["processes"]
    assert recorded["process"]["state"] == "gone"
    assert recorded["process"]["duration_s"] < full_s + 1.5


@pytest.mark.parametrize("where", [None, "/dev/shm"])
def test_who_truncates_a_live_recording_kills_its_process(where, tmp_path):
    with tempfile.TemporaryDirectory(dir=where or tmp_path,
                                     prefix="seep-test-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-c", ALLOCATES], stdout=subprocess.PIPE,
            env=environment(folder, sample=1), start_new_session=True)
        try:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.1)
            assert process.poll() is None
            with recordings_in(folder)[0].open("r+b") as recording:
                recording.truncate(0)
            assert process.wait(60) == -signal.SIGBUS
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
