# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stacks of greenlets: each ends where its greenlet began.

Above that lies what the last to switch to it has there, which no frame of the
greenlet has been called from.
"""
import pathlib
import subprocess
import sys
import tempfile

import pytest

from conftest import dump, execute

PYTHON = "/usr/bin/python3"
PROGRAM = """
import greenlet

def work():
    return [bytes(7000 + i) for i in range(5)]

def run(depth):
    if depth:
        return run(depth - 1)
    while True:
        work()
        greenlet.getcurrent().parent.switch()

def switch(depth):
    if depth:
        return switch(depth - 1)
    return one.switch() if one else one.switch(3)

one = greenlet.greenlet(run)
switch(5)
switch(0)
list(map(lambda _: one.switch(), [1]))
sorted([1, 2], key=lambda _: (one.switch(), 0)[1])
switch(9)
work()
"""

pytestmark = pytest.mark.skipif(
    subprocess.run([PYTHON, "-c", "import greenlet"], capture_output=True,
                   check=False).returncode != 0,
    reason="greenlet is not installed")


def test_a_greenlet_has_the_same_stack_whoever_switches_to_it():
    with tempfile.TemporaryDirectory(prefix="seep-test-") as name:
        folder = pathlib.Path(name)
        run = execute([PYTHON, "-c", PROGRAM], folder, sample=1,
                      SEEP_PYTHON="frames")
        assert run.seen == (0, b"", b"")
        document = dump(run.recordings[0])
    # One of the blocks' own size each time, from one line.
    sites = [site for site in document["sites"]
             if "work" in site["frames"] and site["largest_bytes"] >= 7000]
    inside = [site for site in sites if "run" in site["frames"]]
    outside = [site for site in sites if "run" not in site["frames"]]
    assert len(inside) == 1 and len(outside) == 1
    assert inside[0]["cut"] == 0 and outside[0]["cut"] == 0
    assert inside[0]["allocated_count"] == 6 * 5
    assert inside[0]["frames"].count("run") == 4
    assert "switch" not in inside[0]["frames"]
    assert "inner_bootstrap" in inside[0]["frames"][-1]
    assert outside[0]["frames"][-1] == "_start"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-v", "-s"]))
