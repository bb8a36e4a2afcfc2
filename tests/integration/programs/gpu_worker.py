# SPDX-License-Identifier: LGPL-2.1-or-later
"""A service that asks the CUDA driver for memory, by ctypes.

    gpu_worker.py CASE SECONDS

Invariant: each request does the same, whatever it keeps, at a pace that a
machine which was busy for a while does not change; and what is kept is asked
for by a function of its own. The last line is what the service knows of itself.
"""
import ctypes
import json
import os
import signal
import sys
import time

KIB, MIB = 1 << 10, 1 << 20
PERIOD_S = 0.022  # from one request to the next
LEAKED_BYTES = 192 * KIB  # a request
BATCH_BYTES = 1536 * KIB
LAYER_BYTES = 24 * MIB

CUDA = ctypes.CDLL("libcuda.so.1")


def check(status):
    """A driver that refuses ends the service."""
    if status != 0:
        raise SystemExit(f"the driver says {status}")


def make_contexts(count):
    """The primary context of each device; the first is current."""
    check(CUDA.cuInit(0))
    contexts = [ctypes.c_void_p() for _ in range(count)]
    for ordinal, context in enumerate(contexts):
        check(CUDA.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal))
    check(CUDA.cuCtxSetCurrent(contexts[0]))
    return contexts


def load_layer():
    """What stays, as it should."""
    layer = ctypes.c_uint64()
    check(CUDA.cuMemAlloc_v2(ctypes.byref(layer),
                             ctypes.c_size_t(LAYER_BYTES)))


def make_batch():
    """What a request needs."""
    batch = ctypes.c_uint64()
    check(CUDA.cuMemAlloc_v2(ctypes.byref(batch),
                             ctypes.c_size_t(BATCH_BYTES)))
    return batch


def keep_reply():
    """What a request should give back, and does not."""
    reply = ctypes.c_uint64()
    check(CUDA.cuMemAlloc_v2(ctypes.byref(reply),
                             ctypes.c_size_t(LEAKED_BYTES)))


def pin_reply():
    """The same of the host's memory, for the device."""
    reply = ctypes.c_void_p()
    check(CUDA.cuMemHostAlloc(ctypes.byref(reply),
                              ctypes.c_size_t(LEAKED_BYTES), 0))


def keep_nothing():
    """As it should be."""


def answer(keep):
    """One request."""
    for batch in [make_batch() for _ in range(4)]:
        check(CUDA.cuMemFree_v2(batch))
    keep()


def serve(contexts, keep, seconds):
    """Requests to each device, until the time is over; how many to each. Only
    the last device has to do with what keeps something."""
    begin = time.monotonic()
    count = 0
    while time.monotonic() < begin + seconds:
        for context in contexts:
            check(CUDA.cuCtxSetCurrent(context))
            answer(keep if context is contexts[-1] else keep_nothing)
        count += 1
        time.sleep(max(0, begin + count * PERIOD_S - time.monotonic()))
    return count


def free_bytes():
    """Of the device that is current."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    check(CUDA.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
    return free.value


def main(case, seconds):
    """Say what was leaked, and end as the case wants it."""
    contexts = make_contexts(2 if case == "two" else 1)
    for _ in range(8):
        load_layer()
    keep = {"clean": keep_nothing, "pinned": pin_reply}.get(case, keep_reply)
    count = serve(contexts, keep, seconds)
    print(json.dumps({"leaked_per_s": count * LEAKED_BYTES / seconds,
                      "leaked_bytes": count * LEAKED_BYTES,
                      "free_bytes": free_bytes()}), flush=True)
    if case == "killed":
        make_batch()
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
