# SPDX-License-Identifier: LGPL-2.1-or-later
"""Completion in bash offers what the help of the verbs says, and no more.

Invariant: what must be offered is read from the program, never listed here,
so that a verb is held to this as soon as there is one.
"""
import os
import pathlib
import pty
import re
import select
import subprocess
import time

import pytest

from conftest import PRELOAD, SEEP, environment, need
from command_line import LIMIT_S, seep
from verb_list import options, verbs

SOURCE = pathlib.Path(os.environ.get(
    "SEEP_SOURCE", pathlib.Path(__file__).parents[2]))
COMPLETION = SOURCE / "tools/completion/seep"
LIBRARY = pathlib.Path("/usr/share/bash-completion/bash_completion")
# sourced with the library of bash-completion and without
SOURCES = [(COMPLETION,), (LIBRARY, COMPLETION)]


def offered(*words, sources=SOURCES[0], cwd=None):
    """What is offered for the last word, `seep` left out."""
    need("bash")
    script = "".join(f"source '{path}'; " for path in sources) + (
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; '
        'COMP_POINT=${#COMP_LINE}; _seep "$1"; '
        'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", str(SEEP), *map(str, words)],
        capture_output=True, env=environment(), timeout=LIMIT_S, check=False,
        cwd=cwd)
    # the library's own functions ask for the shell that completes
    assert all(b"compopt:" in line for line in done.stderr.splitlines())
    return [word for word in done.stdout.decode().split("\n") if word]


def test_every_verb_is_offered():
    assert set(offered("")) == {*verbs(), "help", "--help", "--version"}
    assert offered("rep") == ["report"]
    assert set(offered("help", "")) == set(verbs())


@pytest.mark.parametrize("verb", verbs())
def test_every_option_of_the_help_is_offered(verb):
    assert len(options(verb)) > 0
    assert set(offered(verb, "--")) == set(options(verb))
    for name in options(verb):
        assert name in offered(verb, name[:-1])


@pytest.mark.parametrize("verb", verbs())
def test_what_the_help_says_of_values_is_so(verb):
    for name, has_value in options(verb).items():
        if has_value:
            done = seep(verb, name)
            assert b"needs a value" in done.stderr, name
        else:
            done = seep(verb, f"{name}=x")
            assert b"takes no value" in done.stderr, name
        assert done.returncode == 2


@pytest.mark.parametrize("verb", verbs())
def test_values_of_a_set_are_those_that_are_taken(verb):
    for name, has_value in options(verb).items():
        if not has_value:
            continue
        # an option of no set may take this, and then misses its arguments,
        # or a file of that name
        said = seep(verb, name, "\x01", "--no-such-option").stderr.decode()
        found = re.search(r"expected ([\w-]+(, [\w-]+)* or [\w-]+);", said)
        taken = set(re.split(", | or ", found[1])) if found else set()
        values = set(offered(verb, name, ""))
        if taken:
            assert values == taken, name
        for value in values - taken:
            said = seep(verb, name, value, "--no-such-option").stderr
            assert b'unknown option "--no-such-option"' in said, (name, value)


def test_a_value_goes_on_from_its_beginning():
    assert offered("report", "--color", "al") == ["always"]
    assert offered("report", "--by", "s") == ["stack"]
    assert offered("env", "--format", "") == ["shell", "docker", "k8s"]


def test_a_value_behind_an_equals_sign_is_a_word_of_its_own():
    assert offered("report", "--color", "=", "al") == ["always"]
    assert set(offered("report", "--color", "=")) == {"auto", "always",
                                                      "never"}


@pytest.fixture(name="place")
def place_(tmp_path):
    for name in ("a.seep", "b c.seep", "d.seeppack", "other.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize("sources", SOURCES)
def test_recordings_and_folders_are_offered(place, sources):
    if not sources[0].exists():
        pytest.skip("bash-completion is not installed")
    for words in (("report",), ("info", "--json"), ("report", "a.seep"),
                  ("check", "--baseline")):
        found = offered(*words, "", sources=sources, cwd=place)
        assert sorted(found) == ["a.seep", "b c.seep", "d.seeppack",
                                 "folder"], words
    found = offered("unpack", "", sources=sources, cwd=place)
    assert sorted(found) == ["d.seeppack", "folder"]


@pytest.mark.parametrize("sources", SOURCES)
def test_any_file_is_offered_where_one_is_meant(place, sources):
    if not sources[0].exists():
        pytest.skip("bash-completion is not installed")
    found = offered("report", "--patterns", "", sources=sources, cwd=place)
    assert "other.txt" in found and "folder" in found


@pytest.mark.parametrize("sources", SOURCES)
def test_the_words_of_a_command_are_its_own(place, sources):
    if not sources[0].exists():
        pytest.skip("bash-completion is not installed")
    for words in (("run", "--"), ("run", "--sample", "4096"),
                  ("run", "--sample", "=", "4096", "--exact"), ("run",)):
        assert "env" in offered(*words, "en", sources=sources), words
    for words in (("run", "cat"), ("run", "--", "cat"),
                  ("run", "-o", "x", "cat")):
        found = offered(*words, "ot", sources=sources, cwd=place)
        assert found == ["other.txt"], words
    assert "--exact" not in offered("run", "--", "cat", "--ex",
                                    sources=sources)


def test_a_verb_that_there_is_not_offers_nothing():
    assert offered("frobnicate", "--") == []


def test_a_person_at_a_shell_gets_it(place):
    """A real line: the shell itself parts the words and puts them in."""
    need("bash")
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(place)
        env = environment() | {
            "SEEP_PRELOAD": str(PRELOAD), "TERM": "dumb", "HISTFILE": "",
            "PATH": f"{SEEP.parent.resolve()}:{os.environ['PATH']}"}
        os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"], env)
    seen = b""
    try:
        os.write(fd, f"PS1=; source '{COMPLETION}'; echo rea''dy\n".encode())
        for typed, expected in (
                (b"", b"\nready"),
                (b"seep repo\t--color=al\tb\t--no-such\n",
                 b'unknown option "--no-such" of "seep rep')):
            os.write(fd, typed)
            end = time.monotonic() + LIMIT_S
            while expected not in seen:
                assert time.monotonic() < end, seen
                if select.select([fd], [], [], 0.1)[0]:
                    seen += os.read(fd, 65536)
        assert b"seep report --color=always b\\ c.seep" in seen
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(fd)
