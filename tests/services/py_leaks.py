# SPDX-License-Identifier: LGPL-2.1-or-later
"""Services in Python that leak; FUNCTIONS names the line that keeps.

Invariant: what a kind calls kept is reachable, or lost, to the end of work.
"""
import asyncio
import concurrent.futures
import ctypes
import functools
import gc
import logging
import logging.handlers
import queue
import sqlite3
import sys
import threading
import types
import warnings
import weakref

import numpy

from py_base import KIB, Service, text

RESULTS = []


class Leak(Service):
    """It keeps what it should not."""
    LEAKS = True


class DictCache(Leak):
    """A cache by prompt; no prompt comes twice."""
    NAME, FUNCTIONS = "py-dict-cache", "remember_prompt"

    def __init__(self, run):
        super().__init__(run)
        self.cache = {}

    def remember_prompt(self, run):
        prompt = run.random.getrandbits(60)
        reply = text(run, 1 * KIB, 4 * KIB)
        self.cache[prompt] = reply
        run.kept(len(reply) + 100, 2)

    def request(self, run):
        self.remember_prompt(run)


class Closures(Leak):
    """Each request registers a callback that holds its context."""
    NAME, FUNCTIONS = "py-closures", "register_callback"

    def __init__(self, run):
        super().__init__(run)
        self.registry = []

    def register_callback(self, run):
        context = {"user": run.random.random(), "tokens": [0] * 150}
        self.registry.append(lambda: context)
        run.kept(1750, 4)

    def request(self, run):
        self.register_callback(run)


class LruNone(Leak):
    """functools.lru_cache without a bound."""
    NAME, FUNCTIONS = "py-lru-none", "embed"

    def __init__(self, run):
        super().__init__(run)

        @functools.lru_cache(maxsize=None)
        def embed(number):
            return (b"%08d" % (number % 99999999)) * 500
        self.embed = embed

    def tick(self, run):
        for _ in range(run.due(40)):
            run.kept(len(self.embed(run.random.getrandbits(60))) + 100, 3)


class Tracebacks(Leak):
    """Failures are kept to be shown, and with them all locals."""
    NAME, FUNCTIONS = "py-tracebacks", "parse_body|note_failure"

    def __init__(self, run):
        super().__init__(run)
        self.failures = []

    def parse_body(self, run):
        body = text(run, 10 * KIB, 30 * KIB)
        if run.random.random() < 0.05:
            run.kept(len(body) + 800, 4)
            raise ValueError("not a body")
        return len(body)

    def note_failure(self, run):
        try:
            self.parse_body(run)
        except ValueError as error:
            self.failures.append(error)

    def request(self, run):
        self.note_failure(run)


class NeverAwaited(Leak):
    """Coroutines are made, held, and never awaited."""
    NAME, FUNCTIONS = "py-never-awaited", "start_task"

    def __init__(self, run):
        super().__init__(run)
        warnings.simplefilter("ignore")
        self.pending = []

    def start_task(self, run):
        async def notify(body):
            return len(body)
        body = text(run, 2 * KIB, 5 * KIB)
        self.pending.append(notify(body))
        run.kept(len(body) + 300, 3)

    def tick(self, run):
        for _ in range(run.due(30)):
            self.start_task(run)


class Tasks(Leak):
    """Tasks wait for a reply that never comes."""
    NAME, FUNCTIONS = "py-tasks", "ask_peer|wait_reply"

    def __init__(self, run):
        super().__init__(run)
        self.loop = asyncio.new_event_loop()
        self.tasks = set()

    async def wait_reply(self, run):
        question = text(run, 1 * KIB, 3 * KIB)
        run.kept(len(question) + 2 * KIB, 8)
        await self.loop.create_future()
        return question

    def ask_peer(self, run):
        task = self.loop.create_task(self.wait_reply(run))
        task._log_destroy_pending = False
        self.tasks.add(task)

    def tick(self, run):
        for _ in range(run.due(25)):
            self.ask_peer(run)
        self.loop.run_until_complete(asyncio.sleep(0))


class LogBuffer(Leak):
    """A handler that holds records until an error comes; none comes."""
    NAME, FUNCTIONS = "py-log-buffer", "log_request"

    def __init__(self, run):
        super().__init__(run)
        self.logger = logging.Logger("requests")
        self.logger.addHandler(logging.handlers.MemoryHandler(
            1 << 40, logging.CRITICAL, flushOnClose=False))

    def log_request(self, run):
        self.logger.info("request %s", text(run, 200, 700))
        run.kept(1600, 6)

    def request(self, run):
        self.log_request(run)


class Arrays(Leak):
    """Every batch's output is held in a list."""
    NAME, FUNCTIONS, EVEN = "py-arrays", "encode_batch", True

    def __init__(self, run):
        super().__init__(run)
        self.outputs = []

    def encode_batch(self, run):
        batch = numpy.ones((16, 768), dtype=numpy.float32)
        batch = batch * run.random.random()
        self.outputs.append(batch)
        run.kept(batch.nbytes)

    def tick(self, run):
        for _ in range(run.due(4)):
            self.encode_batch(run)


class Concatenate(Leak):
    """A history that is copied to a longer one each time."""
    NAME, FUNCTIONS = "py-concatenate", "extend_history"

    def __init__(self, run):
        super().__init__(run)
        self.history = numpy.zeros(0, dtype=numpy.float32)

    def extend_history(self, run):
        more = numpy.ones(9000, dtype=numpy.float32)
        self.history = numpy.concatenate([self.history, more])
        run.kept(more.nbytes)

    def tick(self, run):
        for _ in range(run.due(4)):
            self.extend_history(run)


class GlobalList(Leak):
    """Results in a list of the module."""
    NAME, FUNCTIONS = "py-global-list", "collect_result"

    def collect_result(self, run):
        number = run.random.getrandbits(60)
        RESULTS.append({"id": number, "label": "label-%d" % number,
                        "scores": [run.random.random() for _ in range(10)]})
        run.kept(900, 14)

    def request(self, run):
        self.collect_result(run)


class ThreadLocals(Leak):
    """Each thread of a pool has its own history."""
    NAME, FUNCTIONS = "py-thread-locals", "note_step"

    def __init__(self, run):
        super().__init__(run)
        self.local = threading.local()
        self.pool = concurrent.futures.ThreadPoolExecutor(4)

    def note_step(self, step):
        if not hasattr(self.local, "history"):
            self.local.history = []
        self.local.history.append((step, b"s" * 3000 + b"%d" % step))

    def tick(self, run):
        for _ in range(run.due(35)):
            self.pool.submit(self.note_step, run.tick).result()
            run.kept(3150, 2)


class Finalizers(Leak):
    """What a finalizer needs is held while the object lives: for ever."""
    NAME, FUNCTIONS = "py-finalizers", "track_tensor"

    class Tensor:
        """It can be referred to weakly."""

    def __init__(self, run):
        super().__init__(run)
        self.alive = []

    def track_tensor(self, run):
        tensor = self.Tensor()
        buffer = text(run, 3 * KIB, 6 * KIB)
        weakref.finalize(tensor, len, buffer)
        self.alive.append(tensor)
        run.kept(len(buffer) + 400, 5)

    def tick(self, run):
        for _ in range(run.due(20)):
            self.track_tensor(run)


class Buffers(Leak):
    """Buffers for a library of C, kept because it might still read them."""
    NAME, FUNCTIONS, EVEN = "py-ctypes", "make_buffer", True

    def __init__(self, run):
        super().__init__(run)
        self.buffers = []

    def make_buffer(self, run):
        buffer = ctypes.create_string_buffer(20000)
        self.buffers.append(buffer)
        run.kept(len(buffer) + 200, 2)

    def tick(self, run):
        for _ in range(run.due(10)):
            self.make_buffer(run)


class Futures(Leak):
    """Results of a pool of threads are held by their futures."""
    NAME, FUNCTIONS = "py-futures", "classify|submit_job"

    def __init__(self, run):
        super().__init__(run)
        self.pool = concurrent.futures.ThreadPoolExecutor(2)
        self.futures = []

    @staticmethod
    def classify(number):
        return [number + index / 7 for index in range(100)]

    def submit_job(self, run):
        self.futures.append(self.pool.submit(
            self.classify, run.random.random()))
        run.kept(4800, 105)

    def tick(self, run):
        for _ in range(run.due(25)):
            self.submit_job(run)


class ByteArray(Leak):
    """A protocol's log, always longer."""
    NAME, FUNCTIONS = "py-bytearray", "append_frame"

    def __init__(self, run):
        super().__init__(run)
        self.log = bytearray()

    def append_frame(self, run):
        frame = text(run, 1 * KIB, 3 * KIB)
        self.log += frame
        run.kept(len(frame))

    def request(self, run):
        self.append_frame(run)


class Cycles(Leak):
    """Cycles, and the collector is off because of its pauses."""
    NAME, FUNCTIONS = "py-cycles", "link_nodes"

    def __init__(self, run):
        super().__init__(run)
        gc.disable()

    def link_nodes(self, run):
        parent = {"state": text(run, 1 * KIB, 3 * KIB)}
        child = {"parent": parent}
        parent["child"] = child
        run.kept(2 * KIB + 470, 3)

    def tick(self, run):
        for _ in range(run.due(60)):
            self.link_nodes(run)


class Lender(Leak):
    """Much churn of small dicts; another line keeps a third of its own."""
    NAME, FUNCTIONS = "py-lender", "remember_row"

    def __init__(self, run):
        super().__init__(run)
        self.rows = []

    @staticmethod
    def churn():
        for index in range(60):
            row = {"a": index, "b": index}
            row["c"] = row["a"]

    def remember_row(self, run):
        for index in range(3):
            row = {"id": index, "key": run.tick + index * 0.5}
            if index == 0:
                self.rows.append(row)
                run.kept(290, 3)

    def request(self, run):
        self.churn()
        for _ in range(4):
            self.remember_row(run)


class MemoryTable(Leak):
    """Rows in a data base that is in memory."""
    NAME, FUNCTIONS = "py-sqlite", "store_row"

    def __init__(self, run):
        super().__init__(run)
        self.database = sqlite3.connect(":memory:")
        self.database.execute("create table rows(id integer, body blob)")

    def store_row(self, run):
        body = text(run, 1 * KIB, 3 * KIB)
        self.database.execute("insert into rows values(?, ?)",
                              (run.requests, body))
        run.kept(len(body))

    def request(self, run):
        self.store_row(run)


class Bursts(Leak):
    """One tenant's requests come in bursts, and are remembered."""
    NAME, FUNCTIONS = "py-bursts", "remember_tenant"

    def __init__(self, run):
        super().__init__(run)
        self.prompts = []
        draw = run.random
        self.starts = [int((part + draw.random() * 0.7) / 9 * run.tick_count)
                       for part in range(9)]

    def remember_tenant(self, run):
        prompt = text(run, 4 * KIB, 12 * KIB)
        self.prompts.append({"prompt": prompt})
        run.kept(len(prompt) + 250, 2)

    def tick(self, run):
        length = run.tick_count // 40
        if any(0 <= run.tick - start < length for start in self.starts):
            for _ in range(run.due(70)):
                self.remember_tenant(run)


class Late(Leak):
    """A feature is switched on at 35 % of the run."""
    NAME, FUNCTIONS = "py-late-35", "explain_answer"

    def __init__(self, run):
        super().__init__(run)
        self.answers = []

    def explain_answer(self, run):
        answer = [text(run, 500, 1500) for _ in range(3)]
        self.answers.append(answer)
        run.kept(3 * KIB + 200, 4)

    def tick(self, run):
        if run.share >= 0.35:
            for _ in range(run.due(40)):
                self.explain_answer(run)


class Job(Leak):
    """A job, ten times, that leaves an index of its own."""
    NAME, FUNCTIONS = "py-job", "index_rows"

    def __init__(self, run):
        super().__init__(run)
        self.indexes = []

    def index_rows(self, run):
        rows = [text(run, 1 * KIB, 3 * KIB) for _ in range(1500)]
        self.indexes.append(rows[::5])
        run.kept(300 * 2 * KIB, 300)

    def tick(self, run):
        if run.part_begins(10):
            self.index_rows(run)


class SlowConsumer(Leak):
    """Thirty a second go in, eighteen come out."""
    NAME, FUNCTIONS = "py-slow-consumer", "enqueue"

    def __init__(self, run):
        super().__init__(run)
        self.waiting = queue.Queue()

    def enqueue(self, run):
        item = text(run, 2 * KIB, 10 * KIB)
        self.waiting.put(item)
        run.kept(len(item))

    def tick(self, run):
        for _ in range(run.due(30)):
            self.enqueue(run)
        for _ in range(run.due(18)):
            run.kept(-len(self.waiting.get()), -1)


class Metrics(Leak):
    """A series of small tuples."""
    NAME, FUNCTIONS = "py-metrics", "record_metric"

    def __init__(self, run):
        super().__init__(run)
        self.series = []

    def record_metric(self, run):
        self.series.append((run.random.random(), run.requests * 1.5,
                            {"status": 200}))
        run.kept(360, 5)

    def request(self, run):
        self.record_metric(run)
        self.record_metric(run)


class Plugins(Leak):
    """Each reload makes a module of a new name."""
    NAME, FUNCTIONS = "py-plugins", "load_plugin"
    SOURCE = "\n".join(
        f"def rule_{i}(row, limit={i}):\n    return row.get('k{i}', limit)"
        for i in range(40))

    def load_plugin(self, run):
        name = f"plugin_{run.tick}"
        module = types.ModuleType(name)
        exec(compile(self.SOURCE, name, "exec"), module.__dict__)
        sys.modules[name] = module
        run.kept(40 * KIB, 400)

    def tick(self, run):
        for _ in range(run.due(3)):
            self.load_plugin(run)


class Streams(Leak):
    """Replies are streamed; clients go away, the generators stay."""
    NAME, FUNCTIONS = "py-streams", "start_stream|stream_tokens"

    def __init__(self, run):
        super().__init__(run)
        self.streams = []

    @staticmethod
    def stream_tokens(run):
        tokens = [run.random.random() for _ in range(80)]
        run.kept(3 * KIB, 83)
        yield from tokens

    def start_stream(self, run):
        stream = self.stream_tokens(run)
        next(stream)
        self.streams.append(stream)

    def tick(self, run):
        for _ in range(run.due(30)):
            self.start_stream(run)
