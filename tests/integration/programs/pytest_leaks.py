# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests that leak, each at a line that says so; copied and run by
test_pytest_plugin.py."""
import ctypes
import functools
import gc

import pytest

pytestmark = pytest.mark.limit_growth_per_call("64 B", calls=30, warmup=5)
LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = ctypes.c_void_p
numbers = iter(range(10 ** 9))
kept = []
table = {}


def test_a_list():
    kept.append(bytearray(1024))  # test_a_list leaks


def test_malloc():
    LIBC.malloc(1000)  # test_malloc leaks


def test_cycles_that_nobody_collects(collector_off):
    assert not collector_off
    cycle = [bytearray(500)]  # test_cycles_that_nobody_collects leaks
    cycle.append(cycle)


@pytest.fixture(name="collector_off")
def collector_off_fixture():
    gc.disable()
    yield gc.isenabled()
    gc.enable()


def test_a_table():
    table[next(numbers)] = bytearray(700)  # test_a_table leaks


@functools.lru_cache(maxsize=None)
def remember(key):
    return bytes(900) + str(key).encode()  # test_a_cache leaks


def test_a_cache():
    assert remember(next(numbers))
