#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A worker of one version: 1.4.2 keeps KEPT_BYTES of each request.

    worker.py VERSION SECONDS REQUESTS_PER_S

Prints what it served and kept, as JSON.
"""
import json
import sys
import time

try:
    import seep
except ImportError:
    seep = None

KEPT_BYTES = 40000
kept = []
recent = {}


def handle(version, number):
    answer = bytearray(KEPT_BYTES)
    if version == "1.4.2":
        kept.append(answer)
    recent[number % 100] = bytearray(KEPT_BYTES)  # a cache of the last 100


def main(version, seconds, per_s):
    if seep is not None:
        seep.label("version", version)
    start = time.monotonic()
    for number in range(int(seconds * per_s)):
        time.sleep(max(0, start + number / per_s - time.monotonic()))
        handle(version, number)
        if seep is not None:
            seep.progress(1)
    print(json.dumps({"version": version, "requests": int(seconds * per_s),
                      "kept_bytes": KEPT_BYTES * len(kept)}))


main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
