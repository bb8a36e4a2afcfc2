# SPDX-License-Identifier: LGPL-2.1-or-later
"""Python in the middle of something, and code that takes another's place."""
import pytest

from command_line import document
from conftest import execute
from test_python_frames import LIBRARY, known

SIGNALS = """
import ctypes, sys, time
signals = ctypes.CDLL(sys.argv[1])
signals.python_signals_every(100)

def deep(n):
    return 0 if n == 0 else deep(n - 1) + 1

class Odd:
    def __len__(self): return 3
    def __iter__(self):
        yield 1
        yield 2

odd = Odd()
end = time.monotonic() + 3
while time.monotonic() < end:
    deep(20), len(odd), list(odd), list(map(deep, [1, 2, 3]))
    sorted([3, 2, 1], key=lambda x: deep(2))
signals.python_signals_every(0)
"""

# The same addresses again, and all that differs is a number in a text.
TEXTS = """
keep = []
for i in range(100):
    exec(compile("keep.append(bytearray(200000))", "/srv/made%03d.py" % i,
                 "exec"))
"""


def record(path, text, folder, *words):
    run = execute([path, "-c", text, *words], folder, sample=1)
    assert run.seen == (0, b"", b"")
    told, = document(*run.recordings)["processes"]
    return told


@pytest.mark.skipif(not LIBRARY.exists(), reason="not built")
@pytest.mark.parametrize("path", known())
def test_a_handler_that_maps_does_not_end_pythons_frames(path, folder):
    told = record(path, SIGNALS, folder,
                  str(LIBRARY.with_name("libpython_signals.so")))
    assert told["process"]["python"]["state"] == "on"


@pytest.mark.parametrize("path", known())
def test_code_is_told_by_its_own_file(path, folder):
    told = record(path, TEXTS, folder)
    files = [frame.get("file") or "" for site in told["sites"]
             for frame in site["frames"]]
    assert len({file for file in files if file.startswith("/srv/made")}) == 100
