# SPDX-License-Identifier: LGPL-2.1-or-later
"""The manual says of every verb and variable what the program does.

Invariant: what must be there is read from the program and its source.
"""
import os
import pathlib
import re
import subprocess

import pytest

from conftest import BUILD, need
from command_line import LIMIT_S
from verb_list import help_of, options, verbs

SOURCE = pathlib.Path(os.environ.get(
    "SEEP_SOURCE", pathlib.Path(__file__).parents[2]))
MADE = BUILD / "tools/seep.1"  # of tools/man/seep.1.in and the program
PAGES = [MADE, *sorted((SOURCE / "tools/man").glob("*.[357]"))]
PAGE = MADE.read_text(encoding="utf-8")
# What the pytest plugin tells itself when it starts pytest again, `seep run`
# the process that it starts, and what those have who build and test seep.
PRIVATE = {"SEEP_PYTEST_SAVED", "SEEP_PYTEST_FOLDER", "SEEP_COMMAND_PID",
           "SEEP_FILTER", "SEEP_BUILD", "SEEP_CUDA_TOOLKIT", "SEEP_SOURCE"}
# Read to be looked at or handed on, not to change what seep does.
NOT_OURS = {"HOME", "LD_PRELOAD", "LD_LIBRARY_PATH", "PATH"}


def section(name):
    """A .Sh of seep(1)."""
    return re.search(rf"^\.Sh {name}\n(.*?)(?=^\.Sh |\Z)", PAGE,
                     re.M | re.S)[1]


def part(verb):
    """What is said of a verb."""
    found = re.search(rf"^\.Ss seep {verb}\n(.*?)(?=^\.S[sh] |\Z)",
                      section("DESCRIPTION"), re.M | re.S)
    assert found, f"seep(1) has no part on {verb}"
    return found[1]


def synopsis(verb):
    """How a verb is called."""
    found = re.search(rf"^\.Nm\n\.Cm {verb}\n(.*?)(?=^\.Nm$|\Z)",
                      section("SYNOPSIS"), re.M | re.S)
    assert found, f"seep(1) has no synopsis of {verb}"
    return found[1]


def named(text):
    """Long options in mdoc."""
    return {f"--{name}" for name in re.findall(r"Fl Fl ([a-z][a-z0-9-]*)",
                                               text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_formatted_without_a_warning(page):
    need("groff")
    done = subprocess.run(
        ["groff", "-mandoc", "-ww", "-rLL=80n", "-Tutf8", page],
        capture_output=True, check=False, timeout=LIMIT_S)
    assert (done.returncode, done.stderr) == (0, b"")
    text = re.sub("\x1b\\[[0-9;]*m|.\b", "", done.stdout.decode())
    assert max(map(len, text.split("\n"))) <= 80


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_what_mdoc_should_be(page):
    need("mandoc")
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page],
                          capture_output=True, check=False, timeout=LIMIT_S)
    assert done.stdout.decode() == ""


@pytest.mark.parametrize("verb", verbs())
def test_the_manual_has_the_options_of_the_help(verb):
    ours = set(options(verb)) - {"--help"}
    items = "\n".join(re.findall(r"^\.It .*", part(verb), re.M))
    assert named(items) == ours
    # there a short name may stand for the long one
    short = {long for short, long in re.findall(r"(-\w), (--[a-z-]+)",
                                                help_of(verb))
             if f"Fl {short[1:]} " in synopsis(verb)}
    assert named(synopsis(verb)) | short == ours


@pytest.mark.parametrize("verb", verbs())
def test_the_manual_says_as_the_help_which_options_take_a_value(verb):
    items = "\n".join(re.findall(r"^\.It .*", part(verb), re.M))
    found = re.findall(r"Fl Fl ([a-z][a-z0-9-]*)( Ar)?", items)
    assert {f"--{name}": value != "" for name, value in found} == {
        name: value for name, value in options(verb).items()
        if name != "--help"}
    letters = re.findall(r"^  (-\w), (--[a-z-]+)", help_of(verb), re.M)
    for letter, name in letters:
        assert name == "--help" or f"Fl {letter[1:]} Ar" in items


@pytest.mark.parametrize("verb", verbs())
def test_the_manual_has_an_example_of_the_verb(verb):
    lines = re.findall(r"^\.Dl (.*)", section("EXAMPLES") + part(verb), re.M)
    assert any(re.search(rf"seep[ -]{verb} ", line) for line in lines)


def test_examples_are_paragraphs():
    assert not re.search(r"^\.Dl .*\n(?!\.(Dl|Pp)|\Z).*", section("EXAMPLES"),
                         re.M)


@pytest.mark.parametrize("verb", verbs())
def test_the_manual_has_the_exit_codes_of_the_help(verb):
    said = help_of(verb).split("\n\n")[-1]
    *listed, below = section("EXIT STATUS").split(".El\n")
    items = dict(re.findall(r"^\.It (\d+)\n(.*?)(?=^\.It |\Z)", listed[0],
                            re.M | re.S))
    mine = part(verb) + (below if f".Cm {verb}\n" in below else "")
    for code in set(re.findall(r"\d+", said)):
        if code in ("0", "1", "2"):
            assert code in items
        elif not re.search(rf"\.Cm .*\b{verb}\b", items.get(code, "")):
            assert re.search(rf"\b{code}\b", mine), code


def source_files():
    """All that may read a variable."""
    for folder in ("src", "tools/seep"):
        for ending in ("c", "h"):
            yield from (SOURCE / folder).rglob(f"*.{ending}")
    yield from (SOURCE / "tools/python").rglob("*.py")


def test_the_manual_has_the_variables_that_the_code_reads():
    read = set()
    for path in source_files():
        read |= set(re.findall(r'"(SEEP_[A-Z_]*[A-Z])"',
                               path.read_text(encoding="utf-8")))
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    told = set(re.findall(r"^\.It Ev (SEEP_[A-Z_]+)", pages, re.M))
    assert told == read - PRIVATE


def test_the_manual_has_the_variables_of_others_that_the_command_reads():
    read = set()
    for path in (SOURCE / "tools/seep").glob("*.c"):
        text = path.read_text(encoding="utf-8")
        read |= set(re.findall(r'getenv\("([A-Z_]+)"\)', text))
    for name in read - NOT_OURS:
        assert re.search(rf"^\.(It )?Ev .*\b{name}\b", PAGE, re.M), name
