# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who holds memory of a device, over the fake driver and the fake PyTorch.

    held_on_gpu.py READY COUNT

Each kind has COUNT blocks of a line of its own, and goes on until it is killed.
READY gets {kind: [space, line, end, holder]}, which is the truth.

Invariant: PyTorch's cache knows of each tensor; it is never who holds one.
"""
import array
import ctypes
import json
import os
import signal
import sys

FOLDER = os.environ["SEEP_FAKE_TORCH"]
CUDA = ctypes.CDLL("libcuda.so.1")
CACHE = ctypes.CDLL(os.path.join(FOLDER, "libc10_cuda.so"))
TENSORS = ctypes.CDLL(os.path.join(FOLDER, "libfake_tensors.so"))
MARK = "  # " "kind: "
BYTES = 4096
SEGMENT_BYTES = 11 << 20


def function(library, name):
    """Of one number, which gives an address."""
    found = library[name]
    found.restype = ctypes.c_uint64
    found.argtypes = [ctypes.c_uint64]
    return found


empty = function(CACHE, "fake_torch_empty")
free = function(CACHE, "fake_torch_free")
pool_add = function(TENSORS, "fake_pool_add")
tensor_of = function(TENSORS, "fake_tensor")
loss_of = function(TENSORS, "fake_loss")
left_over = function(TENSORS, "fake_left_over")


class Model:
    """What a service has, and its class."""

    def __init__(self):
        self.audit = []
        self.kept = []


class Handler:
    """Its model is there for all requests."""
    model = Model()


losses = []
pointers = array.array("Q")
numbers = []


def keep_numbers():
    """Addresses as Python has them by ctypes."""
    numbers.append(empty(BYTES))  # kind: numbers


def keep_tensors():
    """By objects, as PyTorch."""
    data = empty(BYTES)  # kind: tensors
    Handler.model.audit.append(ctypes.c_void_p(tensor_of(data)))


def keep_losses():
    """Each with the graph that made it."""
    data = empty(BYTES)  # kind: losses
    losses.append(ctypes.c_void_p(loss_of(data)))


def lose():
    """Nobody has them but the cache."""
    empty(BYTES)  # kind: lost


def keep_pointers():
    """Of the driver itself."""
    at = ctypes.c_uint64()
    CUDA.cuMemAlloc_v2(ctypes.byref(at), BYTES)  # kind: device
    pointers.append(at.value)
    pool_add(at.value)


def keep_in_a_pool():
    """Nobody has what the pool took from the driver, but the pool."""
    at = ctypes.c_uint64()
    CUDA.cuMemAlloc_v2(ctypes.byref(at), BYTES)  # kind: pool
    pool_add(at.value)


def keep_segments(count):
    """What tensors needed for a moment, and the cache keeps."""
    made = [empty(SEGMENT_BYTES) for _ in range(count)]  # kind: segments
    for data in made:
        free(data)


def keep_pinned():
    """Memory of the host that the driver gave."""
    at = ctypes.c_void_p()
    CUDA.cuMemAllocHost_v2(ctypes.byref(at), BYTES)  # kind: pinned
    Handler.model.kept.append(at)


TRUTH = {
    "numbers": ("tensor", "held", "held_on_gpu.numbers"),
    "tensors": ("tensor", "held", "Handler.model.audit"),
    "losses": ("tensor", "held", "held_on_gpu.losses"),
    "lost": ("tensor", "lost", None),
    "device": ("device", "held", "held_on_gpu.pointers"),
    "pool": ("device", "unclear", "tsl::BFCAllocator"),
    "segments": ("device", "unclear", "c10::cuda::CUDACachingAllocator"),
    "pinned": ("pinned", "held", "Handler.model.kept"),
}


def lines():
    """{kind: the line that makes its blocks}"""
    with open(__file__, encoding="utf-8") as source:
        return {text.rstrip().rpartition(MARK)[2]: number
                for number, text in enumerate(source, 1) if MARK in text}


def main(ready, count):
    """All kinds in turn, so that none lies together."""
    assert CACHE.fake_torch_open() == 0
    for _ in range(int(count)):
        for keep in (keep_numbers, keep_tensors, keep_losses, lose,
                     keep_pointers, keep_in_a_pool, keep_pinned):
            keep()
    keep_segments(int(count))
    Handler.model.before = [ctypes.c_void_p(left_over(i)) for i in range(2)]
    where = lines()
    with open(f"{ready}.new", "w", encoding="utf-8") as out:
        json.dump({kind: [space, where[kind], end, holder]
                   for kind, (space, end, holder) in TRUTH.items()}, out)
    os.rename(f"{ready}.new", ready)
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
