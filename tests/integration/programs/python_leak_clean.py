# SPDX-License-Identifier: LGPL-2.1-or-later
"""What looks like the leaks of the others and is none; see python_leak.py."""
import asyncio
import collections
import concurrent.futures
import functools
import weakref

from python_leak import STEPS_PER_TICK, TICKS_PER_SECOND, Load, Record


def cache(steps):
    """Full after a third of the run; then it evicts."""
    @functools.lru_cache(maxsize=steps // 3)
    def look_up(n):
        return ("%012d" % n) * 30
    return look_up


def queue(steps):
    """Each reply is in flight for a twentieth of the run."""
    flying = collections.deque(maxlen=steps // 20)

    def handle(n):
        flying.append({"number": n, "body": ("%012d" % n) * 30})
    return handle


def pool(_steps):
    """Buffers that are taken and put back."""
    free = []

    def handle(n):
        buffer = free.pop() if free else bytearray(n % 300 + 300)
        buffer[:12] = b"%012d" % (n % 10 ** 12)
        free.append(buffer)
    return handle


def generators(_steps):
    """Each one ends, with all that it made."""
    def produce(n):
        made = []
        for index in range(10):
            made.append(("%012d" % (n + index)) * 10)
            yield made[-1]

    def handle(n):
        return sum(map(len, produce(n)))
    return handle


def cycles(_steps):
    """Garbage that waits for the collector."""
    def handle(n):
        record = Record(n)
        record.itself = record
        record.body = ("%012d" % n) * 10
    return handle


def weak(_steps):
    """A table that forgets what nobody holds."""
    table = weakref.WeakValueDictionary()

    def handle(n):
        record = table[n] = Record(n)
        return record
    return handle


class Handlers:
    """Tasks and futures that end."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.pool = concurrent.futures.ThreadPoolExecutor(4)
        self.numbers = []

    async def handle(self, n):
        body = ("%012d" % n) * 30
        await asyncio.sleep(0)
        return len(body)

    async def handle_all(self):
        await asyncio.gather(*map(self.handle, self.numbers))

    def end_tick(self):
        self.loop.run_until_complete(self.handle_all())
        assert all(self.pool.map(lambda n: len(("%012d" % n) * 30),
                                 self.numbers))
        self.numbers.clear()


def plant(seconds, _seed):
    """All of them, and what only an import keeps."""
    steps = int(seconds * TICKS_PER_SECOND) * STEPS_PER_TICK
    handlers = Handlers()
    return Load(steps=[handlers.numbers.append,
                       *(make(steps) for make in (cache, queue, pool,
                                                  generators, cycles, weak))],
                end_tick=handlers.end_tick)
