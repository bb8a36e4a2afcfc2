# SPDX-License-Identifier: LGPL-2.1-or-later
"""A service in Python that leaks, or only looks as if it did.

    py_service.py KIND SECONDS SEED END

END is how it goes: kill (as the OOM killer ends it), return (main's locals
hold what is kept), exit (sys.exit in the midst of it), sigterm (handled, then
returned from main), worker (a worker of multiprocessing does it all), pytest
(one test does it all).

Before it ends it writes one line of JSON: what it kept, and when.
Invariant: what is kept depends on the arguments only; a tick that is late is
made up for.
"""
import json
import os
import random
import signal
import sys
import time

TICKS_PER_SECOND = 20
PARTS = 50


class Run:
    """How far it is, and what it kept."""

    def __init__(self, seconds, seed):
        self.tick_count = int(seconds * TICKS_PER_SECOND)
        self.tick = 0
        self.requests = 0
        self.random = random.Random(seed)
        self.bytes = 0
        self.blocks = 0
        self.kept_by_part = [0] * PARTS
        self.requests_by_part = [0] * PARTS
        self.noted = 0

    @property
    def share(self):
        """Of the run, that is past."""
        return self.tick / self.tick_count

    def due(self, per_second):
        """How many of what comes evenly come in this tick."""
        per_tick = per_second / TICKS_PER_SECOND
        return int(per_tick * (self.tick + 1)) - int(per_tick * self.tick)

    def part_begins(self, count):
        """Is it the first tick of one of so many equal parts?"""
        return (self.tick == 0 or self.tick * count // self.tick_count
                != (self.tick - 1) * count // self.tick_count)

    def kept(self, size, blocks=1):
        """So much stays."""
        self.bytes += size
        self.blocks += blocks

    def note(self):
        """At the end of a tick."""
        part = self.tick * PARTS // self.tick_count
        self.kept_by_part[part] = self.bytes
        self.requests_by_part[part] = self.requests


def serve(number):
    """What every request does: nothing of it stays."""
    body = {"id": number, "text": "x" * 300, "scores": [0.5] * 20}
    return len(json.dumps(body))


def work(run, service):
    """All ticks of a run; a service is asked for each request and tick."""
    start = time.monotonic()
    for run.tick in range(run.tick_count):
        then = start + run.tick / TICKS_PER_SECOND
        time.sleep(max(0, then - time.monotonic()))
        for _ in range(service.load(run)):
            serve(run.random.randrange(1 << 40))
            service.request(run)
            run.requests += 1
        service.tick(run)
        run.note()
    then = start + run.tick_count / TICKS_PER_SECOND
    time.sleep(max(0, then - time.monotonic()))


def tell(run, kind):
    """The truth, without a buffer that a kill would lose."""
    truth = {
        "pid": os.getpid(), "leaks": kind.LEAKS, "functions": kind.FUNCTIONS,
        "even": kind.EVEN, "seconds": run.tick_count / TICKS_PER_SECOND,
        "kept_bytes": run.bytes, "kept_blocks": run.blocks,
        "kept_by_part": run.kept_by_part,
        "requests_by_part": run.requests_by_part, "requests": run.requests}
    os.write(1, json.dumps(truth).encode() + b"\n")


def live(name, seconds, seed, end):
    """One life of a service; what it keeps goes when this returns."""
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(True))
    run = Run(seconds, seed)
    kind = kinds(name)[name]
    service = kind(run)
    work(run, service)
    tell(run, kind)
    if end == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if end == "exit":
        sys.exit(0)
    if end == "sigterm":
        os.kill(os.getpid(), signal.SIGTERM)
        while not told:
            time.sleep(0.01)


def kinds(name):
    """{name: class} of the module that has the kind of that name."""
    if name.startswith("onnx-"):
        import py_onnx as module
    else:
        import py_clean
        import py_leaks
        module = py_leaks if name in named(py_leaks) else py_clean
    return named(module)


def named(module):
    """Its classes, by the name that each has."""
    return {value.NAME: value for value in vars(module).values()
            if isinstance(value, type) and getattr(value, "NAME", None)}


def live_in_worker(*arguments):
    """As a worker of a pool would."""
    import multiprocessing
    worker = multiprocessing.get_context("fork").Process(
        target=live, args=arguments)
    worker.start()
    worker.join()
    sys.exit(worker.exitcode)


def live_in_pytest(name, seconds, seed):
    """As the only test of a module, this one."""
    import pytest
    os.environ["SERVICE_OF_TEST"] = json.dumps([name, seconds, seed])
    sys.exit(pytest.main(["-q", "-s", "-p", "no:cacheprovider",
                          "-p", "no:seep", __file__]))


def test_service():
    """A soak under pytest."""
    live(*json.loads(os.environ["SERVICE_OF_TEST"]), "return")


def main(name, seconds, seed, end):
    """As it was asked for."""
    seconds, seed = float(seconds), int(seed)
    if end == "worker":
        live_in_worker(name, seconds, seed, "return")
    elif end == "pytest":
        live_in_pytest(name, seconds, seed)
    else:
        live(name, seconds, seed, end)


if __name__ == "__main__":
    main(*sys.argv[1:])
