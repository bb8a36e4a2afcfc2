# SPDX-License-Identifier: LGPL-2.1-or-later
"""Messages that come in large buffers, the next of which is there already; of
each some bytes are kept: small blocks between free pieces.

    pins.py SECONDS
"""
import sys
import time

BUFFER_BYTES = 65536
A_SECOND = 20
kept = []
ahead = bytearray(BUFFER_BYTES)


def receive():
    global ahead
    message, ahead = ahead, bytearray(b"x") * BUFFER_BYTES
    del message[20:]
    return message


for _ in range(A_SECOND * int(sys.argv[1])):
    kept.append(receive())
    time.sleep(1 / A_SECOND)
