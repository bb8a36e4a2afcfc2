# SPDX-License-Identifier: LGPL-2.1-or-later
"""Captures in all threads while code dies, stacks overflow, children are
forked, and the interpreter ends with threads that still capture.

    python_frames_stress.py LIBRARY [SECONDS]
"""
import ctypes
import gc
import json
import os
import sys
import threading
import time

LIBRARY = sys.argv[1]
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
HOLDING = ctypes.PyDLL(LIBRARY)
RELEASING = ctypes.CDLL(LIBRARY)
HOLDING.python_frames_words.restype = ctypes.c_char_p
for library in HOLDING, RELEASING:
    library.python_frames_spin.restype = ctypes.c_long
    library.python_frames_spin.argtypes = [ctypes.c_double]
captures = [0]
BEGAN = time.monotonic()
CAPTURES_LEAST = 1000
LATE_S = 60  # a machine that is busy needs so long at the most


def goes_on():
    past_s = time.monotonic() - BEGAN
    return past_s < SECONDS or (captures[0] <= CAPTURES_LEAST and
                                past_s < LATE_S)


def capture():
    library = RELEASING if captures[0] % 3 == 0 else HOLDING
    captures[0] += library.python_frames_spin(0.001)


def code_that_dies():
    for i in range(5):
        scope = {"capture": capture}
        exec(compile("\n" * i + "def f%d(): capture()\nf%d()" % (i, i),
                     "/dies/%d.py" % (i % 3), "exec"), scope)
    gc.collect()


def overflow(depth=0):
    if depth % 100 == 0:
        capture()
    overflow(depth + 1)


def everything():
    while goes_on():
        code_that_dies()
        try:
            overflow()
        except RecursionError:
            capture()
        for _ in (capture() for _ in range(3)):
            pass


def forked():
    child = os.fork()
    if child == 0:
        HOLDING.python_frames_after_fork()
        code_that_dies()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def main():
    HOLDING.python_frames_open(0, None)
    threads = [threading.Thread(target=everything) for _ in range(3)]
    for thread in threads:
        thread.start()
    while goes_on():
        forked()
    for thread in threads:
        thread.join()
    # In C and without the GIL beyond the end of the interpreter.
    for _ in range(3):
        threading.Thread(target=RELEASING.python_frames_spin, args=(5.0,),
                         daemon=True).start()
    state = HOLDING.python_frames_words(HOLDING.python_frames_state())
    print(json.dumps({"captures": captures[0], "state": state.decode()}))
    sys.stdout.flush()


main()
