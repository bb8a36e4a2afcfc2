# SPDX-License-Identifier: LGPL-2.1-or-later
"""A server that starts a tool for each request, and keeps what it said.

Tools that exist for a moment, a shell that is replaced by another program, a
tool of Python that keeps nothing, one that is killed.
"""
import argparse
import signal
import subprocess
import sys
import time

from truth import Work

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=60)
parser.add_argument("--rate", type=float, default=2 << 20)
arguments = parser.parse_args()
REPLY_BYTES = 512 << 10
kept = []
# (a tool, its exit status, what it prints)
TOOLS = [
    (["true"], 0, ""),
    (["sh", "-c", "exit 3"], 3, ""),
    (["sh", "-c", "exec sleep 0.05"], 0, ""),
    (["env", "-i", "/bin/echo", "nothing"], 0, "nothing\n"),
    (["bash", "-c", "seq 3 | tail -n 1"], 0, "3\n"),
    (["sh", "-c", "kill -9 $$"], -signal.SIGKILL, ""),
    ([sys.executable, "-c", "print(len(bytearray(1 << 22)))"], 0,
     "4194304\n"),
]


def keep_reply(text):
    """What is not given back."""
    kept.append(bytearray(REPLY_BYTES))
    return text


def run_one(tool, status, text):
    """@return what was not as it is without anybody looking"""
    done = subprocess.run(tool, capture_output=True, text=True, check=False,
                          timeout=60)
    keep_reply(done.stdout)
    if (done.returncode, done.stdout, done.stderr) == (status, text, ""):
        return None
    return f"{tool}: {done.returncode} {done.stdout!r} {done.stderr!r}"


def main():
    """One after the other."""
    work = Work(arguments.seconds)
    complaints = []
    for count in work:
        complaint = run_one(*TOOLS[count % len(TOOLS)])
        if complaint:
            complaints.append(complaint)
        while len(kept) * REPLY_BYTES > arguments.rate * (
                time.monotonic() - work.start):
            time.sleep(0.02)
    work.tell(len(kept) * REPLY_BYTES, complaints=complaints)


main()
