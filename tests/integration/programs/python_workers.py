# SPDX-License-Identifier: LGPL-2.1-or-later
"""A worker thread that mallocs and frees without the GIL, so many times, in
stacks of 8 to 40 frames that differ: python_workers.py TIMES"""
import ctypes
import random
import sys
import threading

LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = ctypes.c_void_p
LIBC.malloc.argtypes = [ctypes.c_size_t]
LIBC.free.argtypes = [ctypes.c_void_p]
TEXT = """
def step(stack):
    if not stack:
        libc.free(libc.malloc(8 << 20))
        return
    stack[0](stack[1:])
"""


def make(number):
    scope = {"libc": LIBC}
    exec(compile(TEXT, f"/srv/step{number}.py", "exec"), scope)
    return scope["step"]


def work():
    source = random.Random(3)
    steps = [make(number) for number in range(40)]
    for _ in range(int(sys.argv[1])):
        stack = [source.choice(steps) for _ in range(source.randint(8, 40))]
        stack[0](stack[1:])


worker = threading.Thread(target=work)
worker.start()
worker.join()
