# SPDX-License-Identifier: LGPL-2.1-or-later
"""Uses a library with an allocator of its own: own_pool.py LIBRARY KIND SECONDS

leak: two lines keep what they take. cache: the same up to a bound.
churn: all is given back.
"""
import ctypes
import sys
import time

PAUSE_S = 0.02
BOUND = 400  # blocks that a cache keeps

pool = ctypes.CDLL(sys.argv[1])
pool.pool_take.restype = ctypes.c_void_p
pool.pool_give.argtypes = [ctypes.c_void_p]
kept = []


def keep_answer():
    kept.append(pool.pool_take())


def keep_request():
    kept.append(pool.pool_take())


def serve(kind, number):
    keep_answer() if number % 3 else keep_request()
    if kind == "churn" or kind == "cache" and len(kept) > BOUND:
        pool.pool_give(kept.pop())


end = time.monotonic() + float(sys.argv[3])
number = 0
while time.monotonic() < end:
    number += 1
    serve(sys.argv[2], number)
    bytearray(200000)  # work, by which growth is judged
    time.sleep(PAUSE_S)
