# SPDX-License-Identifier: LGPL-2.1-or-later
"""Python's frames, under every interpreter that this machine has.

SEEP_TEST_PYTHONS adds interpreters, separated by colons.
"""
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

BUILD = pathlib.Path(os.environ.get("SEEP_BUILD", "build"))
PROGRAMS = pathlib.Path(__file__).parent / "programs"
LIBRARY = BUILD / "tests/integration/programs/libpython_frames.so"
TIMEOUT_S = 120
PRELOAD = (BUILD / "src/preload/libseep.so").absolute()
EMBED = BUILD / "tests/integration/programs/python_embed"
WHERE = ("import sys, sysconfig as s; print(sys.prefix,"
         " s.get_config_var('LIBDIR'), s.get_config_var('INSTSONAME'))")
PROBE = ("import sys; print(*sys.version_info[:2], sys.implementation.name,"
         " sys.executable)")

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="not built")


def places():
    yield from os.environ.get("SEEP_TEST_PYTHONS", "").split(":")
    yield sys.executable
    for minor in range(8, 17):
        yield shutil.which(f"python3.{minor}")
        yield f"/usr/bin/python3.{minor}"
    for root in (os.environ.get("PYENV_ROOT"), pathlib.Path.home() / ".pyenv"):
        if root:
            yield from sorted(map(str, pathlib.Path(root).glob(
                "versions/3.*/bin/python3")))
    yield "/usr/bin/python3"


@functools.lru_cache(None)
def interpreters():
    """(path, minor) of each CPython, once."""
    found = {}
    for place in filter(None, places()):
        path = os.path.realpath(place)
        if path in found or not os.access(path, os.X_OK):
            continue
        done = subprocess.run([path, "-c", PROBE], capture_output=True,
                              text=True, timeout=TIMEOUT_S, check=False)
        words = done.stdout.split()
        if done.returncode == 0 and words[0] == "3" and words[2] == "cpython":
            # What was found may be a script that leads to it.
            found[os.path.realpath(words[3])] = int(words[1])
    return found


def known():
    return [path for path, minor in interpreters().items()
            if 8 <= minor <= 15]


def run(path, *argv, before=(), **variables):
    done = subprocess.run([path, *before, "-W", "ignore", *map(str, argv)],
                          capture_output=True, timeout=TIMEOUT_S,
                          env={**os.environ, **variables}, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_an_interpreter_is_here():
    assert known()


@pytest.mark.parametrize("path", known())
def test_each_stack_is_what_python_says(path):
    seen = run(path, PROGRAMS / "python_frames_check.py", LIBRARY)
    assert seen["compared"] >= 2000
    assert seen["wrong"] == 0, seen["examples"]
    assert seen["state"] == "on" and seen["version_is_right"]
    assert seen["lost"] < seen["detached"] / 4
    if interpreters()[path] >= 11:
        assert seen["unmerged"] == 0 and seen["merged"] > 1500, seen
    else:
        # An exception thrown into a generator that delegates.
        assert seen["unmerged"] < seen["merged"] / 50, seen["examples"]


COMPILES = "import sys; print(sys._jit.is_available())"


@pytest.mark.parametrize("path", [
    path for path in known() if interpreters()[path] >= 14])
def test_code_that_python_compiled_has_its_lines(path):
    """Its native frames end there; Python's are all in the stack."""
    done = subprocess.run([path, "-c", COMPILES], capture_output=True,
                          text=True, timeout=TIMEOUT_S, check=True)
    if done.stdout != "True\n":
        pytest.skip(f"{path} compiles nothing")
    seen = run(path, PROGRAMS / "python_frames_check.py", LIBRARY,
               PYTHON_JIT="1")
    assert seen["wrong"] == 0, seen["examples"]
    assert seen["state"] == "on"


def copies(path, folder, times):
    """How often the worker's stacks were copied from, as strace counts."""
    counts = folder / f"{times}.counts"
    done = subprocess.run(
        ["strace", "-f", "-c", "-e", "trace=process_vm_readv", "-o", counts,
         "-E", f"LD_PRELOAD={PRELOAD}", "-E", f"SEEP_OUT={folder}/%p.seep",
         "-E", "SEEP_SAMPLE=512K", path, "-S",
         PROGRAMS / "python_workers.py", str(times)],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0 and "ptrace" in done.stderr:
        pytest.skip(done.stderr.splitlines()[0])
    assert done.returncode == 0, done.stderr
    return sum(int(line.split()[3]) for line in counts.read_text().splitlines()
               if line.endswith("process_vm_readv"))


@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
@pytest.mark.parametrize("path", [
    path for path in known() if interpreters()[path] >= 11])
def test_without_the_gil_one_or_two_calls_copy_a_stack(path, tmp_path):
    """1.6 where 14 were needed for code objects and names. The first stacks,
    which are checked, are in both counts."""
    more = copies(path, tmp_path, 400) - copies(path, tmp_path, 200)
    assert 200 <= more < 3 * 200


@pytest.mark.parametrize("path", known())
def test_an_interpreter_that_came_late_is_read_too(path):
    seen = run(path, PROGRAMS / "python_frames_check.py", LIBRARY, "late")
    assert seen["wrong"] == 0, seen["examples"]
    assert seen["state"] == "on"


@pytest.mark.parametrize("path", known())
def test_a_program_that_loads_python_and_unloads_it(path):
    done = subprocess.run([path, "-c", WHERE], capture_output=True, text=True,
                          timeout=TIMEOUT_S, check=True)
    home, folder, name = done.stdout.split()
    library = pathlib.Path(folder) / name
    if library.suffix == ".a" or not library.exists():
        pytest.skip(f"no shared library of {path}")
    seen = run(EMBED, PROGRAMS / "python_frames_check.py", LIBRARY, "late",
               before=(library, LIBRARY), PYTHONHOME=home)
    assert seen["wrong"] == 0, seen["examples"]
    assert seen["state"] == "on"


@pytest.mark.parametrize("path", known())
def test_captures_go_on_while_all_else_happens_and_to_the_end(path):
    seen = run(path, PROGRAMS / "python_frames_stress.py", LIBRARY)
    assert seen["state"] == "on"
    assert seen["captures"] > 1000
