# SPDX-License-Identifier: LGPL-2.1-or-later
"""A service whose tensors lie in a cache, as PyTorch's do, by ctypes.

    torch_worker.py LIBRARY CASE SECONDS

Invariant: each request does the same at a steady pace, whatever it keeps, and
what is kept is asked for by a function of its own. The last line is what the
service knows of itself.
"""
import ctypes
import json
import sys
import time

KIB, MIB = 1 << 10, 1 << 20
PAUSE_S = 0.02
LEAKED_BYTES = 192 * KIB  # a request
STEPS_PER_S = 2           # of requests that grow

CACHE = ctypes.CDLL(sys.argv[1])
CACHE.tensor_make.restype = ctypes.c_uint64
CACHE.tensor_make.argtypes = [ctypes.c_uint64]
CACHE.tensor_drop.argtypes = [ctypes.c_uint64]


def make_context():
    """The primary context of the first device."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    if cuda.cuInit(0) != 0 or cuda.cuDevicePrimaryCtxRetain(
            ctypes.byref(context), 0) != 0:
        raise SystemExit("the driver refuses")
    cuda.cuCtxSetCurrent(context)


def load_layer():
    """What stays, as it should."""
    CACHE.tensor_make(8 * MIB)


def forward(size_bytes):
    """What a request needs, and gives back."""
    for tensor in [CACHE.tensor_make(size_bytes) for _ in range(3)]:
        CACHE.tensor_drop(tensor)


def keep_reply():
    """What a request should give back, and does not."""
    CACHE.tensor_make(LEAKED_BYTES)


def serve(case, seconds):
    """Requests until the time is over; how many. Of shapes that vary none fits
    into what the one before has left."""
    start = time.monotonic()
    count = step = 0
    while time.monotonic() < start + seconds:
        forward(300 * KIB)
        if case == "leak":
            keep_reply()
        if case == "shapes" and \
                step < (time.monotonic() - start) * STEPS_PER_S:
            step += 1
            forward_shape = CACHE.tensor_make(12 * MIB + step * 64 * KIB)
            CACHE.tensor_drop(forward_shape)
        count += 1
        time.sleep(PAUSE_S)
    return count


def main(case, seconds):
    """Say what was leaked."""
    make_context()
    for _ in range(8):
        load_layer()
    count = serve(case, seconds)
    leaked = count * LEAKED_BYTES if case == "leak" else 0
    print(json.dumps({"leaked_per_s": leaked / seconds,
                      "leaked_bytes": leaked}), flush=True)


if __name__ == "__main__":
    main(sys.argv[2], float(sys.argv[3]))
