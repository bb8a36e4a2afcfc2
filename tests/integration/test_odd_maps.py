# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that unmap what they did not make, or lock all that is mapped.

Invariant: what README says that they cannot do is tried here, too.
"""
import ctypes
import errno
import resource
import signal

import pytest

from conftest import execute, program, report

BLOCKS = 20000  # of odd_maps
IPC_LOCK = 14
CAPBSET_DROP = 24
LOCKED_MOST = 8 << 20


def few_locked():
    """As a user who may lock 8 MiB; in the child."""
    ctypes.CDLL(None).prctl(CAPBSET_DROP, IPC_LOCK, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (LOCKED_MOST, LOCKED_MOST))


def kept_blocks(run):
    """That were recorded as live."""
    recording, = run.recordings
    process, = report(recording)["processes"]
    assert not any(process["losses"].values()), process["losses"]
    return sum(site["live_count"] for site in process["sites"])


def test_who_unmaps_all_that_is_shared_goes_on_and_is_recorded(tmp_path):
    run = execute([program("odd_maps"), "unmap"], tmp_path, sample=1)

    assert run.seen == execute([program("odd_maps"), "unmap"]).seen
    assert run.status == 0
    assert kept_blocks(run) >= BLOCKS


def test_what_lies_beside_a_recording_goes_with_one_call(tmp_path):
    run = execute([program("odd_maps"), "around"], tmp_path, sample=1)

    assert (run.status, run.stdout) == (0, b"")
    if run.stderr == b"0\n":
        pytest.skip("there is no room beside it")
    assert kept_blocks(run) >= BLOCKS


def test_what_lies_on_both_sides_of_it_goes_too(tmp_path):
    """In a place that is made for it, between two pages."""
    argv = [program("odd_maps"), "around"]
    path, = execute(argv, tmp_path, sample=1).recordings
    size = path.stat().st_size
    path.unlink()

    run = execute([*argv, size], tmp_path, sample=1)

    assert (run.status, run.stdout) == (0, b"")
    if run.stderr != b"2\n":
        pytest.skip("this kernel put it elsewhere")
    assert kept_blocks(run) >= BLOCKS


def test_by_the_system_call_it_is_not_seen(tmp_path):
    """README: nothing stands before that."""
    run = execute([program("odd_maps"), "raw"], tmp_path, sample=1)

    assert run.status == -signal.SIGSEGV


def test_what_is_locked_grows_all_the_same(tmp_path):
    if execute([program("odd_maps"), "lock"]).status != 0:
        pytest.skip("who runs this may lock too little")

    run = execute([program("odd_maps"), "lock"], tmp_path, sample=1,
                  SEEP_SIZE="64MiB")

    assert run.status == 0
    assert kept_blocks(run) >= BLOCKS


def test_a_recording_counts_as_what_is_to_be_locked(tmp_path):
    """README: for that the limit must have room for it."""
    limited = {"popen": {"preexec_fn": few_locked}}

    assert execute([program("odd_maps"), "lock"], **limited).status == 0
    assert execute([program("odd_maps"), "lock"], tmp_path, sample=1,
                   **limited).status == errno.ENOMEM


def test_who_may_lock_too_little_is_not_recorded_and_told_so(tmp_path):
    run = execute([program("odd_maps"), "future"], tmp_path, sample=1,
                  SEEP_VERBOSE=1, popen={"preexec_fn": few_locked})

    assert run.status == 0
    assert b"may not lock so much; raise the limit (ulimit -l)" in run.stderr
    assert not run.recordings
