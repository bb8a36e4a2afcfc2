# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a stack of Python frames costs: the native walk, the frames of Python
with the merge, and names and lines, each the best of many short rounds; in the
main thread without the GIL, and then in another, where frames are copied.

Under the interpreter that runs it and those of SEEP_TEST_PYTHONS, separated by
colons. Prints two lines for each, judges nothing.
"""
import ctypes
import os
import platform
import subprocess
import sys
import threading

ROUNDS = 300
DEPTH = 18  # and the frames that call it: 20


def descend(library, depth, times):
    if depth == 0:
        return library.python_frames_time(ROUNDS, times)
    return descend(library, depth - 1, times)


def measure(path):
    library = ctypes.CDLL(path)
    library.python_frames_open(0, None)

    def measure_thread(name):
        times = (ctypes.c_double * 3)()
        for _ in range(2):  # the first is on probation
            frames = descend(library, DEPTH - 1, times)
        print(f"{platform.python_version():>8} {name:>6} {frames:6} "
              f"{times[0]:9.0f} {times[1]:15.0f} {times[2]:15.0f}", flush=True)

    measure_thread("main")
    other = threading.Thread(target=measure_thread, args=["other"])
    other.start()
    other.join()


def main():
    if sys.argv[2:] == ["--here"]:
        measure(sys.argv[1])
        return
    print(f"{'python':>8} {'thread':>6} {'frames':>6} {'native ns':>9} "
          f"{'walk + merge ns':>15} {'names, lines ns':>15}", flush=True)
    others = os.environ.get("SEEP_TEST_PYTHONS", "").split(":")
    for interpreter in [sys.executable, *filter(None, others)]:
        subprocess.run([interpreter, __file__, sys.argv[1], "--here"],
                       check=True, timeout=120)


if __name__ == "__main__":
    main()
