# SPDX-License-Identifier: LGPL-2.1-or-later
"""A redis-server that is asked to keep ever more keys, or always the same.

    verdict_redis.py grow|bounded SECONDS SEED

Invariant: the server listens on a socket in the current folder only, and is
ended and waited for here.
"""
import random
import socket
import subprocess
import sys
import time

TICKS_PER_SECOND = 50
KEYS_PER_TICK = 30
BOUND = 5000
LIMIT_S = 30


def connect(path):
    """Once the server listens."""
    end = time.monotonic() + LIMIT_S
    while True:
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(path)
            return client
        except OSError:
            client.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def encode(*words):
    """One command as the protocol has it."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


def store(client, replies, keys):
    """Set all of them, and wait for it."""
    client.sendall(b"".join(encode(b"SET", b"key:%d" % key, b"v" * 600)
                            for key in keys))
    for _ in keys:
        assert replies.readline() == b"+OK\r\n"


def drive(client, kind, seconds, draw):
    """Set so many keys a tick, to the end of the last."""
    replies = client.makefile("rb")
    if kind == "bounded":
        store(client, replies, range(BOUND))
    start = time.monotonic()
    for tick in range(seconds * TICKS_PER_SECOND):
        time.sleep(max(0, start + tick / TICKS_PER_SECOND - time.monotonic()))
        keys = [draw.randrange(1 << 60 if kind == "grow" else BOUND)
                for _ in range(KEYS_PER_TICK)]
        store(client, replies, keys)
    client.sendall(encode(b"SHUTDOWN", b"NOSAVE"))


def main(kind, seconds, seed):
    """Start it, drive it, end it."""
    server = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", "redis.sock",
         "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL)
    try:
        drive(connect("redis.sock"), kind, int(seconds),
              random.Random(int(seed)))
        assert server.wait(LIMIT_S) == 0
    finally:
        server.kill()
        server.wait()


main(*sys.argv[1:])
