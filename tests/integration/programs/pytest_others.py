# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests whose outcome is neither a pass nor a leak; copied and run by
test_pytest_plugin.py."""
import ctypes
import mmap
import platform
import unittest

import pytest

per_call = pytest.mark.limit_growth_per_call
numbers = iter(range(10 ** 9))
kept = []
LIBC = ctypes.CDLL(None)
LIBC.syscall.restype = ctypes.c_void_p
SYS_MMAP = {"x86_64": 9, "aarch64": 222}
PRIVATE_ANONYMOUS = 0x22
ARENA_BYTES = 64 << 20


@per_call("64 B", calls=100)
def test_now_and_then():
    if next(numbers) % 65 == 0:
        kept.append(bytearray(100000))


@per_call("64 B")
def test_that_fails_by_itself():
    assert 1 + 1 == 3


@per_call("64 B")
def test_that_fails_when_repeated():
    kept.append(bytearray(10))
    assert next(numbers) % 10 != 9


@per_call("64 B", call=100)
def test_an_argument_that_is_none():
    pytest.fail("not reached")


@per_call("64 Bi")
def test_a_unit_that_is_none():
    pytest.fail("not reached")


@pytest.mark.limit_growth("1 MiB/minute")
def test_a_time_that_is_none():
    pytest.fail("not reached")


@per_call()
def test_no_limit():
    pytest.fail("not reached")


class TestUnit(unittest.TestCase):
    """Its methods are not pytest's to call."""

    @per_call("64 B")
    def test_a_method_of_unittest(self):
        self.assertTrue(kept is not None)


@per_call("64 B", calls=50)
@pytest.mark.limit_growth("10 MiB/min", seconds=.5, warmup=0)
@pytest.mark.limit_device_memory("1 GiB")
def test_three_limits():
    assert bytearray(100)


@per_call("4 KiB", calls=50)
def test_a_leak_within_its_limit():
    kept.append(bytearray(1024))


def map_unseen(size):
    """An address; no wrapper of the C library's is called."""
    number = SYS_MMAP.get(platform.machine())
    if number is None:
        pytest.skip("the number of mmap is not known here")
    address = LIBC.syscall(
        ctypes.c_long(number), None, ctypes.c_size_t(size),
        ctypes.c_long(mmap.PROT_READ | mmap.PROT_WRITE),
        ctypes.c_long(PRIVATE_ANONYMOUS), ctypes.c_long(-1), ctypes.c_long(0))
    assert address not in (None, 2 ** 64 - 1)
    return address


@per_call("64 B", calls=30, warmup=5)
def test_pages_that_no_hook_sees():
    ctypes.memset(map_unseen(10000), 1, 10000)


@pytest.fixture(name="arena", scope="module")
def arena_fixture():
    return [map_unseen(ARENA_BYTES)]


@per_call("64 B", calls=60, warmup=5)
def test_an_allocator_that_no_hook_sees(arena):
    ctypes.memset(arena[0], 1, 3000)
    arena[0] += 3000


@pytest.mark.limit_growth("1 MiB/min", seconds=1, warmup=.1)
def test_unseen_pages_by_time():
    ctypes.memset(map_unseen(10000), 1, 10000)


@per_call("64 B", calls=30, warmup=5)
def test_an_arena_that_grows_once(arena, calls=iter(range(10 ** 9))):
    if next(calls) == 15:
        ctypes.memset(arena[0], 1, 4 << 20)
        arena[0] += 4 << 20


def test_without_a_limit():
    kept.append(bytearray(10000))
