# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests that keep nothing, of many kinds; copied and run by
test_pytest_plugin.py."""
import asyncio
import collections
import ctypes
import functools
import gc
import json
import logging
import re
import sys
import threading
import warnings
import weakref

import pytest

pytestmark = pytest.mark.limit_growth_per_call("64 B", calls=60, warmup=10)
few = pytest.mark.limit_growth_per_call("64 B", calls=20, warmup=5)
LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = ctypes.c_void_p
LIBC.free.argtypes = [ctypes.c_void_p]
numbers = iter(range(10 ** 9))


def test_lists():
    assert len([bytearray(1000) for _ in range(20)]) == 20


@functools.lru_cache(maxsize=10)
def remembered(key):
    return bytes(500) + str(key).encode()


def test_a_cache_with_a_bound():
    assert remembered(next(numbers))


@functools.lru_cache(maxsize=40)
def remembered_longer(key):
    return bytes(500) + str(key).encode()


def test_a_cache_that_fills_in_the_first_round():
    assert remembered_longer(next(numbers))


def test_names_are_interned():
    assert sys.intern(f"name {next(numbers)}")


def test_an_import_at_the_first_call():
    import decimal  # pylint: disable=import-outside-toplevel
    assert decimal.Decimal(1) / 3


@few
def test_json():
    assert json.loads(json.dumps({str(i): [i] * 5 for i in range(50)}))


def test_a_pattern():
    assert re.sub(r"(\w)(\d+)", r"\2", "a1 b22 c333") == "1 22 333"


def test_an_exception():
    with pytest.raises(ValueError):
        int("x" * 100)


def test_a_cycle_that_is_collected():
    cycle = [bytearray(500)]
    cycle.append(cycle)
    assert gc.isenabled()


def test_a_thread():
    thread = threading.Thread(target=bytearray, args=(5000,))
    thread.start()
    thread.join()


def test_log_records():
    logging.getLogger("seep").warning("number %d", next(numbers))


def test_log_records_that_are_looked_at(caplog):
    logging.getLogger("seep").warning("number %d", next(numbers))
    assert len(caplog.records) == 1


def test_warnings():
    warnings.warn("old", DeprecationWarning)


def test_output():
    print("x" * 200)
    print("y" * 200, file=sys.stderr)


def test_output_that_is_looked_at(capsys):
    print("x" * 200)
    assert capsys.readouterr().out == "x" * 200 + "\n"


def test_output_that_nobody_looks_at(capsys):
    print("x" * 200)
    assert capsys


def test_a_file(tmp_path):
    # Not as text: the codec is looked up by a new name each time, and CPython's
    # cache of methods keeps two of three of those, 67 bytes each, up to 4,096.
    (tmp_path / "file").write_bytes(b"x" * 3000)
    assert len((tmp_path / "file").read_bytes()) == 3000


def test_malloc_and_free():
    LIBC.free(LIBC.malloc(1000))


class TestRing:
    """Methods are repeated on one object."""
    ring = collections.deque(maxlen=10)

    @pytest.mark.parametrize("size", [10, 1000])
    def test_a_ring(self, size):
        self.ring.append(bytearray(size))


def test_a_table_that_is_emptied(table):
    for number in range(100):
        table[number] = str(number)
    table.clear()


@pytest.fixture(name="table")
def table_fixture():
    return {}


class Node:
    """Something to refer to."""


def test_weak_references():
    node = Node()
    assert weakref.ref(node)() is node


def test_a_class():
    assert type("Made", (), {"x": 5})().x == 5


# reprlib's set of what it prints settles after some hundred loops: 57 bytes
# each, until then up to 200 a call.
@pytest.mark.limit_growth_per_call("1 KiB", calls=20, warmup=5)
def test_an_event_loop():
    async def answer():
        await asyncio.sleep(0)
        return 42
    assert asyncio.run(answer()) == 42


@pytest.mark.limit_growth("1 MiB/min", seconds=.5, warmup=.1)
def test_by_time():
    assert bytearray(10000)
