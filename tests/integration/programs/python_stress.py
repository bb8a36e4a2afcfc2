# SPDX-License-Identifier: LGPL-2.1-or-later
"""All that is hard for who reads Python's frames, at once, to an exit beside
threads that go on.

    python_stress.py SECONDS CHILDREN

Invariant: what is printed does not depend on how much was done.
"""
import asyncio
import ctypes
import gc
import json
import os
import sys
import threading
import time
import zlib

SECONDS = float(sys.argv[1])
CHILDREN = int(sys.argv[2])
END = time.monotonic() + SECONDS
LIBC = ctypes.CDLL(None)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
# A finalizer that the collector calls at the limit of the recursion has its
# RecursionError printed, and CPython 3.8 then ends: "Cannot recover from stack
# overflow". So none is left to it while somebody overflows.
DEEP = threading.Lock()
wrong = []
children = []


def code_that_dies(i):
    scope = {}
    source = ("\n" * (i % 7) + "class C%d:\n  def f(self, n):\n"
              "    return [bytearray(600) for _ in range(n)]\n"
              "def g():\n  yield from (C%d().f(k) for k in range(4))\n")
    exec(compile(source % (i, i), "/dies/%d.py" % (i % 5), "exec"), scope)
    return sum(map(len, scope["g"]()))


def overflow(depth=0):
    block = bytearray(700) if depth % 50 == 0 else None
    return overflow(depth + 1), block


def exceptions():
    for i in range(20):
        try:
            try:
                int("x" * (600 + i))
            except ValueError as error:
                raise KeyError(bytearray(600)) from error
        except KeyError as error:
            gc.is_tracked(error.__traceback__)


def callbacks():
    compare = COMPARE(lambda left, right: len(bytearray(800)) * 0)
    LIBC.qsort(ctypes.create_string_buffer(80), 20, 4, compare)


class Late:
    def __del__(self):
        self.block = bytearray(900)


def cycles():
    with DEEP:
        for _ in range(20):
            late = Late()
            late.itself = late
        del late
        gc.collect()


def generators():
    def numbers():
        try:
            while True:
                got = yield bytearray(550)
                if got:
                    yield from numbers()
        except ValueError:
            yield bytearray(560)
    one = numbers()
    next(one)
    one.send(1)
    one.throw(ValueError)
    one.close()


async def coroutine(depth):
    if depth == 0:
        await asyncio.sleep(0)
        return [bytearray(520)]
    return await coroutine(depth - 1) + [bytearray(530)]


async def several():
    await asyncio.gather(*(coroutine(i) for i in range(6)))


def without_the_lock():
    zlib.decompress(zlib.compress(b"abc" * 4000))
    LIBC.malloc.restype = ctypes.c_void_p
    LIBC.free.argtypes = [ctypes.c_void_p]
    for _ in range(20):
        LIBC.free(LIBC.malloc(777))


def everything(loop):
    i = 0
    while time.monotonic() < END:
        i += 1
        code_that_dies(i)
        try:
            with DEEP:
                overflow()
        except RecursionError:
            pass
        for part in (exceptions, callbacks, cycles, generators,
                     without_the_lock):
            part()
        loop.run_until_complete(several())
        json.dumps([{"a": str(i)}] * 50)


def checked():
    loop = asyncio.new_event_loop()
    try:
        everything(loop)
    except BaseException as error:
        wrong.append(repr(error))
        raise
    finally:
        loop.close()


def forked(i):
    child = os.fork()
    if child != 0:
        return os.waitpid(child, 0)[1]
    try:
        time.sleep(0.2)  # from then on it is recorded
        for round_number in range(3):
            code_that_dies(round_number)
            exceptions()
            generators()
        if i % 2:
            sys.exit(0)
    except SystemExit:
        pass
    finally:
        os._exit(0)


def go_on_for_ever():
    i = 0
    while True:
        i += 1
        code_that_dies(i)
        without_the_lock()


def main():
    if hasattr(sys, "setswitchinterval"):
        sys.setswitchinterval(1e-4)
    threads = [threading.Thread(target=checked) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(CHILDREN):
        children.append(forked(i))
    for thread in threads:
        thread.join()
    if (3, 9) <= sys.version_info < (3, 10, 8):
        # Without us too these wait for ever at their end for a thread that
        # asked for the lock and is gone (python/cpython issue 96387). So none
        # asks: each waits until it is given the lock.
        sys.setswitchinterval(1000)
    for _ in range(3):
        threading.Thread(target=go_on_for_ever, daemon=True).start()
    time.sleep(0.05)
    print(wrong, set(children))


main()
