# SPDX-License-Identifier: LGPL-2.1-or-later
"""All that is hard at once, under the preload: nothing ends, nothing hangs.

The full length (SEEP_TEST_LONG=1) is a million captures of each kind, against
100,000 pairs of dlopen and dlclose.
"""
import ast
import json
import pathlib
import shutil
import sys

import pytest

from conftest import (LONG, PROGRAMS, dump, execute, program, report,
                      sums_by_site)
from test_python_frames import known

TIMEOUT_S = 1200 if LONG else 120
SIZE = {"SEEP_SIZE": 16 << 20}
PYTHON_STRESS = pathlib.Path(__file__).parent / "programs/python_stress.py"


def copied_libraries(folder):
    """Of two shapes in turn, so that one comes to lie where another was."""
    libraries = folder / "libraries"
    libraries.mkdir()
    for i, name in enumerate(["first", "second", "first", "second"]):
        shutil.copy(PROGRAMS / f"lib{name}.so", libraries / f"{i}.so")
    return libraries


def parent_of(run):
    """Every recording opens; the document of the one that is no child's."""
    documents = [dump(path) for path in run.recordings]
    parent, = [d for d in documents if not d["is_fork"]]
    return parent, len(documents) - 1


@pytest.mark.parametrize("sample", [1, 4096], ids=["exact", "4KiB"])
def test_native_code_does_all_at_once(folder, sample):
    # Not with libunwind: a handler that forks, or jumps out of its lock, leaves
    # that held, and the next capture waits for ever.
    if not (PROGRAMS / "stress").exists():
        pytest.skip("no C++ compiler")
    allocations = 1500000 if LONG else 150000
    pairs = 100000 if LONG else 1500
    children = 60 if LONG else 10
    out = folder / "out.json"
    run = execute([program("stress"), allocations, pairs, children,
                   copied_libraries(folder), out], folder, sample=sample,
                  timeout=TIMEOUT_S, **SIZE)
    assert (run.status, run.stdout) == (0, b"wrong 0\n")
    did = json.loads(out.read_text(encoding="ascii"))
    document, forks = parent_of(run)
    print(did, document["losses"], document["counters"])
    assert forks <= children
    if sample != 1:
        return
    assert forks == children and did["same"] > 0 and did["jumps"] > 0
    names = ["site_stress", "site_of_first_library", "site_of_second_library"]
    sites = sums_by_site(document["sites"],
                         [{"name": name, "space": "heap"} for name in names])
    lost = sum(document["losses"].values())
    # What was interrupted by a jump may be counted by one side only.
    assert abs(sites[names[0]]["allocated_count"]
               - did["allocations"]) <= lost + 2 * did["jumps"]
    # Of one address's code each stack names the library that was there then.
    for name in names[1:]:
        assert (3 * did["pairs"] - lost <= sites[name]["allocated_count"]
                <= 3 * did["pairs"])


def lines_of(path):
    """{last name of a function: the lines that it may be in}"""
    lines = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="ascii"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines.setdefault(node.name, set()).update(
                range(node.lineno, node.end_lineno + 1))
    return lines


def python_frames(process):
    """Each Python frame of each site: (file, line, function)."""
    return [(frame["file"], frame["line"], frame["function"])
            for site in process["sites"] for frame in site["frames"]
            if frame["kind"] == "python"]


def are_of_this_program(frames, codes_full):
    """No frame is told that cannot be; how many are the program's own.

    From 3.11 on the first instructions of some functions have no line. Where
    the table of code objects was full, or the interpreter began to end between
    two reads of a thread that goes on, frames have no name, and are counted."""
    lines = lines_of(PYTHON_STRESS)
    count = 0
    for file, line, function in frames:
        if codes_full and function is None:
            continue
        assert file and function, (file, line, function)
        last = function.split(".")[-1]
        if file.startswith("/dies/"):
            number = int(file[len("/dies/"):-len(".py")])
            assert number < 5 and (line or 0) <= 12, (file, line, function)
            assert last in ("<module>", "f", "g", "<listcomp>", "<genexpr>") \
                or function.startswith("C"), (file, line, function)
            count += 1
        elif file == str(PYTHON_STRESS) and last in lines:
            assert line in lines[last] | {None}, (file, line, function)
            count += 1
    return count


@pytest.mark.parametrize("sample, size, children", [
    (1, 96 << 20, 3), (8192, 16 << 20, 40 if LONG else 6)],
    ids=["exact", "8KiB"])
@pytest.mark.parametrize("path", known())
def test_python_does_all_at_once(folder, path, sample, size, children):
    run = execute([path, "-S", "-E", "-W", "ignore", PYTHON_STRESS,
                   30 if LONG else 1, children], folder, sample=sample,
                  timeout=TIMEOUT_S, SEEP_SIZE=size, SEEP_PYTHON="objects")
    assert run.seen == (0, b"[] {0}\n", b"")
    # Of Python no symbol is needed, and nobody looks at the series.
    processes = report("--no-symbols", "--no-series",
                       *run.recordings)["processes"]
    assert len(processes) == children + 1
    own = 0
    for process in processes:
        assert process["process"]["python"]["state"] == "on"
        assert process["losses"].get("python_busy", 0) < 1000
        own += are_of_this_program(python_frames(process),
                                   process["losses"].get("codes_full", 0))
    print(path, sample, own, [(process["losses"], process["cost"]["events"])
                              for process in processes[:1]])
    assert own > 50


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-s"]))
