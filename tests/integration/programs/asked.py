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
        self.table = {}

    def remember(self):
        self.audit.append(bytearray(4000))

    def fill(self, i):
        self.table[0, i] = bytearray(4000)
        self.table[1, i] = bytearray(4100)
        self.table[2, i] = "x" * 3000 + str(i)
        self.table[3, i] = [i] * 500
        self.table[4, i] = bytes(3000) + b"%d" % i
        self.table[5, i] = (i, bytearray(4200))
        self.table[6, i] = bytearray(4300)
        self.table[7, i] = bytearray(4400)
        self.audit.append(bytearray(6000))

    @staticmethod
    def lose():
        malloc(4000)


class Handler:
    model = Model()


if KIND == "hidden":
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
number = 0
while not os.path.exists(STOP):
    for _ in range(10):
        if KIND == "many":
            number += 1
            Handler.model.fill(number)
            # A question that was not clear is asked again after a hundred
            # times its cost: twice in all, if the table fills faster.
            time.sleep(0.05)
        elif KIND == "lost":
            Model.lose()
        else:
            Handler.model.remember()
    time.sleep(0.02)
os.kill(os.getpid(), signal.SIGKILL)
