# SPDX-License-Identifier: LGPL-2.1-or-later
"""Keeps or loses memory, as argument 1 says, until the file of argument 2 is
there; then nobody can ask it any more."""
import ctypes
import os
import signal
import sys
import time

KIND, STOP = sys.argv[1:]
PR_SET_DUMPABLE = 4
malloc = ctypes.CDLL(None).malloc
malloc.restype = ctypes.c_void_p


class Model:
    def __init__(self):
        self.audit = []

    def remember(self):
        self.audit.append(bytearray(4000))

    @staticmethod
    def lose():
        malloc(4000)


class Handler:
    model = Model()


if KIND == "hidden":
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
while not os.path.exists(STOP):
    for _ in range(10):
        if KIND == "lost":
            Model.lose()
        else:
            Handler.model.remember()
    time.sleep(0.02)
os.kill(os.getpid(), signal.SIGKILL)
