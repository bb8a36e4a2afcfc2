# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each allocation of each verb fails in turn: it ends with a line that says so,
or with its answer, and never by a signal.

Each alone and with all behind it: of each verb up to MOST of them, closer at
the beginning. Each in a folder of its own: what lies there decides how much
`run` allocates.
"""
import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile

import pytest

from storms import FILES, times, place_
from conftest import SEEP, environment, recordings_in  # noqa: E402
import command_line
from verb_list import PATH, arguments, codes, verbs

FAIL_MALLOC = FILES / "fail_malloc.so"
MOST = times(8, 300)  # of each verb
# What is said of it; of a file of symbols the parent tells what its child, in
# which they are read, found.
LINE = re.compile(rb"^seep: .*(memory|allocate|reader of symbols)", re.M)
LEAK = ("keep = []\n"
        "def remember():\n"
        "    keep.append(bytearray(1 << 16))\n"
        "for _ in range(100):\n"
        "    remember()\n")
# What it tells is what its own children found, of which one fails, too.
OF_CHILDREN = {"doctor"}
WORDS = {"report": ("--no-symbols",)}
assert place_


@pytest.fixture(name="recording", scope="module")
def recording_(tmp_path_factory):
    """One with a few sites."""
    folder = tmp_path_factory.mktemp("memory")
    done = command_line.run(folder, command_line.PYTHON, "-c", LEAK,
                            options=("--quiet", "--exact"))
    assert done.returncode == 0, done.stderr
    path, = recordings_in(folder)
    return path


def run(place, verb, recording, at, *flags):
    """One run in which that allocation fails; 0: none, and counts them."""
    words = [verb, *WORDS.get(verb, ()), *arguments(verb, str(recording))]
    return command_line.seep(
        *words, cwd=place, LD_PRELOAD=str(FAIL_MALLOC), FAIL_AT=str(at),
        PATH=PATH, FAIL_COUNT=str(place / "count"),
        **dict.fromkeys(flags, "1"))


def ends_well(done, plain, verb):
    """By its answer or by an error that is told."""
    if done.returncode < 0 or done.returncode >= 126:
        return False
    if (done.returncode, done.stdout) == (plain.returncode, plain.stdout):
        return True
    if b"\\u{2" in done.stdout:  # libc had no memory for a locale
        return done.returncode == plain.returncode
    return done.returncode in codes(verb) | {plain.returncode} and (
        LINE.search(done.stderr) is not None
        or (verb in OF_CHILDREN and done.stdout != b""))


def spread(count):
    """All of them, or as many: close to each other at first."""
    if count <= MOST:
        return range(1, count + 1)
    return sorted({round(count ** (i / (MOST - 1))) for i in range(MOST)})


@pytest.mark.parametrize("verb", verbs())
def test_whichever_allocation_fails_a_verb_ends_well(place, recording, verb):
    plain = run(place, verb, recording, 0)
    assert plain.returncode in codes(verb) | {0}, plain.stderr
    count = int((place / "count").read_text().split("\n")[0])

    def fail(which):
        at, flags = which
        with tempfile.TemporaryDirectory(dir=place) as folder:
            done = run(pathlib.Path(folder), verb, recording, at, *flags)
            done.stdout = done.stdout.replace(folder.encode(),
                                              str(place).encode())
        if ends_well(done, plain, verb):
            return None
        return (f"{at} {flags}: {done.returncode} {done.stderr[-300:]} "
                f"{done.stdout[:100]}")

    planned = [(at, flags) for at in spread(count)
               for flags in ((), ("FAIL_ON",))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = [fault for fault in pool.map(fail, planned) if fault]
    print(f"{verb}: {count} allocations, {len(planned)} failures")
    assert not faults, "\n".join([f"{len(faults)} of {len(planned)}:",
                                  *faults[:12]])


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-s"]))
