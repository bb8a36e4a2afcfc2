# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each system call that the recorder makes fails in turn, by each error that
the kernel may give: the program ends as without us, and what is missing of its
recording is told.

The calls are those of the library's own instructions (fail_calls.c), from its
first to the end of a process that grows, maps, loads, starts a thread and
forks. Of each kind of call the first few fail: each by one error, in the long
form more of them, by every error.
"""
import collections
import concurrent.futures
import errno
import os
import pathlib
import re
import sys
import tempfile

import pytest

from storms import (FILES, LIBRARY, LONG, STORM, dump, is_consistent, only,
                    place_, times)
from conftest import PRELOAD, execute  # noqa: E402

FAIL_CALLS = FILES / "fail_calls"
BLOCKS = 300  # each of a site of its own
ARGV = [STORM, "all", BLOCKS, LIBRARY]
KEPT = BLOCKS + 2  # by site_kept, with those of the thread
FIRST = times(2, 6)  # of each kind of call
ERRORS = ["EPERM", "ENOSYS", "ENOMEM", "EINTR", "EINVAL", "EACCES", "EAGAIN"]
MORE = {"openat": ["ENOENT", "EMFILE", "ENFILE", "EROFS", "ENOSPC", "ELOOP",
                   "EOPNOTSUPP", "EEXIST"],
        "linkat": ["EEXIST", "EXDEV", "EROFS", "ENOENT", "ENOSPC"],
        "fallocate": ["ENOSPC", "EOPNOTSUPP", "EFBIG", "EIO"],
        "ftruncate": ["EFBIG", "EIO"], "madvise": ["EFAULT", "EIO"],
        "read": ["EIO", "EISDIR", "EBADF"], "pread64": ["EIO"],
        "readlinkat": ["ENOENT"], "statfs": ["EIO", "ENOENT"],
        "fstatfs": ["EIO"], "fcntl": ["EMFILE"], "close": ["EIO"]}
TABLE = set(re.findall(
    r"^ +X\((\w+), ", (pathlib.Path(__file__).resolve().parents[2] /
                       "src/base/syscall.h").read_text(encoding="ascii"), re.M))
FORWARDED = {"vfork", "exit_group"}  # the program's own, made by us
# What is said of a process of which nothing was recorded.
SAID = re.compile(rb"^seep: (not recording|nothing recorded|recording)")
assert place_


def names_of_calls():
    """{number: name} of this machine."""
    for path in pathlib.Path("/usr/include").glob("**/asm/unistd_64.h"):
        return {int(number): name for name, number in re.findall(
            r"#define __NR_(\w+) (\d+)", path.read_text(encoding="ascii"))}
    return {}


NAMES = names_of_calls()


def with_failure(number, error, folder, plain=None):
    """Let that call fail; returns the calls and how it ended."""
    log = folder / "log"
    run = execute([FAIL_CALLS, log, number, error, PRELOAD, *ARGV], folder,
                  preload=False, sample=1, SEEP_VERBOSE=1, SEEP_SIZE=16 << 20,
                  SEEP_FLOOR=0)
    if run.status == 77:
        pytest.skip("nothing can be traced here")
    calls = [line.split() for line in log.read_text().splitlines()]
    failed = [NAMES.get(int(call), call) for call, is_it in calls
              if is_it == "1"]
    if plain is not None:
        where = f"call {number}, {failed}: {error}"
        assert (run.status, run.stdout) == (plain.status, plain.stdout), where
        assert is_told(run, failed), (where, run.stderr)
    return [NAMES.get(int(call), call) for call, _ in calls], run


def is_told(run, failed):
    """Is everything there, or is it said that it is not?"""
    told = all(SAID.match(line) for line in run.stderr.splitlines())
    parents = 0
    for path in run.recordings:
        document = is_consistent(dump(path))
        if document["is_fork"]:
            continue
        parents += 1
        whole = only(document, "site_kept")["allocated_count"] == KEPT
        told = told and (whole or document["losses"] != {}
                         or document["inert"] != 0
                         or document["counters"].get("restricted", 0) != 0)
    if parents == 0:  # what asks whether it may be said may have failed
        told = told and (run.stderr != b"" or set(failed) & {
            "fstat", "ppoll", "write"} != set())
    return told


def plan(calls):
    """Which call is to fail by which error."""
    seen = collections.Counter()
    for number, name in enumerate(calls, 1):
        errors = MORE.get(name, []) + ERRORS
        if seen[name] < FIRST:
            one = errors[seen[name] % len(errors)]
            yield from ((number, error) for error in errors
                        if LONG or error == one)
        seen[name] += 1


def test_whichever_call_fails_the_program_goes_on_and_it_is_told(place):
    plain = execute(ARGV)
    assert plain.status == 9
    calls, run = with_failure(0, 0, place)
    assert (run.status, run.stdout) == (plain.status, plain.stdout)
    assert len(calls) > 100
    assert set(calls) - FORWARDED <= TABLE

    def fail(which):
        number, name = which
        with tempfile.TemporaryDirectory(dir=place) as folder:
            try:
                with_failure(number, getattr(errno, name),
                             pathlib.Path(folder), plain)
            except AssertionError as error:
                return f"{name}: {error}"
        return None

    planned = list(plan(calls))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = [fault for fault in pool.map(fail, planned) if fault]
    print(f"{len(planned)} failures of {len(calls)} calls of "
          f"{len(set(calls))} kinds")
    assert not faults, "\n".join([f"{len(faults)} of {len(planned)}:",
                                  *faults[:30]])


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-s"]))
