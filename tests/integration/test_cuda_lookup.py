# SPDX-License-Identifier: LGPL-2.1-or-later
"""dlsym and dlvsym answer as without us, and dlerror tells the same.

From the program, from a library that asks for the next of its own name, from
a plugin with a scope of its own; without a driver, with one that only the
program sees, with one that is gone again, with one that all see.
"""
import os

import pytest

from conftest import PRELOAD, PROGRAMS, execute, program

DRIVER = os.environ.get("SEEP_FAKE_CUDA", "")


def lookups(*words, folder=None, **variables):
    run = execute([program("cuda_lookup"), PROGRAMS, *words], folder,
                  **variables)
    assert run.status == 0, run.stderr
    return run


def test_without_a_driver_nobody_sees_one(folder):
    plain = lookups()
    assert lookups(folder=folder).seen == plain.seen
    for name in (b"cuInit", b"cuMemAlloc_v2", b"cuGetProcAddress_v2"):
        assert b'default "%s": none' % name in plain.stdout
        assert b'next "%s": none' % name in plain.stdout
        assert b'program "%s": none' % name in plain.stdout


def test_what_libc_lacks_is_found_where_another_has_it(folder):
    allocator = PROGRAMS / "odd_frees_allocator.so"
    plain = lookups(LD_PRELOAD=allocator)
    assert lookups(folder=folder,
                   LD_PRELOAD=f"{PRELOAD}:{allocator}").seen == plain.seen
    for where in (b"default", b"program"):
        assert b'%s "free_sized": found' % where in plain.stdout


@pytest.mark.skipif(not DRIVER, reason="no driver of the tests")
def test_a_driver_is_seen_by_whom_it_was_seen(folder):
    plain = lookups(DRIVER)
    assert lookups(DRIVER, folder=folder).seen == plain.seen
    assert b'handle "cuMemAlloc_v2": found' in plain.stdout
    assert b"next of first: second" in plain.stdout
    assert b'plugin "seep_lookup_private": found' in plain.stdout
    assert b'program "seep_lookup_private": none' in plain.stdout
    own = plain.stdout.split(b"-- driver of a plugin")[1].split(b"--")[0]
    assert b'plugin "cuMemAlloc_v2": found' in own
    assert b'program "cuMemAlloc_v2": none' in own
    assert b"own name: its own" in plain.stdout
    assert plain.stdout.count(b"allocate 0\n") == 2


@pytest.mark.skipif(not DRIVER, reason="no driver of the tests")
@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
def test_another_library_before_the_driver_is_met_and_not_circled(folder,
                                                                  first):
    front = PROGRAMS / "libcuda_lookup_front.so"
    plain = lookups(DRIVER, LD_PRELOAD=front)
    order = [PRELOAD, front] if first else [front, PRELOAD]
    assert lookups(DRIVER, folder=folder,
                   LD_PRELOAD=":".join(map(str, order))).seen == plain.seen
    assert b"default 999\n" in plain.stdout
    assert b"default 0\n" in plain.stdout
