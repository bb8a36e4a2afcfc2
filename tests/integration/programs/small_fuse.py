# SPDX-License-Identifier: LGPL-2.1-or-later
"""A file system of one file, to be stopped.

    small_fuse.py MOUNT_POINT FILE

Shows FILE as MOUNT_POINT/x.seep and says "ready" when it is mounted, or why it
cannot be. Nothing is cached, so who looks at anything waits for this process:
stopped by SIGSTOP it is a file system that does not answer. It unmounts itself
when its stdin ends.

Invariant: speaks the kernel's protocol itself (7.12 on), so nothing need be
installed.
"""
import contextlib
import ctypes
import errno
import os
import select
import struct
import sys

(LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR,
 READDIR, RELEASEDIR, BATCH_FORGET) = (1, 2, 3, 14, 15, 17, 18, 25, 26, 27, 28,
                                       29, 42)
NAME = b"x.seep"
ROOT, FILE = 1, 2
MNT_DETACH = 2


def attributes(node, size):
    """struct fuse_attr."""
    mode, links = (0o40755, 2) if node == ROOT else (0o100644, 1)
    return struct.pack("<QQQQQQIIIIIIIIII", node, 0 if node == ROOT else size,
                       0, 0, 0, 0, 0, 0, 0, mode, links, os.getuid(),
                       os.getgid(), 0, 4096, 0)


def entries(offset):
    """struct fuse_dirent for each name."""
    rows = [(ROOT, 4, b"."), (ROOT, 4, b".."), (FILE, 8, NAME)]
    out = b""
    for i, (node, kind, name) in enumerate(rows[offset:], offset + 1):
        row = struct.pack("<QQII", node, i, len(name), kind) + name
        out += row + bytes(-len(row) % 8)
    return out


def answer(data, operation, node, body):
    """(error, payload) of one request; None where there is none."""
    if operation == INIT:
        return 0, struct.pack("<IIIIHHIIHHI28x", 7, 31, 0x20000, 0, 12, 12,
                              0x20000, 1, 32, 0, 0)
    if operation == LOOKUP:
        if body.rstrip(b"\0") != NAME:
            return -errno.ENOENT, b""
        return 0, struct.pack("<QQQQII", FILE, 0, 0, 0, 0, 0) + attributes(
            FILE, len(data))
    if operation == GETATTR:
        return 0, struct.pack("<QII", 0, 0, 0) + attributes(node, len(data))
    if operation in (OPEN, OPENDIR):
        return 0, struct.pack("<QII", 0, 0, 0)
    if operation == READ:
        _, offset, size = struct.unpack_from("<QQI", body)
        return 0, data[offset:offset + size]
    if operation == READDIR:
        return 0, entries(struct.unpack_from("<QQ", body)[1])
    if operation == STATFS:
        return 0, struct.pack("<QQQQQIIII24x", 0, 0, 0, 0, 0, 4096, 255, 0, 0)
    if operation in (RELEASE, RELEASEDIR, FLUSH):
        return 0, b""
    if operation in (FORGET, BATCH_FORGET):
        return None
    return -errno.ENOSYS, b""


def serve(device, data):
    """Requests, until there is no more stdin."""
    while True:
        ready, _, _ = select.select([device, 0], [], [])
        if 0 in ready and not os.read(0, 1):
            return
        try:
            request = os.read(device, 1 << 18)
        except BlockingIOError:
            continue  # who asked was killed, and the request is gone
        _, operation, unique, node = struct.unpack_from("<IIQQ", request)
        said = answer(data, operation, node, request[40:])
        if said is not None:
            error, payload = said
            with contextlib.suppress(FileNotFoundError):  # killed meanwhile
                os.write(device, struct.pack("<IiQ", 16 + len(payload), error,
                                             unique) + payload)


def main(point, path):
    """Mount, serve, unmount."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as file:
        data = file.read()
    try:
        device = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
    except OSError as error:
        print(error, flush=True)
        return
    options = f"fd={device},rootmode=40000,user_id={os.getuid()}," \
              f"group_id={os.getgid()}"
    if libc.mount(b"seep-test", point.encode(), b"fuse", 0,
                  options.encode()) != 0:
        print(os.strerror(ctypes.get_errno()), flush=True)
        return
    print("ready", flush=True)
    try:
        serve(device, data)
    finally:
        libc.umount2(point.encode(), MNT_DETACH)


if __name__ == "__main__":
    main(*sys.argv[1:])
