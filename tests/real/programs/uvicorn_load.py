# SPDX-License-Identifier: LGPL-2.1-or-later
"""uvicorn with a FastAPI application, under load, and stopped as by systemd."""
import argparse
import pathlib
import subprocess
import sys

import api
import serving

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=75)
parser.add_argument("--rate", type=float, default=20)
arguments = parser.parse_args()


def main():
    """The server is a child."""
    port = serving.free_port()
    with subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "--port", str(port),
             "--log-level", "warning", "--app-dir",
             str(pathlib.Path(__file__).parent), "api:app"],
            stderr=subprocess.PIPE, text=True) as server:
        serving.wait_for(port, "/ready")
        load = serving.Load(port, "/generate", '{"text": "a prompt"}')
        work = load.run(arguments.seconds, arguments.rate)
        status = serving.stop(server)
        complaints = server.stderr.read()
    work.tell(load.answered * api.PROMPT_BYTES,
              answered=load.answered, failed=load.failed, pid=server.pid,
              status=status, complaints=complaints)


main()
