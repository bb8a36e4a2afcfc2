# SPDX-License-Identifier: LGPL-2.1-or-later
"""Python programs whose leaking lines are known, and ones that do not leak.

    python_leak.py GROUP[,GROUP ...] SECONDS SEED

runs what python_leak_GROUP.py plants and prints, as JSON, for each planted
line where it is and how many bytes it kept, as Python itself says
(sys.getsizeof). A planted line ends in the comment "leak: NAME".

Invariant: what is kept depends on the arguments only, and is kept to the end
of the process; a tick that is late is made up for.
"""
import gc
import importlib
import json
import os
import random
import sys
import time

TICKS_PER_SECOND = 50
STEPS_PER_TICK = 5


class Planted:
    """A line that keeps something at every step.

    step(number) runs the line; bytes_kept() tells what it has kept so far.
    Of each thing, lent_bytes may come from a list that Python keeps of freed
    objects of a kind: allocated by whoever had it before, most likely serve().
    """

    def __init__(self, name, step, kept=None, source=None, bytes_kept=None,
                 lent_bytes=0):
        self.name = name
        self.step = step
        self.where = place_of(name, source or step.__globals__["__file__"])
        self.bytes_kept = bytes_kept or (lambda: bytes_of_all(kept))
        self.bytes_lent = lambda: lent_bytes and lent_bytes * len(kept)


def place_of(name, path):
    """[base name, line] of a marker: "leak: NAME" at the end of a line."""
    with open(path, encoding="utf-8") as lines:
        for number, text in enumerate(lines, 1):
            if text.rstrip().endswith(f"leak: {name}"):
                return [os.path.basename(path), number]
    raise LookupError(name)


def parts_of(thing):
    """What a container holds."""
    if isinstance(thing, dict):
        yield from thing.keys()
        yield from thing.values()
    elif isinstance(thing, (list, tuple, set, frozenset)):
        yield from thing
    else:
        for name in getattr(type(thing), "__slots__", ()):
            yield getattr(thing, name)


def deep_bytes(thing, seen):
    """Of it and what hangs on it, each object once."""
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    return sys.getsizeof(thing) + sum(deep_bytes(part, seen)
                                      for part in parts_of(thing))


def bytes_of_all(kept):
    """Of a list of things of one size, less what they share. Looking at each
    would be work that keeps nothing: as if the leak had ended."""
    shared = set()
    deep_bytes(kept[0], shared)
    some = kept[1::100]
    each = sum(deep_bytes(thing, set(shared)) for thing in some) / len(some)
    return sys.getsizeof(kept) + each * len(kept)


class Record:
    """What a service makes for each request."""

    def __init__(self, number):
        self.number = number
        self.words = ("word %d" % number).split() * 3


def serve(number):
    """What every request does on other lines: nothing of it stays."""
    text = json.dumps({"id": number, "tags": ["a", "b", str(number)],
                       "body": {"text": "x" * 200, "score": number / 7}})
    record = Record(json.loads(text)["id"])
    pairs = [(str(index), float(index)) for index in range(10)]
    return len(record.words) + len(dict(pairs)) + len(text.encode() * 3)


class Load:
    """What a group has to do: its lines, and what else each tick calls.

    steps are called as the planted lines are, and keep nothing.
    """

    def __init__(self, planted=(), steps=(), end_tick=None):
        self.planted = list(planted)
        self.steps = [*(each.step for each in self.planted), *steps]
        self.ends = [end_tick] if end_tick else []
        self.served_s = 0
        self.late_s = 0  # at most: a busy machine lets it wait

    def add(self, other):
        """Do that, too."""
        self.planted += other.planted
        self.steps += other.steps
        self.ends += other.ends

    def tick(self, draw):
        """What is due at one instant."""
        for _ in range(STEPS_PER_TICK):
            serve(draw.randrange(1 << 40))
            for step in self.steps:
                step(draw.randrange(1 << 40))
        for end in self.ends:
            end()

    def drive(self, seconds, seed):
        """All ticks, to the end of the last."""
        draw = random.Random(seed)
        ticks = int(seconds * TICKS_PER_SECOND)
        start = time.monotonic()
        for tick in range(ticks):
            due = start + tick / TICKS_PER_SECOND
            time.sleep(max(0, due - time.monotonic()))
            self.late_s = max(self.late_s, time.monotonic() - due)
            self.tick(draw)
        time.sleep(max(0, start + ticks / TICKS_PER_SECOND
                       - time.monotonic()))
        self.served_s = time.monotonic() - start

    def tell(self):
        """What was planted, and what became of it: one write, for a child
        may tell at the same time."""
        gc.disable()
        line = json.dumps({
            "pid": os.getpid(), "served_s": self.served_s,
            "late_s": self.late_s,
            "lines": {each.name: {"where": each.where,
                                  "bytes": each.bytes_kept(),
                                  "lent_bytes": each.bytes_lent()}
                      for each in self.planted}})
        print(line + "\n", end="", flush=True)


def main(groups, seconds, seed):
    """Run groups of programs in one process."""
    sys.modules["python_leak"] = sys.modules["__main__"]
    load = Load()
    for group in groups.split(","):
        module = importlib.import_module(f"python_leak_{group}")
        load.add(module.plant(float(seconds), int(seed)))
    load.drive(float(seconds), int(seed))
    load.tell()
    return load


if __name__ == "__main__":
    held_to_the_end = main(*sys.argv[1:])
