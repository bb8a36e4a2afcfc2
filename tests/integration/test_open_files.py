# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is written to a file without a name is memory, in no mapping and in no
resident memory: whoever fills one is not told that nothing grows."""
import json
import subprocess

from conftest import PRELOAD, SEEP, environment

PYTHON = "/usr/bin/python3"
SECONDS = 40
BLOCK_BYTES = 256 << 10

FILL = f"""
import os, time
end = time.monotonic() + {SECONDS}
frames = os.memfd_create("frames")
while time.monotonic() < end:
    os.write(frames, bytes({BLOCK_BYTES}))
    for _ in range(40):
        bytearray(3000)
        time.sleep(0.0025)
"""


def test_who_fills_a_memfd_is_told_that_it_grows(tmp_path):
    done = subprocess.run(
        [SEEP, "run", "--quiet", "--no-report", "-o", f"{tmp_path}/", "--",
         PYTHON, "-c", FILL], env=environment(SEEP_PRELOAD=PRELOAD),
        capture_output=True, check=False, timeout=SECONDS + 120)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([SEEP, "report", "--json", tmp_path],
                          capture_output=True, check=False, timeout=120)
    process, = json.loads(done.stdout)["processes"]
    verdict, memory = process["verdict"], process["memory"]

    assert "no leak" not in verdict["sentence"]
    assert verdict["class"] == "unexplained" and verdict["open_files"]
    assert memory["open_file"] == "memfd:frames"
    assert "the largest is memfd:frames" in verdict["sentence"]
    # as much as was written, whatever the machine had time for
    grown = memory["open_files"]["slope_bytes_per_s"]
    assert grown * SECONDS > 0.5 * memory["open_files"]["last_bytes"]
    assert verdict["forecast"]["answer"] == "time"
