# SPDX-License-Identifier: LGPL-2.1-or-later
"""Python that goes on under a filter of system calls that kills, beside a
thread that is in C and without the GIL.

    python_sandbox.py LIBRARY ROUNDS

Invariant: only the main thread runs Python under the filter, and there is
room in pymalloc's arenas: nothing needs a lock or a mapping.
"""
import ctypes
import gc
import os
import sys
import threading

LIBRARY = ctypes.CDLL(sys.argv[1])  # without the GIL
HOLDING = ctypes.PyDLL(sys.argv[1])
ROUNDS = int(sys.argv[2])
BORROWED, MAIN = 3, 0
kept = []


def large_blocks(count):
    for _ in range(count):
        kept.append(bytearray(3000))


def small_objects(count):
    kept.append([{str(i): i} for i in range(count)])


def in_c(count):
    HOLDING.site_main.restype = ctypes.c_void_p
    for _ in range(count):
        HOLDING.site_main(333)


def generated(count):
    def numbers():
        for i in range(count):
            yield bytearray(2000)
    kept.append(list(numbers()))


def code_made_there(count):
    scope = {"kept": kept, "count": count}
    exec(compile("def late(n):\n    kept.append(bytearray(n))\n"
                 "for i in range(count): late(2500)\n", "/made/there.py",
                 "exec"), scope)


def failing(depth):
    if depth == 0:
        raise ValueError(bytearray(2200))
    failing(depth - 1)


def use(count):
    large_blocks(count)
    small_objects(count)
    in_c(count)
    generated(count)
    code_made_there(count)
    for i in range(count):
        try:
            failing(i % 20)
        except ValueError as error:
            kept.append(error.args)
    gc.collect()


def in_a_thread():
    LIBRARY.sandbox_thread(BORROWED, ROUNDS)


def make_room():
    """A third of each pool stays in use: no arena is given back."""
    blocks = [bytes(size) for _ in range(3000) for size in range(1, 500, 16)]
    kept.append(blocks[::3])


def main():
    assert LIBRARY.sandbox_prepare()
    make_room()
    threading.Thread(target=in_a_thread, daemon=True).start()
    use(ROUNDS)
    LIBRARY.sandbox_give_turn.restype = None
    HOLDING.sandbox_give_turn(BORROWED)
    if not HOLDING.sandbox_enter():
        os._exit(77)
    use(ROUNDS)
    HOLDING.sandbox_give_turn(BORROWED)
    use(ROUNDS)
    os.write(1, b"went on in the sandbox\n")
    os._exit(0)


main()
