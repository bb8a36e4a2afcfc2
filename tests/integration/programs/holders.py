# SPDX-License-Identifier: LGPL-2.1-or-later
"""A zoo of holders: each keeps blocks of a line of its own, and goes on.

    holders.py READY COUNT [KIND...]

Each keeper begins with COUNT blocks; then the file READY is written, JSON of
{kind: [line, holder]}, and each gets another block now and then until the
process is ended. The holder is what somebody who reads this file would call it.
"""
import array
import asyncio
import collections
import concurrent.futures
import contextvars
import ctypes
import dataclasses
import enum
import functools
import gc
import heapq
import io
import itertools
import json
import logging
import os
import queue
import sys
import threading
import time
import types
import weakref

KINDS = {}
THREADS_MOST = 64


def kind(holder):
    """Register a keeper: the call that makes its block is on the line that
    says BLOCK."""
    def add(function):
        KINDS[function.__name__] = [holder, function]
        return function
    return add


class Model:
    def __init__(self):
        self.history = []
        self.cache = {}
        self.recent = collections.deque()
        self.seen = set()
        self.ordered = collections.OrderedDict()
        self.by_group = collections.defaultdict(list)
        self.nested = {"a": {"b": {}}}

    def remember(self, block):
        self.registered.append(block)


class Slotted:
    __slots__ = ("items", "other")

    def __init__(self):
        self.items = []


class Registry:
    entries = {}


class Meta(type):
    @property
    def unused(cls):
        return None


class Made(metaclass=Meta):
    kept = []


class Box:
    def __init__(self, block):
        self.block = block


class Node:
    def __init__(self, block, following):
        self.block = block
        self.following = following


class Names(dict):
    pass


class Lines(list):
    pass


@dataclasses.dataclass
class Record:
    number: int
    body: object


Pair = collections.namedtuple("Pair", "number body")


class KeepingHandler(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)


model = Model()
model.registered = []
slotted = Slotted()
store = []
table = {}
names = Names()
lines = Lines()
pairs = []
records = []
tuples = []
boxes = {}
head = None
errors = []
waiting = queue.Queue()
futures = []
calls = []
log = logging.getLogger("zoo")
log.propagate = False
log.addHandler(KeepingHandler())
current = contextvars.ContextVar("current", default=None)
space = types.SimpleNamespace(kept=[])
methods = []
frozen = frozenset()


@kind("holders.model.history")
def list_attribute(i):
    model.history.append(bytearray(4096))  # BLOCK


@kind("holders.model.cache")
def dict_attribute(i):
    model.cache[f"key {i}"] = bytearray(4096)  # BLOCK


@kind("holders.model.recent")
def deque_attribute(i):
    model.recent.append(bytearray(4096))  # BLOCK


@kind("holders.model.seen")
def set_attribute(i):
    model.seen.add(Box(bytearray(4096)))  # BLOCK


@kind("holders.model.ordered")
def ordered_dict(i):
    model.ordered[i] = bytearray(4096)  # BLOCK


@kind("holders.model.by_group")
def default_dict(i):
    model.by_group[i // 4].append(bytearray(4096))  # BLOCK


@kind("holders.model.nested[...][...]")
def nested_dicts(i):
    model.nested["a"]["b"][i] = bytearray(4096)  # BLOCK


@kind("holders.model.registered")
def by_bound_method(i):
    model.remember(bytearray(4096))  # BLOCK


@kind("holders.slotted.items")
def slots(i):
    slotted.items.append(bytearray(4096))  # BLOCK


@kind("holders.store")
def module_list(i):
    store.append(bytearray(4096))  # BLOCK


@kind("holders.table")
def module_dict(i):
    table[i] = (i, bytearray(4096))  # BLOCK


@kind("Registry.entries")
def class_dict(i):
    Registry.entries[i] = bytearray(4096)  # BLOCK


@kind("Made.kept")
def class_with_metaclass(i):
    Made.kept.append(bytearray(4096))  # BLOCK


@kind("holders.names")
def dict_subclass(i):
    names[i] = bytearray(4096)  # BLOCK


@kind("holders.lines")
def list_subclass(i):
    lines.append(bytearray(4096))  # BLOCK


@kind("holders.pairs")
def named_tuples(i):
    pairs.append(Pair(i, bytearray(4096)))  # BLOCK


@kind("holders.records")
def dataclass_items(i):
    records.append(Record(i, bytearray(4096)))  # BLOCK


@kind("holders.tuples")
def tuples_of_tuples(i):
    tuples.append((i, (i, (bytearray(4096),))))  # BLOCK


@kind("holders.boxes")
def instances_in_a_dict(i):
    boxes[i] = Box(bytearray(4096))  # BLOCK


def make_closure():
    kept = []

    def handler(block):
        kept.append(block)
    return handler


handler = make_closure()


@kind("holders.handler.__closure__[...].cell_contents")
def closure(i):
    handler(bytearray(4096))  # BLOCK


def with_default(block, kept=[]):
    kept.append(block)


@kind("holders.with_default.__defaults__[...]")
def default_argument(i):
    with_default(bytearray(4096))  # BLOCK


def with_keyword(block, *, kept={}):
    kept[id(block)] = block


@kind("holders.with_keyword.__kwdefaults__[...]")
def keyword_default(i):
    with_keyword(bytearray(4096))  # BLOCK


def with_attribute():
    pass


with_attribute.kept = []


@kind("holders.with_attribute.kept")
def function_attribute(i):
    with_attribute.kept.append(bytearray(4096))  # BLOCK


@functools.lru_cache(maxsize=None)
def computed(i):
    return bytearray(4096)  # BLOCK of unbounded_cache


@kind("holders.computed.cache")
def unbounded_cache(i):
    computed(i)


@kind("holders.log.handlers[...].records")
def logging_handler(i):
    log.warning("request", extra={"body": bytearray(4096)})  # BLOCK


def fail(i):
    local = bytearray(4096)  # BLOCK of kept_exceptions
    raise ValueError(i, len(local))


@kind("holders.errors")
def kept_exceptions(i):
    try:
        fail(i)
    except ValueError as error:
        errors.append(error)


@kind("cycle")
def uncollected_cycle(i):
    one = Node(bytearray(4096), None)  # BLOCK
    one.following = Node(None, one)


def forget(thing):
    """As an extension does that does not give back its reference."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


@kind("lost")
def lost_reference(i):
    forget(Box(bytearray(4096)))  # BLOCK


@kind("lost")
def lost_exception(i):
    try:
        fail_alone(i)
    except ValueError as error:
        forget(error)


def fail_alone(i):
    local = bytearray(4096)  # BLOCK of lost_exception
    raise ValueError(i, len(local))


@kind("holders.head")
def linked_list(i):
    global head
    head = Node(bytearray(4096), head)  # BLOCK


@kind("holders.waiting.queue")
def thread_queue(i):
    waiting.put(bytearray(4096))  # BLOCK


@kind("holders.futures")
def done_futures(i):
    future = concurrent.futures.Future()
    future.set_result(bytearray(4096))  # BLOCK
    futures.append(future)


@kind("holders.calls")
def partials(i):
    calls.append(functools.partial(len, bytearray(4096)))  # BLOCK


@kind("holders.methods")
def bound_methods(i):
    methods.append(Box(bytearray(4096)).__init__)  # BLOCK


@kind("holders.space.kept")
def simple_namespace(i):
    space.kept.append(bytearray(4096))  # BLOCK


@kind("holders.current")
def context_variable(i):
    kept = current.get()
    if kept is None:
        kept = []
        current.set(kept)
    kept.append(bytearray(4096))  # BLOCK


def generate():
    kept = []
    while True:
        kept.append(bytearray(4096))  # BLOCK of suspended_generator
        yield


generator = generate()


@kind("holders.generator.kept of generate()")
def suspended_generator(i):
    next(generator)


local = threading.local()


@kind("holders.local")
def thread_local(i):
    if not hasattr(local, "kept"):
        local.kept = []
    local.kept.append(bytearray(4096))  # BLOCK


referents = weakref.WeakValueDictionary()
strong = []


@kind("holders.strong")
def weakly_and_strongly(i):
    box = Box(bytearray(4096))  # BLOCK
    referents[i] = box
    strong.append(box)


try:
    import numpy
except ImportError:
    numpy = None
if numpy is not None:
    arrays = []
    views = []
    objects = numpy.empty(100000, dtype=object)

    @kind("holders.arrays")
    def numpy_arrays(i):
        arrays.append(numpy.ones(1024, numpy.float32))  # BLOCK

    @kind("holders.views")
    def numpy_views(i):
        views.append(numpy.ones(1024, numpy.float32)[10:20])  # BLOCK

    @kind("holders.objects")
    def numpy_objects(i):
        objects[i] = bytearray(4096)  # BLOCK


async def wait_for_ever():
    block = bytearray(4096)  # BLOCK of pending_tasks
    await asyncio.sleep(100000)
    return block


async def wait_for_an_event():
    block = bytearray(4096)  # BLOCK of tasks_that_leave_a_set
    await asyncio.Event().wait()
    return block


def watch():
    """As asyncio's manual has it: each task has the set, by its callback."""
    for _ in range(8):
        task = asyncio.get_running_loop().create_task(wait_for_an_event())
        board.watched.add(task)
        task.add_done_callback(board.watched.discard)


class Board:
    """What was made early lies behind all that has its set later."""
    __slots__ = ("watched",)


tasks = set()
board = Board()
board.watched = set()
messages = None


@kind("holders.tasks")
def pending_tasks(i):
    """By the loop's thread."""


@kind("holders.board.watched")
def tasks_that_leave_a_set(i):
    """By the loop's thread, too."""


@kind("holders.messages._queue")
def asyncio_queue(i):
    messages.put_nowait(bytearray(4096))  # BLOCK


def run_loop(count, ready):
    async def main():
        global messages
        messages = asyncio.Queue()
        for _ in range(count):
            tasks.add(asyncio.get_running_loop().create_task(wait_for_ever()))
            watch()
        await asyncio.sleep(0)
        ready.set()
        while True:
            await asyncio.sleep(0.2)
            tasks.add(asyncio.get_running_loop().create_task(wait_for_ever()))
            watch()
    asyncio.run(main())


passed = []
emptied = []


@kind("holders.passed")
def through_a_deque(i):
    """By a list; what it went through is empty, and has been told so."""
    box = Box(bytearray(4096))  # BLOCK
    way = collections.deque([box])
    way.popleft()
    emptied.append(way)
    passed.append(box)


@kind("kept of running keep_in_a_local()")
def local_of_a_thread(i):
    """By a thread of its own."""


def keep_in_a_local(count, ready):
    kept = []
    while True:
        kept.append(bytearray(4096))  # BLOCK of local_of_a_thread
        if len(kept) == count:
            ready.set()
        if len(kept) >= count:
            time.sleep(0.1)


never = threading.Event()


def wait_in_a_thread():
    waited = bytearray(4096)  # BLOCK of calls_that_wait
    never.wait()
    return waited


@kind("waited of running wait_in_a_thread()")
def calls_that_wait(i):
    """Each of its own, and none of them returns."""
    if i < THREADS_MOST:
        threading.Thread(target=wait_in_a_thread, daemon=True).start()


class Property:
    @functools.cached_property
    def kept(self):
        return []


class Level(enum.Enum):
    LOW = 1


Level.LOW.kept = []


class Counter:
    def __init__(self):
        self.blocks = []

    def __call__(self, block):
        self.blocks.append(block)


class Late:
    """Its attributes lie in a dict: they were asked for."""
    def __init__(self):
        self.__dict__["kept"] = []


def kept_by_a_wrapper(function):
    seen = []

    @functools.wraps(function)
    def wrapper(block):
        seen.append(block)
        return function(block)
    return wrapper


@kept_by_a_wrapper
def wrapped(block):
    return block


properties = Property()
count_blocks = Counter()
late = Late()
chained = collections.ChainMap({}, {})
heap = []
texts = []
keys = {}
buffers = []
streams = []
numbers = []
raw = []
iterators = []
slices = []
threads = []
coroutines = []
outer = {"inner": [{"deep": ([],)}]}
swapped = []
results = []
userdict = collections.UserDict()
frames = []


@kind("holders.properties.kept")
def cached_property(i):
    properties.kept.append(bytearray(4096))  # BLOCK


@kind("Level.LOW.kept")
def member_of_an_enum(i):
    Level.LOW.kept.append(bytearray(4096))  # BLOCK


@kind("holders.count_blocks.blocks")
def callable_object(i):
    count_blocks(bytearray(4096))  # BLOCK


@kind("holders.late.kept")
def instance_dict(i):
    late.kept.append(bytearray(4096))  # BLOCK


@kind("holders.wrapped")
def decorator(i):
    wrapped(bytearray(4096))  # BLOCK


@kind("holders.chained")
def chain_map(i):
    chained[i] = bytearray(4096)  # BLOCK


@kind("holders.heap")
def heap_of_tuples(i):
    heapq.heappush(heap, (-i, bytearray(4096)))  # BLOCK


@kind("holders.texts")
def long_texts(i):
    texts.append("x" * (4096 + i % 8))  # BLOCK


@kind("holders.keys")
def keys_of_a_dict(i):
    keys[bytes(4096) + str(i).encode()] = i  # BLOCK


@kind("holders.buffers")
def arrays_of_numbers(i):
    buffers.append(array.array("d", bytes(4096)))  # BLOCK


@kind("holders.streams")
def bytes_streams(i):
    streams.append(io.BytesIO(bytearray(4096)))  # BLOCK


@kind("holders.numbers")
def long_numbers(i):
    numbers.append(1 << 32768 | i)  # BLOCK


@kind("holders.raw")
def ctypes_buffers(i):
    raw.append(ctypes.create_string_buffer(4096))  # BLOCK


@kind("holders.iterators")
def iterators_of_tuples(i):
    iterators.append(itertools.chain((bytearray(4096),), ()))  # BLOCK


@kind("holders.slices")
def memory_views(i):
    slices.append(memoryview(bytearray(4096))[10:20])  # BLOCK


@kind("holders.threads")
def arguments_of_threads(i):
    block = bytearray(4096)  # BLOCK
    threads.append(threading.Thread(target=len, args=(block,)))


async def work(block):
    return block


@kind("holders.coroutines")
def coroutines_never_awaited(i):
    coroutines.append(work(bytearray(4096)))  # BLOCK


@kind("holders.outer")
def deep_in_literals(i):
    outer["inner"][0]["deep"][0].append(bytearray(4096))  # BLOCK


@kind("holders.swapped")
def replaced_lists(i):
    """What it is bound to is another list each time."""
    global swapped
    swapped = swapped + [bytearray(4096)]  # BLOCK


@kind("holders.results")
def dicts_in_a_list(i):
    results.extend([dict(body=bytearray(4096))])  # BLOCK


@kind("holders.userdict")
def user_dict(i):
    userdict[i] = bytearray(4096)  # BLOCK


@kind("holders.frames")
def frames_kept(i):
    def hold():
        block = bytearray(4096)  # BLOCK of frames_kept
        return sys._getframe(), len(block)
    frames.append(hold()[0])


# The interpreter keeps lists for the next use, and forgets which it gave out:
# so many that what it knew of this one stays.
waste = [[] for _ in range(200)]
del waste
deep = []
more_of_them = [[] for _ in range(79)]


@kind("holders.deep")
def far_below(i):
    low = Box(collections.deque([bytearray(4096)]))  # BLOCK
    middle = Box(collections.deque([[{"low": (i, low)}]]))
    deep.append([{"middle": (middle,)}])


finalized = []


@kind("weakref.finalize")
def finalizers_of_objects(i):
    box = Box(None)
    finalized.append(box)
    weakref.finalize(box, len, bytearray(4096))  # BLOCK


def block_lines(path):
    """{kind: line of its block}"""
    found = {}
    function = None
    with open(path, encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            words = line.split("# BLOCK")
            if line.strip().startswith("def "):
                function = line.split()[1].split("(")[0]
            if len(words) > 1 and "BLOCK\")" not in line:
                found[words[1].replace(" of ", "").strip()
                      or function] = number
    return found


def main(path):
    ready, count = sys.argv[1], int(sys.argv[2])
    for name in sys.argv[3:] and set(KINDS) - set(sys.argv[3:]):
        del KINDS[name]
    gc.disable()
    started = [threading.Event(), threading.Event()]
    threading.Thread(target=run_loop, args=(count, started[0]),
                     daemon=True).start()
    threading.Thread(target=keep_in_a_local, args=(count, started[1]),
                     daemon=True).start()
    for event in started:
        event.wait()
    for i in range(count):
        for _, keep in KINDS.values():
            keep(i)
    where = block_lines(path)
    with open(ready + ".new", "w", encoding="utf-8") as file:
        json.dump({name: [where[name], holder]
                   for name, (holder, _) in KINDS.items()}, file)
    os.rename(ready + ".new", ready)
    while True:
        i += 1
        for _, keep in KINDS.values():
            keep(i)
            time.sleep(0.005)


if __name__ == "__main__":
    main(__file__)
