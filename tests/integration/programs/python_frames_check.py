# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every stack that the library reads, against what Python itself says.

    python_frames_check.py LIBRARY [late]

late: the interpreter is taken for one that came by dlopen.

Runs under every CPython from 3.8 on. Prints one JSON object.
"""
import asyncio
import ctypes
import functools
import json
import os
import re
import sys
import threading

LIBRARY = sys.argv[1]
HOLDING = ctypes.PyDLL(LIBRARY)  # keeps the GIL
RELEASING = ctypes.CDLL(LIBRARY)  # gives it up for the call
HOLDING.python_frames_words.restype = ctypes.c_char_p
BUFFER_BYTES = 1 << 17
FILE_BYTES = 511
NAME_BYTES = 255
QUALIFIED = sys.version_info >= (3, 11)

local = threading.local()
lock = threading.Lock()
result = {"version": "%d.%d.%d" % sys.version_info[:3], "compared": 0,
          "detached": 0, "lost": 0, "wrong": 0, "unmerged": 0, "merged": 0,
          "examples": []}


def expected(frame):
    """What Python says, innermost first."""
    frames = []
    while frame:
        code = frame.f_code
        name = code.co_qualname if QUALIFIED else code.co_name
        frames.append((code.co_filename, frame.f_lineno or 0, name))
        frame = frame.f_back
    return frames


def parsed(text):
    frames = []
    for line in text.decode("utf-8").splitlines():
        if line.startswith("P "):
            file, number, name = line[2:].split("\t")
            frames.append((file, int(number), name))
        elif line.startswith("?"):
            frames.append(("?", 0, "?"))
    return frames


def shortened(frames):
    """As names are cut: of a file its end is kept, of a name its beginning."""
    return [(f.encode()[-FILE_BYTES:].decode("utf-8", "ignore"), line,
             n.encode()[:NAME_BYTES].decode("utf-8", "ignore"))
            for f, line, n in frames]


def compare(what, returned, text, frames, attached):
    with lock:
        result["compared"] += 1
        result["detached"] += not attached
        if returned < 0 or not returned & 4:
            # Without the GIL and beside the main thread it may be lost.
            thread = threading.current_thread()
            if attached or thread is threading.main_thread():
                wrong(what, returned, "no frames")
            result["lost"] += 1
            return
        got = parsed(text)
        want = shortened(frames)
        if returned & 2:
            want = want[:len(got)]
        if got != want or (returned & 1) != attached:
            at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b),
                      min(len(got), len(want)))
            wrong(what, returned, [at, got[at:at + 2], want[at:at + 2],
                                   len(got), len(want)])
        if returned >> 3 == 0 and not returned & 2:
            result["merged"] += 1
            if b"\nE " in text:
                result["unmerged"] += 1
                result["examples"].append([what, text.decode()[:2000]])


def wrong(*example):
    result["wrong"] += 1
    if len(result["examples"]) < 5:
        result["examples"].append(example)


def check(what):
    if not hasattr(local, "buffer"):
        local.buffer = ctypes.create_string_buffer(BUFFER_BYTES)
    for library, attached in ((HOLDING, 1), (RELEASING, 0)):
        returned, frames = (
            library.python_frames_capture(local.buffer, BUFFER_BYTES),
            expected(sys._getframe()))
        # The lines of this frame are those of the statement's two halves.
        frames[0] = (frames[0][0], None, frames[0][2])
        text = local.buffer.value
        first = re.search(rb"^P .*\t(\d+)\t", text, re.M)
        if first:
            frames[0] = (frames[0][0], int(first.group(1)), frames[0][2])
            begin = check.__code__.co_firstlineno
            if not begin + 4 <= frames[0][1] <= begin + 6:
                wrong(what, "line of check()", frames[0][1])
        compare(what, returned, text, frames, attached)


def nested(depth):
    if depth == 0:
        check("nested")
        return None
    return nested(
        depth - 1
    )


def inner_generator(count):
    for i in range(count):
        check("inner generator")
        yield i


def generator(count):
    for i in range(count):
        check("generator")
        yield i
    yield from inner_generator(count)


class Base:
    def __init__(self):
        check("init")

    def __getattr__(self, name):
        check("getattr")
        return 1

    def __del__(self):
        check("del")


class Derived(Base):
    def __init__(self):
        super().__init__()
        check("derived init")

    def __call__(self, value):
        check("call")
        return value

    def __getitem__(self, index):
        check("getitem")
        return index

    @property
    def attribute(self):
        check("property")
        return 1


class Meta(type):
    def __new__(mcs, name, bases, members):
        check("metaclass")
        return super().__new__(mcs, name, bases, members)


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


@decorated
def keywords(*args, b=1, **more):
    check("keywords")


def exceptions(depth):
    try:
        if depth:
            exceptions(depth - 1)
        else:
            raise ValueError
    except ValueError:
        check("except")
        if depth < 3:
            raise
    finally:
        check("finally")


def naïve_名前_ÿ():
    check("names that are not ASCII")


def compiled(source, file, *args):
    scope = {}
    exec(compile(source, file, "exec"), scope)
    return scope["f"](*args)


def long_code():
    """Line tables of every kind of entry, and long jumps of lines."""
    source = "def f(check):\n" + "".join(
        "    x%d = %d\n%s" % (i, i, "\n" * (i % 5 * 40)) for i in range(3000))
    source += "    check('long')\n    y = [\n" + "      1,\n" * 500
    source += "      check('long list')]\n"
    compiled(source, "/long/" + "d" * 700 + "/f.py", check)
    compiled("def f(check):\n  check('wide')\n",
             "/" + "\u4e2d\u00e9\U0001f600" * 200 + "/f.py", check)
    compiled("def f(check):\n  check('latin')\n", "caf\u00e9.py", check)
    compiled("def f(check):\n  check('wide')\n", "/\u4e2d\u6587.py", check)
    name = "n" * 400
    compiled("def %s(c):\n  c('long name')\nf = %s" % (name, name), "n.py",
             check)
    compiled("\n" * 70000 + "def f(check):\n  check('far down')\n", "x", check)
    eval(compile("\n\n\nlambda c: [c('x') for i in (1, 2)]", "l.py",
                 "eval"))(check)


def thrower():
    try:
        yield 1
    except ValueError:
        check("throw")
        yield 2


def delegating():
    try:
        yield from thrower()
    finally:
        check("close")


class Iterator:
    def __iter__(self):
        return self

    def __next__(self):
        check("next")
        return 1

    def throw(self, *args):
        check("throw method")
        return 5


def delegating_to_iterator():
    yield from Iterator()


def throws():
    started = delegating()
    next(started)
    started.throw(ValueError)
    started.close()
    started = delegating_to_iterator()
    next(started)
    started.throw(ValueError)
    next(started)


async def coroutine(depth):
    check("coroutine")
    await asyncio.sleep(0)
    check("coroutine after")
    if depth:
        await coroutine(depth - 1)


async def async_generator():
    for i in range(3):
        check("async generator")
        yield i


async def coroutines():
    await asyncio.gather(*[coroutine(3) for _ in range(3)])
    async for _ in async_generator():
        check("async for")
    return [i async for i in async_generator()]


def rarely(i):
    if i % 4000 == 3999:
        check("hot loop")
    return i + 1


def hot():
    """Long enough that Python compiles it, where it does."""
    total = 0
    for i in range(20000):
        total += rarely(i)
    return total


def everything():
    for depth in (0, 1, 5, 40, 100, 300):
        nested(depth)
    list(generator(3))
    sum(x for x in generator(2))
    [x for x in generator(2)]
    for _ in range(25):
        Derived()
    thing = Derived()
    thing.unknown, thing(1), thing[1], thing.attribute, thing.attribute
    Meta("X", (), {})
    keywords(1, 2, b=3, c=4)
    try:
        exceptions(6)
    except ValueError:
        pass
    throws()
    hot()
    naïve_名前_ÿ()
    long_code()
    sorted([3, 1, 2], key=lambda k: check("key") or k)
    functools.reduce(lambda a, b: check("reduce") or a, [1, 2, 3])
    list(map(lambda x: check("map"), [1, 2]))
    asyncio.run(coroutines())
    eval("check('eval')", globals())
    re.sub("a", lambda match: check("re") or "b", "aaa")


def forked():
    """In a child whose only thread was another than the main one."""
    child = os.fork()
    if child == 0:
        HOLDING.python_frames_after_fork()
        before = result["wrong"]
        for _ in range(10):
            nested(3)
        os._exit(result["wrong"] != before)
    if os.waitpid(child, 0)[1] != 0:
        wrong("in a forked child")


def main():
    result["found"] = HOLDING.python_frames_open(
        int("late" in sys.argv),
        ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p))
    for _ in range(3):
        everything()
    threads = [threading.Thread(target=everything) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.settrace(lambda *args: None)
    nested(3)
    sys.settrace(None)
    sys.setprofile(lambda *args: None)
    nested(3)
    sys.setprofile(None)
    thread = threading.Thread(target=forked)
    thread.start()
    thread.join()
    result["state"] = HOLDING.python_frames_words(
        HOLDING.python_frames_state()).decode()
    result["version_is_right"] = (
        HOLDING.python_frames_version() >> 16 == sys.hexversion >> 16)
    print(json.dumps(result))


main()
