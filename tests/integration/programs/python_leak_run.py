# SPDX-License-Identifier: LGPL-2.1-or-later
"""Leaks by what runs the code: threads, coroutines; see python_leak.py."""
import asyncio
import concurrent.futures
import ctypes
import queue
import threading

from python_leak import Load, Planted

THREAD_NAME = b"leaky-worker"
PR_SET_NAME = 15


class Pool:
    """Requests that a thread pool handles."""

    def __init__(self):
        self.kept = []
        self.pool = concurrent.futures.ThreadPoolExecutor(4)
        self.waiting = []
        self.planted = Planted("pool", self.step, self.kept, __file__)

    def handle(self, n):
        self.kept.append(("%012d" % n) * 30)  # leak: pool

    def step(self, n):
        self.waiting.append(self.pool.submit(self.handle, n))

    def end_tick(self):
        concurrent.futures.wait(self.waiting)
        self.waiting.clear()


class Loop:
    """Requests that tasks of an event loop handle."""

    def __init__(self):
        self.kept = []
        self.loop = asyncio.new_event_loop()
        self.numbers = []
        self.planted = Planted("asyncio", self.numbers.append, self.kept,
                               __file__)

    async def handle(self, n):
        await asyncio.sleep(0)
        self.kept.append(("%012d" % n) * 30)  # leak: asyncio

    async def handle_all(self, numbers):
        await asyncio.gather(*map(self.handle, numbers))

    def end_tick(self):
        self.loop.run_until_complete(self.handle_all(self.numbers))
        self.numbers.clear()


class Named:
    """A thread that has a name of its own, as the system knows it."""

    def __init__(self):
        self.kept = []
        self.queue = queue.Queue()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()
        self.planted = Planted("thread", self.queue.put, self.kept, __file__)

    def work(self):
        ctypes.CDLL(None).prctl(PR_SET_NAME, THREAD_NAME, 0, 0, 0)
        while True:
            n = self.queue.get()
            self.kept.append(("%012d" % n) * 30)  # leak: thread
            self.queue.task_done()

    def end_tick(self):
        self.queue.join()


def plant_generator():
    """What a generator remembers of all that it was sent."""
    kept = []

    def collect():
        while True:
            n = yield
            kept.append(("%012d" % n) * 30)  # leak: generator

    def delegate():
        yield from collect()
    generator = delegate()
    next(generator)
    return Planted("generator", generator.send, kept, __file__)


def plant_greenlet():
    """Nothing where there are no greenlets."""
    try:
        import greenlet  # pylint: disable=import-outside-toplevel
    except ImportError:
        return []
    kept = []

    def collect(n):
        while True:
            kept.append(("%012d" % n) * 30)  # leak: greenlet
            n = greenlet.getcurrent().parent.switch()
    runner = greenlet.greenlet(collect)
    return [Planted("greenlet", runner.switch, kept, __file__)]


def plant(_seconds, _seed):
    """All of them."""
    sources = [Pool(), Loop(), Named()]

    def end_tick():
        for source in sources:
            source.end_tick()
    return Load([*(source.planted for source in sources), plant_generator(),
                 *plant_greenlet()], end_tick=end_tick)
