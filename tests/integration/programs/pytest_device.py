# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests that take memory of a GPU; copied and run by test_pytest_plugin.py."""
import ctypes

import pytest

GIB = 1 << 30
driver = ctypes.CDLL("libcuda.so.1")


@pytest.fixture(scope="module", autouse=True)
def context():
    made = ctypes.c_void_p()
    assert driver.cuInit(0) == 0
    assert driver.cuCtxCreate_v2(ctypes.byref(made), 0, 0) == 0


def take(size):
    block = ctypes.c_uint64()
    assert driver.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)) \
        == 0
    return block


@pytest.mark.limit_device_memory("2 GiB")
def test_one():
    assert driver.cuMemFree_v2(take(GIB)) == 0


@pytest.mark.limit_device_memory("2 GiB")
def test_three():
    block = take(3 * GIB)  # test_three takes
    assert driver.cuMemFree_v2(block) == 0


@pytest.mark.limit_device_memory("2 GiB")
def test_one_after_three():
    assert driver.cuMemFree_v2(take(GIB)) == 0
