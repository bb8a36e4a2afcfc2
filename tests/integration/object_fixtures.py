# SPDX-License-Identifier: LGPL-2.1-or-later
"""programs/python_objects.py under the preload, and what was recorded of it."""
import ast
import pathlib
import subprocess

from conftest import LONG, dump, execute
from test_python_frames import WHERE, known

PROGRAM = pathlib.Path(__file__).parent / "programs" / "python_objects.py"
KINDS = ("small", "large", "plain", "bodies", "churn", "halved", "resized")
ARENA_BYTES = 1 << 18


def processes_of(done):
    """What is known of each process. A report of every frame of 10,000 stacks
    is 200 MB: what is needed here are totals and the line's function."""
    return [dump(path, "--totals") for path in done.recordings]


def run(folder, path, *what, before=(), sample=1, python="objects",
        **variables):
    """(what should be found, each recording's process)"""
    done = execute([path, "-S", "-E", *before, PROGRAM, *what], folder,
                   sample=sample, SEEP_PYTHON=python, **variables)
    assert (done.status, done.stderr) == (0, b"")
    return ast.literal_eval(done.stdout.decode()), processes_of(done)


def is_recorded(process):
    return process["python_objects"] == "recorded"


def line_of(site):
    """The innermost Python function of a site, "" if it has none."""
    return site["python"].split(".")[-1]


def sites_of(process, function, space=None):
    return [site for site in process["sites"] if line_of(site) == function
            and space in (None, site["space"])]


def is_there(process, function, row, space="python"):
    """That many blocks of that size were made and kept. They can be of several
    stacks: a line that ran often is run in another way."""
    size, made, held = row
    sites = sites_of(process, function, space)
    if made is None:
        return size == sum(site["live_bytes"] for site in sites)
    same = [site for site in sites
            if site["allocated_bytes"] == size * site["allocated_count"]]
    return (made, held * size, held) == tuple(
        sum(site[key] for site in same)
        for key in ("allocated_count", "live_bytes", "live_count"))


def live_bytes(process, function):
    """An interpreter that adapts its code has more than one stack a line."""
    return sum(site["live_bytes"]
               for site in sites_of(process, function, "python"))


def has_arenas(process):
    return any(site["space"] == "mapped"
               and site["largest_bytes"] >= ARENA_BYTES
               for site in process["sites"])


def missing(process, expected, space="python"):
    """The rows that are not there, what is of their line, and what of their
    size elsewhere; with what was lost."""
    return [(function, row, [(site["space"], site["python"],
                              site["allocated_bytes"],
                              site["allocated_count"], site["live_bytes"])
                             for site in process["sites"]
                             if line_of(site) == function
                             or site["allocated_bytes"] == row[0] * site[
                                 "allocated_count"]],
             process["losses"])
            for function, rows in expected.items() for row in rows
            if not is_there(process, function, row, space)]


def by_turns(*ways):
    """(path, way): the interpreter that is tested most goes every way, each
    other one of them, by turns, unless at length."""
    return [(path, way) for i, path in enumerate(known())
            for j, way in enumerate(ways)
            if LONG or i == 0 or i % len(ways) == j]


def libraries():
    """(path of a libpython, its home) of each interpreter that has one"""
    for path in known():
        done = subprocess.run([path, "-c", WHERE], capture_output=True,
                              text=True, timeout=60, check=True)
        home, folder, name = done.stdout.split()[:3]
        library = pathlib.Path(folder) / name
        if library.exists() and ".so" in library.name:
            yield str(library), home
