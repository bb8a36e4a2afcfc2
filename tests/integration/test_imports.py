# SPDX-License-Identifier: LGPL-2.1-or-later
"""Imports of many modules leave room for what the program does after them."""
import re

import pytest

from conftest import dump, execute, recordings_in
from test_python_frames import interpreters, known

PYTHON = "/usr/bin/python3"
MODULES = 120
NESTED = 24  # modules that import the next one: more calls than a stack holds
ROUNDS = 40
MIB = 1 << 20
SITES = 4096  # that 16 MiB have room for in exact mode

BODY = """
import functools
{next_one}
TABLE = {{str(i): [i] for i in range(50)}}
"""

WORK = """
import big

kept = []

def work(depth, n):
    return work(depth - 1, n) if depth else list(map(str, range(n)))

for n in range({rounds}):
    kept.append(work(n % 8, 200))
"""


def write_package(folder, modules=MODULES):
    """Of so many modules, with functions each; 24 are one in another."""
    package = folder / "site-packages" / "big"
    package.mkdir(parents=True)
    names = [f"m{i}" for i in range(modules)]
    (package / "__init__.py").write_text(
        "".join(f"from . import {name}\n" for name in names))
    for i, name in enumerate(names):
        inner = f"from . import m{i + 1}" if i % NESTED < NESTED - 1 else ""
        functions = "".join(
            f"@functools.lru_cache\ndef f{k}(a, b={k}.5): return a\n"
            for k in range(20))
        (package / f"{name}.py").write_text(
            BODY.format(next_one=inner) + functions)
    return package.parent


def test_imports_leave_room_for_the_work(folder):
    packages = write_package(folder)
    script = folder / "work.py"
    script.write_text(WORK.format(rounds=ROUNDS))

    run = execute([PYTHON, "-S", script], folder, sample=1,
                  SEEP_SIZE=16 * MIB, SEEP_PYTHON="objects",
                  PYTHONPATH=packages)

    assert run.status == 0, run.stderr
    path, = recordings_in(folder)
    told = dump(path)
    assert told["counters"]["sites_full"] == 0
    assert 0 < told["counters"]["import_sites"] <= SITES / 3
    # Those of the work have whole stacks, down to the interpreter's start.
    works = [site for site in told["sites"] if "work" in site["frames"]]
    assert {site["frames"].count("work") for site in works} == set(
        range(1, 9))
    assert all("__libc_start_main" in " ".join(site["frames"]) or
               len(site["frames"]) > 4 for site in works)


@pytest.mark.parametrize("python", [PYTHON, *(
    path for path in known() if interpreters()[path] >= 14)])
def test_an_import_is_its_users_however_deep_it_is(folder, python):
    packages = write_package(folder, modules=NESTED)
    script = folder / "deep.py"
    script.write_text("import big\n")

    run = execute([python, "-S", script], folder, sample=1,
                  SEEP_SIZE=64 * MIB, SEEP_PYTHON="objects",
                  PYTHONPATH=packages)

    assert run.status == 0, run.stderr
    path, = recordings_in(folder)
    places = {site["where"] for site in dump(path)["sites"]}
    assert "deep.py:1 <module>" in places
    assert not [place for place in places if re.match(r"m\d+\.py", place)]


LAZY = """
lazy from big import m0
lazy from zlib import crc32

def work():
    return m0.f0(1)

def main():
    work()
    crc32(b"")

main()
"""


@pytest.mark.parametrize("python", [
    path for path in known() if interpreters()[path] >= 15])
def test_a_lazy_import_is_of_the_line_that_first_uses_it(folder, python):
    packages = write_package(folder, modules=NESTED)
    script = folder / "lazy.py"
    script.write_text(LAZY)

    run = execute([python, "-S", script], folder, sample=1,
                  SEEP_SIZE=64 * MIB, SEEP_PYTHON="objects",
                  PYTHONPATH=packages)

    assert run.status == 0, run.stderr
    path, = recordings_in(folder)
    sites = dump(path)["sites"]
    places = {site["where"] for site in sites}
    assert "lazy.py:6 work" in places
    assert not [place for place in places if re.match(r"m\d+\.py", place)]
    bytes_of = sum(site["allocated_bytes"] for site in sites
                   if site["where"] == "lazy.py:6 work")
    assert bytes_of > MIB / 4


def test_a_call_into_a_deep_library_is_its_users_line(folder):
    packages = folder / "site-packages"
    packages.mkdir()
    (packages / "layers.py").write_text(
        "def forward(depth):\n"
        "    if depth == 0:\n"
        "        return bytearray(4 << 20)\n"
        "    return max([depth], key=lambda each: forward(depth - 1)"
        " is None)\n")
    script = folder / "user.py"
    script.write_text("import layers\n"
                      "def encode():\n"
                      "    return layers.forward(60)\n"
                      "def main():\n"
                      "    encode()\n"
                      "main()\n")

    run = execute([PYTHON, "-S", script], folder, sample=1,
                  SEEP_SIZE=64 * MIB, SEEP_PYTHON="objects",
                  PYTHONPATH=packages)

    assert run.status == 0, run.stderr
    path, = recordings_in(folder)
    places = {site["where"] for site in dump(path)["sites"]}
    assert "user.py:3 encode" in places
    assert "user.py:6 <module>" not in places


LINES = 3000
WIDE = """
import zlib

kept = []

class Thing:
    def __init__(self, n):
        self.parts = [str(n + i) for i in range(3)]

def make(n):
    return {{"thing": Thing(n)}}

def table():
{lines}

def work():
    kept.append([zlib.compressobj() for _ in range(10)])

table()
work()
"""


def test_pythons_objects_leave_room_for_what_libraries_take(folder):
    """Each line of a long table makes objects, by some paths each."""
    script = folder / "wide.py"
    script.write_text(WIDE.format(lines="\n".join(
        f"    kept.append(make({n * 1000}))" for n in range(LINES))))

    run = execute([PYTHON, "-S", script], folder, sample=1,
                  SEEP_SIZE=16 * MIB, SEEP_PYTHON="objects")

    assert run.status == 0, run.stderr
    path, = recordings_in(folder)
    told = dump(path)
    assert told["counters"]["sites_full"] == 0
    assert told["counters"]["stacks_short"] > 0
    works = [site for site in told["sites"]
             if "work" in site["frames"] and site["space"] == "heap"]
    assert sum(site["live_bytes"] for site in works) > 2 * MIB
    assert all("deflateInit2_" in site["frames"] for site in works
               if site["live_bytes"] > 4096)
