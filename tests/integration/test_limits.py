# SPDX-License-Identifier: LGPL-2.1-or-later
"""Limits of memory: the same outcome as without seep, or nothing is recorded
and it is said.

Invariant: what is limited is the program alone, behind `seep run`.
"""
import json
import os
import random
import subprocess

import pytest

from command_line import run, seep
from conftest import (LONG, PRELOAD, SEEP, dump, environment, program,
                      recordings_in)

SMALL = 6  # MiB, beside four threads


def limited(folder, limit, mib=SMALL, *more, options=()):
    """(outcome plain, outcome under `seep run`, what that said)"""
    argv = ["bash", "-c", f"ulimit {limit} && exec \"$@\"", "bash",
            program("limited"), str(mib), *map(str, more)]
    plain = subprocess.run(argv, capture_output=True, timeout=120,
                           env=environment(), check=False)
    seen = run(folder, *argv, options=("--no-report", *options))
    return ((plain.returncode, plain.stdout), (seen.returncode, seen.stdout),
            seen.stderr.decode())


@pytest.mark.parametrize("limit", ["-v 24000", "-v 40000", "-v 100000",
                                   "-d 20000", "-d 30000", "-d 90000"])
def test_under_a_low_limit_nothing_is_taken_and_it_is_said(tmp_path, limit):
    plain, seen, said = limited(tmp_path, limit)

    assert plain == (0, b"all of it\n")
    assert seen == plain
    what = "address space (ulimit -v)" if "-v" in limit else \
        "data (ulimit -d)"
    assert f"the limit of {what} leaves no room to record" in said
    assert "too little to be sampled" not in said
    assert "recorded" not in said


def test_under_a_limit_a_recording_is_smaller(tmp_path):
    plain, seen, said = limited(tmp_path, "-v 400000")

    assert seen == plain == (0, b"all of it\n")
    recording, = recordings_in(tmp_path)
    assert recording.stat().st_size <= 400000 * 1024 / 16


def around(need):
    """Limits in steps of 10 MiB; of the short form three that leave little."""
    steps = range(need - 10, need + 60, 10)
    return steps if LONG else random.Random(os.getpid()).sample(steps, 3)


@pytest.mark.parametrize("how", ["-v", "-d", "as", "data"])
@pytest.mark.parametrize("options", [(), ("--exact",)])
def test_around_what_a_program_needs_the_outcome_is_the_same(tmp_path, how,
                                                             options):
    for need in (250, 1040):
        for limit in around(need):
            plain, seen, _ = limited(
                tmp_path, f"{how} {limit * 1024}" if how[0] == "-" else
                "-c 0", need, *(() if how[0] == "-" else (how, limit)),
                options=options)
            assert seen == plain, (need, limit)
        for recording in recordings_in(tmp_path):
            dump(recording, "--no-symbols")
            recording.unlink()


def test_a_recording_that_gave_way_says_so(tmp_path):
    plain, seen, _ = limited(tmp_path, "-c 0", 250, "as", 258)

    assert seen == plain == (0, b"all of it\n")
    recording, = recordings_in(tmp_path)
    done = seep("report", recording)
    assert b"recorded until a limit of its own" in done.stdout


def test_the_doctor_says_which_limit_it_is(tmp_path):
    done = subprocess.run(
        ["bash", "-c", f"ulimit -v 120000 && exec {SEEP} doctor --json "
         f"-o {tmp_path}/"], capture_output=True, timeout=120, check=False,
        env=environment() | {"SEEP_PRELOAD": str(PRELOAD)})

    found = {check["check"]: check
             for check in json.loads(done.stdout)["checks"]}
    assert found["limits"]["level"] == "no"
    assert "address space (ulimit -v 120000)" in found["limits"]["reason"]
    assert "ulimit -v" in found["limits"]["remedy"]
