# SPDX-License-Identifier: LGPL-2.1-or-later
"""Services in Python that map files of weights, and drop them or not.

    file_service.py KIND SECONDS SEED

Invariant: the files are holes in the working folder, so they cost no disk;
what is kept is kept to the end of the process.
"""
import json
import mmap
import sys
import time

import numpy

WEIGHTS_BYTES = 64 << 20
TICKS_PER_SECOND = 50
RELOAD_TICKS = 25
KEPT = []
REQUESTS_PER_TICK = 40


def serve(number):
    """What every request does: nothing of it stays."""
    return len(json.dumps({"id": number, "body": "x" * 3000}))


def load_with_mmap(path):
    """As a loader of safetensors that keeps a private view."""
    with open(path, "rb") as file:
        weights = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    weights[0] = 1
    return weights


def load_with_memmap(path):
    """As numpy.load(mmap_mode="r") does."""
    weights = numpy.memmap(path, dtype=numpy.uint8, mode="r")
    assert weights[4096] == 0
    return weights


LOADERS = {"mmap": load_with_mmap, "memmap": load_with_memmap}


def main(kind, seconds, _seed):
    """Reload twice a second; a leak keeps what it loaded before."""
    loader, keeps = kind.split("-")
    with open("weights", "wb") as file:
        file.truncate(WEIGHTS_BYTES)
    start = time.monotonic()
    ticks = int(seconds) * TICKS_PER_SECOND
    for tick in range(ticks):
        time.sleep(max(0, start + tick / TICKS_PER_SECOND - time.monotonic()))
        for _ in range(REQUESTS_PER_TICK):
            serve(tick)
        if tick % RELOAD_TICKS == 0:
            if keeps == "replaced":
                KEPT.clear()
            KEPT.append(LOADERS[loader]("weights"))
    leaked = (len(KEPT) - 1) * WEIGHTS_BYTES if keeps == "kept" else 0
    print(json.dumps({"leaked_per_s": leaked / int(seconds)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
