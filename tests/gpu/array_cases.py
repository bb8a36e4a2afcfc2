# SPDX-License-Identifier: LGPL-2.1-or-later
"""Arrays of CuPy or JAX that are kept.

    array_cases.py cupy|jax

CuPy keeps a pool of its own; JAX is asked to allocate each array from the
driver, and not all of the device at its start. Prints the truth.
"""
import json
import os
import sys

NUMBER = 20
BYTES = 4 << 20


def skip(why):
    print(json.dumps({"skipped": why}))
    sys.exit(77)


def keep_cupy():
    import cupy
    try:
        if cupy.cuda.runtime.getDeviceCount() == 0:
            skip("cupy sees no device")
    except cupy.cuda.runtime.CUDARuntimeError as error:
        skip(f"cupy sees no device: {error}")
    kept = [cupy.zeros(BYTES, dtype=cupy.uint8) for _ in range(NUMBER)]
    cupy.cuda.Device().synchronize()
    bytes_ = cupy.get_default_memory_pool().total_bytes()
    return kept, {"function": None, "space": "device", "live_bytes": bytes_,
                  "more": True}


def keep_jax():
    import jax
    if all(device.platform != "gpu" for device in jax.devices()):
        skip("jax sees no device")
    kept = [jax.numpy.zeros(BYTES, dtype="uint8") + i for i in range(NUMBER)]
    jax.block_until_ready(kept)
    return kept, {"function": None, "space": "device",
                  "live_bytes": NUMBER * BYTES, "more": True}


os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = "platform"
try:
    arrays, site = {"cupy": keep_cupy, "jax": keep_jax}[sys.argv[1]]()
except ImportError as failure:
    skip(f"{sys.argv[1]} is not installed: {failure}".splitlines()[0])
print(json.dumps({"sites": [site], "errors": 0}))
