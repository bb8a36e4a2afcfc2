# SPDX-License-Identifier: LGPL-2.1-or-later
"""What holds for every verb: help, wrong words, JSON, colours, width, streams.

Invariant: which verbs there are, and their options, is what the program tells
(verb_list.py); who is left out is left out by a table that says why.
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from conftest import PRELOAD, SEEP, environment
import command_line
from command_line import LIMIT_S, PYTHON, recordings
from verb_list import (ANSWERS, COMMAND, NO_JSON, PATH, arguments, codes,
                       help_of, options, positionals, reading, verbs)

HOSTILE = "\x1b[31mred\x07\x9b1m\u202egnp\n"
# All but the line end, which is made by us, and DEL, which no terminal obeys.
HARMFUL = re.compile("[\x00-\x09\x0b-\x1f\x80-\x9f\u2028-\u202e\u2066-\u2069]")
LEAK = ("import sys, threading, time\n"
        "keep = []\n"
        "def remember_what_was_asked_for():\n"
        "    keep.append(bytearray(1 << 16))\n"
        "for _ in range(400):\n"
        "    remember_what_was_asked_for()\n"
        "    time.sleep(0.001)\n")


def seep(*words, **more):
    """The command, which shall find one Python."""
    return command_line.seep(*words, **({"PATH": PATH} | more))


@pytest.fixture(name="place", scope="module")
def place_(tmp_path_factory):
    """A folder with one recording, r.seep, and its pack; paths in it are
    short."""
    folder = tmp_path_factory.mktemp("verbs")
    done = seep("run", "-o", "r.seep", "--sample", "4KiB", "--", PYTHON, "-c",
                LEAK, "an argument that is long enough to be wrapped or cut",
                cwd=folder)
    assert done.returncode == 0, done.stderr
    done = seep("pack", "r.seep", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(name="hostile", scope="module")
def hostile_(tmp_path_factory):
    """A recording all of whose names want to write on the terminal."""
    folder = tmp_path_factory.mktemp("hostile")
    program = folder / f"py{HOSTILE}"
    program.symlink_to(PYTHON)
    code = folder / f"code{HOSTILE}.py"
    code.write_text(LEAK, encoding="utf-8")
    done = seep("run", "--report", "-o", f"{folder}/{HOSTILE}.seep", "--sample",
                "4KiB", "--", program, code, HOSTILE,
                SEEP_LABELS=f"model={HOSTILE}".replace("\n", ""))
    assert done.returncode == 0, done.stderr
    assert not HARMFUL.search(done.stderr.decode())
    return recordings(folder)[0]


def on_terminal(*words, columns=80, cwd=None, **variables):
    """(what it prints, exit status) when all its streams are a terminal."""
    main, side = pty.openpty()
    size = struct.pack("HHHH", 40, columns, 0, 0)
    fcntl.ioctl(side, termios.TIOCSWINSZ, size)
    env = environment() | {"SEEP_PRELOAD": str(PRELOAD), "TERM": "xterm",
                           "PATH": PATH, "LC_ALL": "C.UTF-8"} | variables
    for name in ("NO_COLOR", "COLUMNS"):
        if name not in variables:
            env.pop(name, None)
    process = subprocess.Popen([SEEP, *map(str, words)], stdin=side,
                               stdout=side, stderr=side, env=env, cwd=cwd,
                               start_new_session=True)
    os.close(side)
    text = b""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if select.select([main], [], [], 0.1)[0]:
            try:
                data = os.read(main, 65536)
            except OSError:  # nobody has the other side
                break
            text += data
    os.close(main)
    process.kill()
    return text.decode().replace("\r\n", "\n"), process.wait(LIMIT_S)


def columns_of(text):
    """Of the widest line; escapes are none, and a path is not broken."""
    plain = re.sub("\x1b\\[[0-9;]*m", "", text)
    return max(len(re.sub(" /\\S+$", "", line)) for line in plain.split("\n"))


def one_line(done):
    """The error of a command that printed nothing else."""
    assert done.stdout == b""
    text = done.stderr.decode()
    assert re.fullmatch(r"seep: .+; .+\n", text), text
    return text


# help

def test_the_list_of_verbs_says_where_to_begin():
    text = seep("--help").stdout.decode()
    assert len(verbs()) >= 5
    assert columns_of(text) <= 80
    assert "seep run" in text.split("\n\n")[-1]
    assert seep("help").stdout.decode() == seep("-h").stdout.decode() == text


@pytest.mark.parametrize("verb", verbs())
def test_help_has_one_form(verb):
    done = seep(verb, "--help")
    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert text.startswith(f"usage: seep {verb} ") and text.endswith("\n")
    assert columns_of(text) <= 80
    assert text.split("\n\n")[-1].startswith("exit status: ")
    assert "  -h, --help " in text
    assert all(name.startswith("--") for name in options(verb))
    for words in ((verb, "-h"), ("help", verb)):
        assert seep(*words).stdout.decode() == text


# wrong words

@pytest.mark.parametrize("verb", verbs())
def test_a_slip_in_any_option_is_told_with_the_option(verb, place):
    for name in options(verb):
        middle = len(name) // 2 + 1
        slip = f"{name[:middle]}q{name[middle:]}"
        done = seep(verb, slip, *arguments(verb, "r.seep"), cwd=place)
        assert done.returncode == 2
        assert one_line(done) == (
            f'seep: unknown option "{slip}" of "seep {verb}"; '
            f"did you mean {name}?\n")


@pytest.mark.parametrize("verb", verbs())
def test_an_option_that_is_like_none_is_refused(verb):
    for word in ("--nothing-like-it", "-\u00e4", "-9"):
        done = seep(verb, word)
        assert done.returncode == 2
        assert (f'seep: unknown option "{word}" of "seep {verb}"; '
                f"see `seep {verb} -h`") in one_line(done)


@pytest.mark.parametrize("verb", verbs())
def test_an_option_without_its_value_is_refused(verb):
    for name, has_value in options(verb).items():
        if has_value:
            done = seep(verb, name)
            assert done.returncode == 2
            assert f'seep: option "{name}" needs a value; ' in one_line(done)


@pytest.mark.parametrize("verb", verbs())
def test_a_verb_without_its_arguments_is_refused(verb, place):
    needed = positionals(verb)
    if not needed:
        pytest.skip("it needs none")
    words = arguments(verb, "r.seep")
    least = len(words) - len(COMMAND if "COMMAND" in needed else (1,))
    done = seep(verb, *words[:least], cwd=place)
    assert done.returncode == 2
    one_line(done)


@pytest.mark.parametrize("verb", verbs())
def test_a_slip_in_a_verb_is_told_with_the_verb(verb):
    for slip in (f"{verb}q", f"{verb[:2]}q{verb[2:]}"):
        done = seep(slip)
        assert done.returncode == 2
        assert f"did you mean `seep {verb}`?" in one_line(done)


@pytest.mark.parametrize("verb", reading())
def test_a_file_that_is_not_there_is_told(verb, place):
    done = seep(verb, *arguments(verb, "no-such.seep"), cwd=place)
    if verb in ANSWERS:
        assert done.returncode in codes(verb)
        assert "no-such.seep does not exist" in done.stdout.decode()
        return
    assert done.returncode == 1
    assert "no-such.seep: " in done.stderr.decode()
    for line in done.stderr.decode().splitlines():
        assert re.fullmatch(r"seep: .+: .+; .+", line)


@pytest.mark.parametrize("words", (
    ("report",), ("check", "--max-growth", "1GiB/min"),
    ("probe", "--max-growth", "1GiB/min"), ("metrics", "--once"),
    ("top", "--once"), ("pack", "--replace", "-o", "all.seeppack")),
    ids=" ".join)
def test_the_star_of_a_shell_names_recordings(words, place, tmp_path):
    """And what lies beside them, which is read with them."""
    for name in ("r.seep", "r.seep.looks"):
        (tmp_path / name).hardlink_to(place / "r.seep")
    one, all_ = (seep(*words, *names, cwd=tmp_path)
                 for names in (("r.seep",), ("r.seep", "r.seep.looks")))
    assert all_.stderr == one.stderr
    assert all_.returncode == one.returncode
    assert len(all_.stdout.splitlines()) == len(one.stdout.splitlines())


# documents

@pytest.mark.parametrize("verb", verbs())
def test_json_is_one_document_with_its_schema(verb, place):
    if verb in NO_JSON:
        assert "--json" not in options(verb), NO_JSON[verb]
        return
    done = seep(verb, "--json", *arguments(verb, "r.seep"), cwd=place)
    assert done.returncode in codes(verb) - {1, 2}, done.stderr
    schema = json.loads(done.stdout)["schema"]
    found = re.fullmatch(r"seep-([a-z]+)/[0-9]+", schema)
    assert f"schema {schema}" in help_of(verb) \
        or f"`seep {found[1]} --json`" in help_of(verb)


def into(stream, *words, ignore=False, cwd=None):
    """Run with stdout there; SIGPIPE as a shell has it, or ignored."""
    env = environment() | {"SEEP_PRELOAD": str(PRELOAD), "PATH": PATH}
    return subprocess.run([SEEP, *words], stdout=stream, cwd=cwd, env=env,
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          timeout=LIMIT_S, check=False,
                          restore_signals=not ignore)


def assert_unwritten(done, verb):
    """It failed by that, or had measured something that is worse."""
    assert done.returncode in codes(verb) - {0, 2}
    text = done.stderr.decode()
    assert re.search(r"^seep: stdout: .+; check the disk or the pipe that it "
                     r"goes to$", text, re.M), text


def prints(verb):
    """The ways in which a verb prints on stdout."""
    ways = [("--help",)]
    if verb not in ("run", "metrics"):  # a command's, a file's
        ways.append(tuple(arguments(verb, "r.seep")))
    if "--json" in options(verb):
        ways.append(("--json", *arguments(verb, "r.seep")))
    return ways


@pytest.mark.parametrize("verb", verbs())
def test_a_reader_that_went_away_does_no_harm(verb, place):
    for words in prints(verb):
        for ignore in (False, True):
            read, write = os.pipe()
            os.close(read)
            with os.fdopen(write, "wb") as stream:
                done = into(stream, verb, *words, ignore=ignore, cwd=place)
            if verb in ANSWERS and done.returncode > 2:
                assert done.returncode in codes(verb)
            elif ignore:
                assert_unwritten(done, verb)
            else:
                assert done.returncode == -signal.SIGPIPE


@pytest.mark.parametrize("verb", verbs())
def test_a_full_device_is_noticed(verb, place):
    for words in prints(verb):
        with open("/dev/full", "wb") as stream:
            done = into(stream, verb, *words, cwd=place)
        if verb not in ANSWERS or done.returncode <= 2:
            assert_unwritten(done, verb)


# colours and width

@pytest.mark.parametrize("verb", verbs())
def test_colours_are_for_terminals_that_want_them(verb, place):
    words = [verb, *arguments(verb, "r.seep")]
    assert b"\x1b" not in seep(*words, cwd=place).stdout
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_terminal(*words, cwd=place, **variables)[0]
    if "--color" not in options(verb):
        return
    assert "\x1b[" in on_terminal(*words, cwd=place)[0]
    assert "\x1b[" in on_terminal(*words, cwd=place, NO_COLOR="")[0]
    words.insert(1, "--color=never")
    assert "\x1b" not in on_terminal(*words, cwd=place)[0]
    words[1] = "--color=always"
    done = seep(*words, cwd=place, NO_COLOR="1")
    assert b"\x1b[" in done.stdout
    for line in done.stdout.split(b"\n"):
        assert line.count(b"\x1b[") == 2 * line.count(b"\x1b[0m")


@pytest.mark.parametrize("verb", verbs())
def test_text_keeps_to_the_width_of_the_terminal(verb, place):
    if verb == "digest":
        pytest.skip("a document is one line, however wide")
    if verb in ("env", "export"):
        pytest.skip("what machines read is not broken")
    words = [verb, *arguments(verb, "r.seep")]
    narrow, _ = on_terminal(*words, cwd=place, columns=80)
    wide, _ = on_terminal(*words, cwd=place, columns=200)
    assert columns_of(narrow) <= 80, narrow
    assert columns_of(wide) <= 200
    if narrow != wide and columns_of(narrow) > 60:
        assert columns_of(wide) > 80


def test_a_report_uses_a_wide_terminal(place):
    narrow, _ = on_terminal("report", "r.seep", cwd=place, columns=80)
    wide, _ = on_terminal("report", "r.seep", cwd=place, columns=200)
    assert columns_of(wide) > 80
    assert wide.count("\n") < narrow.count("\n")


# names that want to write on the terminal

@pytest.mark.parametrize("verb", reading())
def test_names_in_a_recording_do_no_harm(verb, hostile, tmp_path):
    words = arguments(verb, str(hostile))
    plain = [name for name, has_value in options(verb).items()
             if not has_value and name != "--help" and name not in words]
    for way in [(), *((name,) for name in plain)]:
        done = seep(verb, *way, *words, cwd=tmp_path, DEBUGINFOD_URLS="")
        assert done.returncode in codes(verb) - {1, 2}, (way, done.stderr)
        assert not HARMFUL.search(done.stdout.decode()), way
        assert not HARMFUL.search(done.stderr.decode()), way
    text, _ = on_terminal(verb, *words, cwd=tmp_path, NO_COLOR="1")
    assert not HARMFUL.search(text)


@pytest.mark.parametrize("verb", verbs())
def test_words_of_the_command_line_do_no_harm(verb):
    for words in ((f"--{HOSTILE}",), (f"--color={HOSTILE}",), (HOSTILE,)):
        done = seep(verb, *words)
        assert done.returncode != 0
        assert not HARMFUL.search(done.stderr.decode())
        assert not HARMFUL.search(done.stdout.decode())
        assert done.stdout or done.stderr.count(b"\n") == 1
    assert not HARMFUL.search(seep(HOSTILE).stderr.decode())
