# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests whose outcome is neither a pass nor a leak; copied and run by
test_pytest_plugin.py."""
import unittest

import pytest

per_call = pytest.mark.limit_growth_per_call
numbers = iter(range(10 ** 9))
kept = []


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


def test_without_a_limit():
    kept.append(bytearray(10000))
