# SPDX-License-Identifier: LGPL-2.1-or-later
"""gunicorn with max_requests: five workers, one after the other.

Runs the server as its child, on a socket in a temporary folder, asks it as
often as five workers answer, and ends it.
"""
import argparse
import http.client
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

import web

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=5)
parser.add_argument("--seconds", type=float, default=20, help="of each")
parser.add_argument("--rate", type=float, default=15, help="requests a second")
arguments = parser.parse_args()


class Connection(http.client.HTTPConnection):
    """To a socket of the file system."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.host)


def ask(address):
    """One request; False while nobody answers."""
    connection = Connection(address, timeout=10)
    try:
        connection.request("GET", "/x", headers={"Host": "x"})
        return connection.getresponse().read() == b"/x"
    except OSError:
        return False
    finally:
        connection.close()


def main():
    """All requests, at their rate."""
    each = int(arguments.seconds * arguments.rate)
    with tempfile.TemporaryDirectory() as folder:
        address = f"{folder}/socket"
        server = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "--bind", f"unix:{address}",
             "--max-requests", str(each), "--chdir",
             str(pathlib.Path(__file__).parent), "web:app"],
            stderr=subprocess.DEVNULL)
        answered = 0
        while answered < each * arguments.workers:
            answered += ask(address)
            time.sleep(1 / arguments.rate)
        server.terminate()
        server.wait(60)
    print(json.dumps({"kept_bytes": answered * web.LINE_BYTES,
                      "requests": answered}))


main()
