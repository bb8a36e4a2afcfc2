# SPDX-License-Identifier: LGPL-2.1-or-later
"""A redis-server that is asked to keep ever more keys, or always the same.

    redis_service.py redis-grows|redis-bounded SECONDS SEED END

END is kill or sigterm (upon which the server ends by itself). Prints one line
of JSON as the other services do; what is kept is what the server says of it.

Invariant: the server listens on a socket in the current folder only, and is
ended and waited for here.
"""
import json
import random
import socket
import subprocess
import sys
import time

TICKS_PER_SECOND = 50
KEYS_PER_TICK = 8
BOUND = 4000
PARTS = 50
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
    return b"".join([b"*%d\r\n" % len(words)]
                    + [b"$%d\r\n%s\r\n" % (len(word), word)
                       for word in words])


def store(client, replies, keys):
    """Set all of them, and wait for it."""
    client.sendall(b"".join(encode(b"SET", b"key:%d" % key, b"v" * 600)
                            for key in keys))
    for _ in keys:
        assert replies.readline() == b"+OK\r\n"


def used_memory(client, replies):
    """As the server counts it."""
    client.sendall(encode(b"INFO", b"memory"))
    size = int(replies.readline()[1:])
    text = replies.read(size + 2)
    return int(text.split(b"used_memory:")[1].split(b"\r\n")[0])


def drive(client, kind, seconds, draw):
    """Set so many keys a tick to the end; what was kept by each part."""
    replies = client.makefile("rb")
    store(client, replies, range(BOUND))
    first = used_memory(client, replies)
    kept, start = [], time.monotonic()
    ticks = int(seconds * TICKS_PER_SECOND)
    for tick in range(ticks):
        time.sleep(max(0, start + tick / TICKS_PER_SECOND - time.monotonic()))
        keys = [draw.randrange(1 << 60 if kind == "redis-grows" else BOUND)
                for _ in range(KEYS_PER_TICK)]
        store(client, replies, keys)
        while len(kept) < (tick + 1) * PARTS // ticks:
            kept.append(used_memory(client, replies) - first)
    return kept


def main(kind, seconds, seed, end):
    """Start it, drive it, end it."""
    seconds = float(seconds)
    server = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", "redis.sock",
         "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL)
    try:
        kept = drive(connect("redis.sock"), kind, seconds,
                     random.Random(int(seed)))
        leaks = kind == "redis-grows"
        step = int(seconds * TICKS_PER_SECOND) * KEYS_PER_TICK // PARTS
        print(json.dumps({
            "pid": server.pid, "leaks": leaks, "functions": "", "even": False,
            "seconds": seconds, "kept_bytes": kept[-1] if leaks else 0,
            "kept_blocks": step * PARTS * 2, "kept_by_part": kept,
            "requests_by_part": [(i + 1) * step for i in range(PARTS)],
            "requests": step * PARTS}), flush=True)
        if end != "kill":
            server.terminate()
            server.wait(LIMIT_S)
    finally:
        server.kill()
        server.wait()


main(*sys.argv[1:])
