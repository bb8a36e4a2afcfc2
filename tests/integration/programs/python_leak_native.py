# SPDX-License-Identifier: LGPL-2.1-or-later
"""Leaks inside of C extensions; see python_leak.py."""
import ctypes
import ctypes.util
import sqlite3
import sys
import weakref

import numpy

from python_leak import Load, Planted, deep_bytes

SQLITE = ctypes.CDLL(ctypes.util.find_library("sqlite3"))
SQLITE.sqlite3_memory_used.restype = ctypes.c_int64
INSERT = "insert into replies values (?, ?)"
TWO_ROWS = "select ? union all select 2"
STATEMENT = bytes(31)  # as large as the object that each cursor has
LISTS_OF_CURSORS = 2  # ours and the connection's


class Sqlite:
    """A line that calls sqlite, whose memory sqlite itself counts."""

    def __init__(self, name, handle):
        self.handle = handle
        self.bytes = 0
        self.planted = Planted(name, self.step, source=__file__,
                               bytes_kept=lambda: self.bytes)

    def step(self, n):
        before = SQLITE.sqlite3_memory_used()
        self.handle(n)
        self.bytes += SQLITE.sqlite3_memory_used() - before


def plant_rows():
    """A database in memory that grows."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.execute("create table replies (number integer, body text)")

    def handle(n):
        database.execute(INSERT, (n, "x" * 900))  # leak: rows
    return Sqlite("rows", handle).planted


def plant_cursors():
    """Cursors that nobody closes, in the middle of their rows."""
    database = sqlite3.connect(":memory:", cached_statements=0)
    kept = []

    def handle(n):
        kept.append(database.execute(TWO_ROWS, (n,)))  # leak: cursors
    sqlite = Sqlite("cursors", handle)

    def bytes_kept():
        own = (kept[0], kept[0].description, weakref.ref(kept[0]), STATEMENT)
        each = sum(deep_bytes(thing, set()) for thing in own)
        return (sqlite.bytes + each * len(kept)
                + LISTS_OF_CURSORS * sys.getsizeof(kept))
    sqlite.planted.bytes_kept = bytes_kept
    return sqlite.planted


def plant_arrays():
    kept = []

    def handle(n):
        kept.append(numpy.full(300, n, dtype="u8"))  # leak: arrays
    return Planted("arrays", handle, kept)


def plant(_seconds, _seed):
    """All of them."""
    return Load([plant_rows(), plant_cursors(), plant_arrays()])
