# SPDX-License-Identifier: LGPL-2.1-or-later
"""A file system of a server that can go silent: FOLDER, with a folder "in".

    silent_disk.py FOLDER

Prints "ready" when it is mounted; stopped, it keeps whoever looks it up
waiting, for the kernel may keep nothing that it said. Only what a look-up
needs is answered.
"""
import ctypes
import errno
import os
import stat
import struct
import sys

HEADER = struct.Struct("<IIQQIIII")
LOOKUP, GETATTR, INIT = 1, 3, 26
OPCODES_WITHOUT_ANSWER = {2, 36, 42}  # FORGET, INTERRUPT, BATCH_FORGET


def attributes(node):
    """struct fuse_attr of a folder."""
    return struct.pack("<QQQQQQIIIIIIIIII", node, 0, 0, 0, 0, 0, 0, 0, 0,
                       stat.S_IFDIR | 0o777, 2, 0, 0, 0, 4096, 0)


def answer(opcode, body):
    """Error and payload; every answer holds for no time at all."""
    if opcode == INIT:
        return 0, struct.pack("<IIIIHHIIHHI7I", 7, 31, 4096, 0, 1, 1, 4096, 1,
                              0, 0, 0, *[0] * 7)
    if opcode == GETATTR:
        return 0, struct.pack("<QII", 0, 0, 0) + attributes(1)
    if opcode == LOOKUP and body.rstrip(b"\0") == b"in":
        return 0, struct.pack("<QQQQII", 2, 0, 0, 0, 0, 0) + attributes(2)
    return errno.ENOENT if opcode == LOOKUP else errno.ENOSYS, b""


def main(folder):
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"silent", folder.encode(), b"fuse", 0, options.encode()):
        sys.exit(os.strerror(ctypes.get_errno()))
    print("ready", flush=True)
    while True:
        try:
            request = os.read(device, 1 << 17)
        except OSError as error:
            if error.errno == errno.ENODEV:
                return  # unmounted
            continue
        _, opcode, unique, *_ = HEADER.unpack_from(request)
        if opcode not in OPCODES_WITHOUT_ANSWER:
            error, payload = answer(opcode, request[HEADER.size:])
            os.write(device, struct.pack("<IiQ", 16 + len(payload), -error,
                                         unique) + payload)


if __name__ == "__main__":
    main(sys.argv[1])
