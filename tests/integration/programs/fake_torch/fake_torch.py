# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a PyTorch service does with its tensors, over the fake driver.

    fake_torch.py CASE SECONDS [SEED]

    leak           one tensor of each request is kept, at one line
    fragmentation  batches of as many bytes, of ever longer sequences: no cached
                   segment fits the next, so reserved grows, allocated does not
    quiet          an LRU cache of tensors and PyTorch's own fill, then all
                   churn stays within them

The libraries stand beside the build's programs (SEEP_FAKE_TORCH says where),
and the driver is found by LD_LIBRARY_PATH. Prints, as JSON, what each line
that makes tensors holds and ever made, as the allocator counts, and what the
allocator took from the driver: the truth that a recording must tell.

Invariant: a line that ends in "tensor: NAME" makes the tensors of that name
and no others; what is left at the end is kept to the end of the process.
"""
import collections
import ctypes
import json
import os
import random
import sys
import time

TICKS_PER_SECOND = 50
MIB = 1 << 20
LIBRARY = ctypes.CDLL(os.path.join(os.environ.get("SEEP_FAKE_TORCH", "."),
                                   "libc10_cuda.so"))
MARK = "  # " "tensor: "
FIGURES = ("allocated_bytes", "reserved_bytes", "segment_count",
           "segments_made", "segments_made_bytes", "reports")


def function(name, argument=None):
    """One of fake_torch.h, called from the line itself: no Python between."""
    found = LIBRARY["fake_torch_" + name]
    found.restype = ctypes.c_uint64
    found.argtypes = [argument] if argument else []
    return found


empty = function("empty", ctypes.c_uint64)
free = function("free", ctypes.c_uint64)
size_of = function("size", ctypes.c_uint64)


class Books:
    """What was made and given back, by the name of the line."""

    def __init__(self):
        self.lines = {name: dict.fromkeys(
            ("live_bytes", "live_count", "allocated_bytes", "allocated_count"),
            0) | {"where": where} for name, where in places().items()}

    def made(self, name, pointer):
        """A tensor: its name and what the allocator gave."""
        assert pointer
        line, size = self.lines[name], size_of(pointer)
        line["allocated_bytes"] += size
        line["allocated_count"] += 1
        line["live_bytes"] += size
        line["live_count"] += 1
        return name, pointer

    def done(self, tensor):
        """The end of it."""
        name, pointer = tensor
        self.lines[name]["live_bytes"] -= size_of(pointer)
        self.lines[name]["live_count"] -= 1
        free(pointer)


def places():
    """{name: [base name, line]} of all lines that make tensors."""
    found = {}
    with open(__file__, encoding="utf-8") as lines:
        for number, text in enumerate(lines, 1):
            _, mark, name = text.rstrip().rpartition(MARK)
            if mark:
                found[name] = [os.path.basename(__file__), number]
    return found


class Service:
    """What every request does: nothing of it stays."""

    def __init__(self, seed):
        self.books = Books()
        self.made, self.done = self.books.made, self.books.done
        self.draw = random.Random(seed)
        self.held = [
            self.made("weights", empty(8 * MIB))  # tensor: weights
            for _ in range(8)]

    def forward(self):
        """Three layers: the inner tensors go when the next ones are there."""
        made, done = self.made, self.done
        words = self.draw.randrange(16, 256)
        json.loads(json.dumps({"words": list(range(words))}))
        hidden = made("hidden", empty(words * 2048))  # tensor: hidden
        for _ in range(3):
            scores = made("scores", empty(words * words * 8))  # tensor: scores
            after = made("after", empty(words * 2048))  # tensor: after
            done(scores)
            done(hidden)
            hidden = after
        done(hidden)

    def request(self, share):
        """What a case adds, at that share of the run."""
        self.forward()


class Leak(Service):
    """Every reply stays: somebody keeps a list of them."""
    BYTES = 48 << 10

    def request(self, share):
        super().request(share)
        self.held.append(
            self.made("reply", empty(self.BYTES)))  # tensor: reply


class Fragmentation(Service):
    """Sequences get longer, batches smaller: a batch has as many bytes."""
    FIRST, LAST, STEP, BATCH = 12 * MIB, 62 * MIB, 2 * MIB, 64 * MIB

    def request(self, share):
        super().request(share)
        steps = (self.LAST - self.FIRST) // self.STEP
        size = self.FIRST + int(share * steps) * self.STEP
        batch = [self.made("batch", empty(size))  # tensor: batch
                 for _ in range(self.BATCH // size)]
        for tensor in batch:
            self.done(tensor)


class Quiet(Service):
    """A cache of so many replies: the oldest one goes."""
    BYTES, CAPACITY = 128 << 10, 200

    def __init__(self, seed):
        super().__init__(seed)
        self.cache = collections.deque()

    def request(self, share):
        super().request(share)
        if len(self.cache) == self.CAPACITY:
            self.done(self.cache.popleft())
        self.cache.append(
            self.made("cached", empty(self.BYTES)))  # tensor: cached


CASES = {"leak": Leak, "fragmentation": Fragmentation, "quiet": Quiet}


def drive(service, seconds):
    """A request at every tick, made up for if one is late."""
    ticks = int(seconds * TICKS_PER_SECOND)
    start = time.monotonic()
    for tick in range(ticks):
        time.sleep(max(0, start + tick / TICKS_PER_SECOND - time.monotonic()))
        service.request(tick / ticks)
    time.sleep(max(0, start + ticks / TICKS_PER_SECOND - time.monotonic()))
    return time.monotonic() - start


def main(case, seconds, seed=1):
    """Run one case; all that it holds."""
    error = function("open")()
    if error:
        sys.exit(f"fake_torch: no driver, error {error}")
    service = CASES[case](int(seed))
    served_s = drive(service, float(seconds))
    print(json.dumps({"pid": os.getpid(), "served_s": served_s,
                      "lines": service.books.lines,
                      **{name: function(name)() for name in FIGURES}}),
          flush=True)
    return service


if __name__ == "__main__":
    held_to_the_end = main(*sys.argv[1:])
