# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command `seep` as the tests of it start it.

Invariant: every process that is started here is waited for, with a limit, or
is the caller's to wait for.
"""
import json
import os
import pathlib
import subprocess
import sys

from conftest import PRELOAD, SEEP, environment

LIMIT_S = 180
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") \
    else sys.executable


def seep(*words, stdin=b"", cwd=None, **variables):
    """Run the command to its end, no terminal near."""
    env = environment() | {"SEEP_PRELOAD": str(PRELOAD)} | variables
    return subprocess.run([SEEP, *map(str, words)], input=stdin, cwd=cwd,
                          env=env, capture_output=True, timeout=LIMIT_S,
                          check=False, start_new_session=True)


def run(folder, *command, options=("--quiet",), **more):
    """`seep run` into a folder; it says nothing of itself."""
    return seep("run", "-o", f"{folder}/", *options, "--", *command, **more)


def allocate(then="pass", count=64):
    """A Python program that allocates enough to be sampled."""
    return (PYTHON, "-c",
            f"import os,sys,time,signal; k=[bytearray(1<<20) for _ in "
            f"range({count})]; {then}")


def start(folder, *command, **popen):
    """The same without waiting; stdout is a pipe."""
    env = environment() | {"SEEP_PRELOAD": str(PRELOAD)}
    return subprocess.Popen([SEEP, "run", "-o", f"{folder}/", "--quiet", "--",
                             *command],
                            env=env, stdout=subprocess.PIPE,
                            start_new_session=True, **popen)


def recordings(folder):
    """Recordings in a folder."""
    return sorted(pathlib.Path(folder).glob("*.seep"))


def document(*paths):
    """`seep report --json`, which must find no fault."""
    done = seep("report", "--json", *paths)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
