# SPDX-License-Identifier: LGPL-2.1-or-later
"""Arenas of Python's allocator, where its objects are not recorded."""
import json

from command_line import PYTHON, recordings, run, seep

PROGRAM = """
first, second = [], []
def one():
    first.extend(object() for _ in range(300000))
def other():
    second.extend((i, i) for i in range(100000))
one()
other()
"""
MIB = 1 << 20


def test_all_arenas_are_one_site_whoever_needed_them(tmp_path):
    done = run(tmp_path, PYTHON, "-c", PROGRAM,
               options=("--sample", "16K", "--python", "frames"))
    assert done.returncode == 0, done.stderr
    shown = seep("report", "--json", "--by", "stack", *recordings(tmp_path))
    assert shown.returncode == 0, shown.stderr
    sites = [site for site in json.loads(shown.stdout)["processes"][0]["sites"]
             if site["space"] == "mapped" and site["live_bytes"] >= 5 * MIB]
    assert len(sites) == 1
    assert all(frame["kind"] == "native" for frame in sites[0]["frames"])
    assert sites[0]["live_bytes"] >= 10 * MIB
