# SPDX-License-Identifier: LGPL-2.1-or-later
"""Services in Python that do not leak.

Invariant: what a kind holds has a bound that it has reached before the run
ends, or goes again.
"""
import asyncio
import collections
import functools
import importlib
import json
import logging
import logging.handlers
import math
import sqlite3

import numpy

from py_base import KIB, Service, text

MODULES = ("decimal", "fractions", "xml.etree.ElementTree", "email.parser",
           "unittest.mock", "http.client", "csv", "difflib", "html.parser",
           "tarfile", "zipfile", "ipaddress", "statistics", "textwrap",
           "calendar", "optparse", "pdb", "doctest", "xmlrpc.client",
           "numpy.polynomial", "numpy.ma", "ftplib", "imaplib", "smtplib")


class LruEarly(Service):
    """functools.lru_cache, full after a share of the run."""
    NAME, SHARE = "py-lru-20", 0.2

    def __init__(self, run):
        super().__init__(run)
        most = int(run.tick_count * 5 * self.SHARE)

        @functools.lru_cache(maxsize=most)
        def look_up(number):
            return (b"%08d" % (number % 99999999)) * 300
        self.look_up = look_up

    def request(self, run):
        self.look_up(run.random.getrandbits(60))


class LruLate(LruEarly):
    """It fills in the last third."""
    NAME, SHARE = "py-lru-70", 0.7


class Aged(Service):
    """Entries of a dict live a tenth of the run."""
    NAME = "py-aged"

    def __init__(self, run):
        super().__init__(run)
        self.entries = {}

    def store(self, run):
        key = run.random.getrandbits(60)
        self.entries[key] = (run.tick, text(run, 2 * KIB, 6 * KIB))

    def request(self, run):
        self.store(run)

    def tick(self, run):
        oldest = run.tick - run.tick_count // 10
        for key in [key for key, (tick, _) in zip(
                self.entries, self.entries.values()) if tick < oldest][:50]:
            del self.entries[key]


class Ring(Service):
    """The last thousand replies."""
    NAME = "py-ring"

    def __init__(self, run):
        super().__init__(run)
        self.last = collections.deque(maxlen=1000)

    def request(self, run):
        self.last.append({"body": text(run, 2 * KIB, 6 * KIB)})


class ArrayChurn(Service):
    """Products of arrays, none of which stays."""
    NAME = "py-array-churn"

    def request(self, run):
        batch = numpy.ones((16, 768), dtype=numpy.float32)
        (batch * run.random.random()).sum()


class JsonChurn(Service):
    """Documents are read, changed and written."""
    NAME = "py-json-churn"

    def request(self, run):
        rows = [{"id": i, "name": "n%d" % i} for i in range(40)]
        json.loads(json.dumps(rows))


class Imports(Service):
    """Modules are imported when they are first needed, to half of the run."""
    NAME = "py-imports"

    def tick(self, run):
        if run.share < 0.5 and run.part_begins(2 * len(MODULES)):
            part = run.tick * 2 * len(MODULES) // run.tick_count
            importlib.import_module(MODULES[part % len(MODULES)])


class Collected(Service):
    """Cycles, which the collector finds."""
    NAME = "py-collected"

    def link_nodes(self, run):
        parent = {"state": text(run, 500, 2000)}
        parent["child"] = {"parent": parent}

    def request(self, run):
        self.link_nodes(run)
        self.link_nodes(run)


class Reload(Service):
    """Twelve reloads, each of which lets go of the model before it."""
    NAME = "py-reload"

    def __init__(self, run):
        super().__init__(run)
        self.layers = []

    def load_model(self):
        self.layers = []
        self.layers = [numpy.ones(100000, dtype=numpy.float32)
                       for _ in range(40)]

    def tick(self, run):
        if run.part_begins(12):
            self.load_model()


class OneOff(Service):
    """A vocabulary is loaded at 40 % of the run."""
    NAME = "py-one-off"

    def __init__(self, run):
        super().__init__(run)
        self.words = {}

    def load_vocabulary(self):
        self.words = {f"word-{i}": i for i in range(60000)}

    def tick(self, run):
        if run.tick == run.tick_count * 2 // 5:
            self.load_vocabulary()


class Quiet(Service):
    """Nobody asks it anything."""
    NAME = "py-quiet"

    def load(self, _run):
        return 0


class Batch(Service):
    """Rows are collected, and let go when they are written: eight times."""
    NAME = "py-batch"

    def __init__(self, run):
        super().__init__(run)
        self.rows = []

    def add_row(self, run):
        self.rows.append({"body": text(run, 1 * KIB, 4 * KIB)})

    def request(self, run):
        self.add_row(run)

    def tick(self, run):
        if run.part_begins(8):
            self.rows.clear()


class Daily(Service):
    """As many are in flight as the load of a day and a half has it."""
    NAME = "py-daily"

    def __init__(self, run):
        super().__init__(run)
        self.by_tick = collections.defaultdict(list)

    def load(self, run):
        return int(5 + 4 * math.sin(run.share * 3 * math.pi - 1))

    def request(self, run):
        life = int(run.random.expovariate(1 / (run.tick_count / 25)))
        self.by_tick[run.tick + 1 + life].append(
            text(run, 4 * KIB, 16 * KIB))

    def tick(self, run):
        self.by_tick.pop(run.tick, None)


class Awaited(Service):
    """Tasks that end, and are awaited."""
    NAME = "py-awaited"

    def __init__(self, run):
        super().__init__(run)
        self.loop = asyncio.new_event_loop()

    async def ask_peer(self, run):
        question = text(run, 1 * KIB, 3 * KIB)
        await asyncio.sleep(0)
        return len(question)

    async def ask_all(self, run):
        await asyncio.gather(*(self.ask_peer(run) for _ in range(4)))

    def tick(self, run):
        self.loop.run_until_complete(self.ask_all(run))


class LogFlushed(Service):
    """A handler that holds 2000 records, then lets go of all."""
    NAME = "py-log-flushed"

    def __init__(self, run):
        super().__init__(run)
        self.logger = logging.Logger("requests")
        self.logger.addHandler(logging.handlers.MemoryHandler(
            2000, logging.CRITICAL, logging.NullHandler()))

    def request(self, run):
        self.logger.info("request %s", text(run, 200, 700))


class Burst(Service):
    """A large answer at a tenth of the run; its holes stay."""
    NAME = "py-burst"

    def __init__(self, run):
        super().__init__(run)
        self.index = []

    def answer(self, run):
        rows = [{"id": i, "body": text(run, 200, 900)} for i in range(20000)]
        self.index = [row["body"] for row in rows[::40]]

    def tick(self, run):
        if run.tick == run.tick_count // 10:
            self.answer(run)


class BoundedTable(Service):
    """As many rows come as are deleted."""
    NAME = "py-sqlite-bounded"

    def __init__(self, run):
        super().__init__(run)
        self.database = sqlite3.connect(":memory:")
        self.database.execute("create table rows(id integer primary key,"
                              " body blob)")

    def request(self, run):
        self.database.execute("insert into rows values(?, ?)",
                              (run.requests, text(run, 1 * KIB, 3 * KIB)))
        self.database.execute("delete from rows where id <= ?",
                              (run.requests - 1500,))
