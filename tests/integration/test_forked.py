# SPDX-License-Identifier: LGPL-2.1-or-later
"""A fork whose pages are copied, since it writes to them: its resident memory
is the same all the while, and the machine's grows. Nothing of it is a leak, and
"nothing grows" is not true of it.
"""
import json
import subprocess

import pytest

import consistency
from conftest import PRELOAD, PROGRAMS, SEEP, environment, recordings_in

MIB = 128
SECONDS = 40
TIMEOUT_S = 180


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """{kind: (recording of the child, its report)}, side by side."""
    folders = {kind: tmp_path_factory.mktemp(kind)
               for kind in ("write", "read")}
    running = {
        kind: subprocess.Popen(
            [SEEP, "run", "--quiet", "--no-report", "-o", f"{folder}/",
             "--sample", "64K", "--", PROGRAMS / "forked", kind, str(MIB),
             str(SECONDS)], env=environment(SEEP_PRELOAD=PRELOAD),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for kind, folder in folders.items()}
    reports = {}
    for kind, process in running.items():
        out, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, err) == (0, b"")
        assert json.loads(out) == {"used_bytes": MIB << 20}
        for path in recordings_in(folders[kind]):
            done = subprocess.run([SEEP, "report", "--json", path],
                                  capture_output=True, check=True,
                                  timeout=TIMEOUT_S)
            [one] = json.loads(done.stdout)["processes"]
            if one["process"]["fork"]:
                reports[kind] = (path, one)
    return reports


def test_what_is_copied_is_told_as_growth_that_is_no_leak(seen):
    path, process = seen["write"]
    verdict, forked = process["verdict"], process["memory"]["forked"]
    assert verdict["class"] == "steady", verdict
    assert "no call site grows, but pages from before the fork are copied by" \
        in verdict["sentence"]
    assert any("grow by the copies" in reason for reason in verdict["reasons"])
    assert any("fewer copies" in advice for advice in verdict["advice"])
    rate = (MIB << 20) / SECONDS
    assert 0.7 * rate < -forked["slope_bytes_per_s"] < 1.3 * rate, forked
    assert forked["last_bytes"] < 0.2 * forked["first_bytes"]
    assert not consistency.contradictions_in(path)


def test_what_is_only_read_is_not_copied(seen):
    path, process = seen["read"]
    verdict, forked = process["verdict"], process["memory"]["forked"]
    assert verdict["class"] == "steady", verdict
    assert "nothing grows" in verdict["sentence"]
    assert not any("copies" in reason for reason in verdict["reasons"])
    assert forked["last_bytes"] > 0.9 * (MIB << 20)
    assert not consistency.contradictions_in(path)
