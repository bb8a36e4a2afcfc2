# SPDX-License-Identifier: LGPL-2.1-or-later
"""`seep top`: one frame for scripts, and the live view in a real terminal.

Three workers with the same leak: one ends, one is killed, one runs on.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import PRELOAD, SEEP, environment
from command_line import LIMIT_S, PYTHON, recordings, seep
from terminal import TMUX, Screen, Terminal, wait_until

WORKER = pathlib.Path(__file__).parent / "programs" / "leak_worker.py"
LEAK = "leak_worker.py:12 keep_reply"
RUNS_S = 120  # at most: it is ended with the tests

if not SEEP.exists():
    pytest.skip("the tool is not built", allow_module_level=True)

in_terminal = pytest.mark.skipif(TMUX is None, reason="tmux is not installed")


def variables(**more):
    """Of seep and of its workers."""
    return environment() | {"SEEP_PRELOAD": str(PRELOAD), "LC_ALL": "C.UTF-8",
                            "TERM": "xterm-256color"} | more


def start_worker(folder, name, seconds):
    """One worker under `seep run`, in a process group of its own."""
    return subprocess.Popen(
        [SEEP, "run", "--quiet", "--no-report", "--sample", "16KiB", "-o",
         f"{folder}/{name}.%p.seep", "--", PYTHON, WORKER, str(seconds)],
        env=variables(), start_new_session=True)


def end_group(process):
    """End a worker with its `seep run`."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(LIMIT_S)


def pid_of(path):
    """The number in the name of a recording."""
    return int(path.name.split(".")[1])


def recording(folder, name):
    """The recording of that worker, once it is there."""
    found = wait_until(lambda: sorted(folder.glob(f"{name}.*.seep")),
                       lambda: f"{name} records nothing")
    return found[0]


@pytest.fixture(scope="module", name="folder")
def fixture_folder(tmp_path_factory):
    """Recordings of three workers, of which one runs on."""
    folder = tmp_path_factory.mktemp("workers")
    workers = {name: start_worker(folder, name, seconds)
               for name, seconds in (("ended", 4), ("killed", RUNS_S),
                                     ("running", RUNS_S))}
    try:
        killed = recording(folder, "killed")
        assert workers["ended"].wait(LIMIT_S) == 0
        os.kill(pid_of(killed), signal.SIGKILL)
        assert workers["killed"].wait(LIMIT_S) == 128 + signal.SIGKILL
        yield folder
    finally:
        for worker in workers.values():
            end_group(worker)


@pytest.fixture(name="screen")
def fixture_screen(tmp_path):
    """Opens a screen with `seep top` on it."""
    screens = []

    def open_screen(columns, lines, *words, **more):
        screens.append(Screen(tmp_path, columns, lines, [SEEP, "top", *words],
                              variables(**more)))
        return screens[-1]

    yield open_screen
    for screen in screens:
        screen.close()


@pytest.fixture(name="terminal")
def fixture_terminal():
    """Opens a pty with `seep top` on it."""
    terminals = []

    def open_terminal(*words, before=(), **more):
        terminals.append(Terminal([*before, SEEP, "top", *words],
                                  variables(**more)))
        return terminals[-1]

    yield open_terminal
    for terminal in terminals:
        terminal.close()


def rows_of(lines):
    """Lines below the title of the call sites."""
    title = [i for i, line in enumerate(lines)
             if line.startswith(" class ")][-1]
    return lines[title + 1:]


# one frame

@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("name, state", [
    ("ended", "exited with status 0"), ("killed", "killed by signal 9"),
    ("running", "still running")])
def test_one_frame_of_a_recording(folder, columns, name, state):
    path = recording(folder, name)
    done = seep("top", "--once", path, COLUMNS=str(columns), LC_ALL="C.UTF-8")
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().split("\n")
    assert lines[0].startswith("seep top: python3")
    head = " ".join(" ".join(lines[:2]).split())
    assert f"pid {pid_of(path)}, " in head
    assert state in head
    assert LEAK in rows_of(lines)[0]
    assert "█" in rows_of(lines)[0]
    assert max(map(len, lines)) <= columns
    assert "\033" not in done.stdout.decode()


def test_one_frame_of_a_process(folder):
    pid = pid_of(recording(folder, "running"))
    done = seep("top", "--once", pid)
    assert (done.returncode, done.stderr) == (0, b"")
    assert f"pid {pid}, ".encode() in done.stdout
    assert LEAK.encode() in done.stdout


def test_one_frame_of_a_folder_lists_its_processes(folder):
    done = seep("top", "--once", folder, COLUMNS="100")
    assert (done.returncode, done.stderr) == (0, b"")
    for path in recordings(folder):
        assert re.search(rf"^ +{pid_of(path)} ".encode(), done.stdout, re.M)
    for state in (b"exited", b"killed", b"running"):
        assert state in done.stdout


def test_one_frame_takes_order_filter_and_number(folder):
    path = recording(folder, "ended")
    done = seep("top", "--once", "--sites", "1", "--sort", "live", path)
    rows = rows_of(done.stdout.decode().split("\n"))
    assert LEAK in rows[0]
    assert rows[1].startswith(" and ")
    done = seep("top", "--once", "--filter", "HANDLE", path, COLUMNS="900")
    rows = [row for row in rows_of(done.stdout.decode().split("\n")) if row]
    assert 0 < len(rows) < 10
    assert all("handle" in row.lower() for row in rows)


def test_in_ascii_where_the_locale_says_so(folder):
    done = seep("top", "--once", recording(folder, "ended"), LC_ALL="C")
    assert done.stdout.isascii()
    assert b"#" in rows_of(done.stdout.decode().split("\n"))[0].encode()


def test_the_document_is_that_of_report(folder):
    path = recording(folder, "ended")
    done = seep("top", "--once", "--json", path)
    assert done.returncode == 0
    ours = json.loads(done.stdout)
    theirs = json.loads(seep("report", "--json", path).stdout)
    assert ours == theirs


@pytest.mark.parametrize("words, code, parts", [
    ((), 2, (b"no process, recording or folder",)),
    (("--onse", "x"), 2, (b"--onse", b"did you mean --once?")),
    (("--sort", "lvie", "x"), 2, (b"lvie", b"did you mean live?")),
    (("--interval", "0", "x"), 2, (b"0.5s",)),
    (("--interval", "x", "x"), 2, (b'"x": ', b"time")),
    (("--interval",), 2, (b"needs a value",)),
    (("--json", "x"), 2, (b"--json", b"--once")),
    (("--once", "no-such-file"), 1, (b"no-such-file",)),
    (("no-such-file",), 1, (b"no-such-file",)),
    (("--once", "1"), 1, (b"1: ", b"recording")),
    (("--once", __file__), 1, (b"is not a seep recording",)),
    ((__file__,), 1, (b"is not a seep recording",)),
])
def test_a_refusal_is_one_line(words, code, parts):
    done = seep("top", *words)
    assert done.returncode == code, done.stderr
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    for part in parts:
        assert part in done.stderr, done.stderr


def test_without_a_terminal_it_says_what_to_do(folder):
    done = seep("top", folder)
    assert done.returncode == 1
    assert done.stdout == b""
    assert re.fullmatch(rb"seep: .*terminal.*--once.*\n", done.stderr)


# on a screen

@in_terminal
@pytest.mark.parametrize("columns, lines", [(80, 24), (200, 50)])
def test_a_leak_is_on_the_first_row(folder, screen, columns, lines):
    shown = screen(columns, lines, recording(folder, "running"))
    shown.wait(LEAK)
    assert LEAK in rows_of(shown.lines())[0]
    shown.press("q")
    shown.wait("status 0")


@in_terminal
def test_keys_do_what_help_says(folder, screen):
    shown = screen(120, 30, folder)
    shown.wait("Tab process", LEAK)
    shown.press("h")
    shown.wait("select a call site")
    shown.press("h")
    shown.wait_without("select a call site")
    shown.press("l")
    shown.wait("by live")
    shown.press("g", "Enter")
    shown.wait("leak_worker.py", "blocks", "Escape back")
    shown.press("Escape")
    shown.wait("by growth")
    shown.press("/", *"BOOTSTRAP", "Enter")
    shown.wait_without(LEAK)
    shown.press("Escape")
    shown.wait(LEAK)
    shown.press("s")
    shown.wait("space ")
    shown.press("Escape", "p")
    shown.wait("PAUSED")
    shown.press("+")
    shown.wait("every 5.0 s")
    shown.press("q")
    shown.wait("status 0")


@in_terminal
def test_tab_goes_from_process_to_process(folder, screen):
    shown = screen(120, 30, folder)
    shown.wait("Tab process")
    seen = set()
    for _ in range(3):
        head = shown.lines()[0]
        seen.add(int(re.search(r"pid (\d+)", head)[1]))
        shown.press("Tab")
        wait_until(lambda: shown.lines()[0] != head,
                   lambda: "the same process again")
    assert seen == {pid_of(path) for path in recordings(folder)}


@in_terminal
def test_another_size_is_another_frame(folder, screen):
    shown = screen(80, 24, recording(folder, "running"))
    shown.wait(LEAK)
    for columns, lines in ((20, 5), (200, 50), (3, 1), (40, 10), (80, 24)):
        shown.resize(columns, lines)
        if columns >= 20:
            shown.wait_for(
                lambda: shown.lines()[lines - 1].startswith("h help") and
                "leak_wo" in shown.text())
    shown.press("q")
    shown.wait("status 0")


@in_terminal
def test_processes_come_and_end(tmp_path, screen):
    folder = tmp_path / "new"
    folder.mkdir()
    shown = screen(120, 30, "--interval", "0.5s", folder)
    shown.wait("nothing is recorded there yet")
    worker = start_worker(folder, "late", 8)
    try:
        shown.wait("still running", LEAK)
        shown.wait("exited with status 0")
        assert worker.wait(LIMIT_S) == 0
    finally:
        end_group(worker)
    for path in recordings(folder):
        path.unlink()
    shown.wait("nothing is recorded there yet")
    shown.press("q")
    shown.wait("status 0")


@in_terminal
def test_a_process_that_ends_stays_shown(tmp_path, screen):
    worker = start_worker(tmp_path, "short", 2)
    try:
        pid = pid_of(recording(tmp_path, "short"))
        shown = screen(120, 30, "--interval", "0.5s", pid)
        shown.wait(f"pid {pid}, ", "still running")
        shown.wait(f"pid {pid}, ", "exited with status 0", LEAK)
    finally:
        end_group(worker)
    shown.press("q")
    shown.wait("status 0")


@in_terminal
def test_recordings_that_are_cut_or_replaced_do_no_harm(folder, tmp_path,
                                                        screen):
    copies = tmp_path / "copies"
    copies.mkdir()
    for path in recordings(folder):
        shutil.copy(path, copies)
    shown = screen(120, 30, "--interval", "0.5s", copies)
    shown.wait("Tab process")
    running = recording(copies, "running")
    for size in (1 << 20, 4096, 100, 0):
        os.truncate(running, size)
        time.sleep(0.3)
        shown.press("r")
    running.unlink()
    os.mkfifo(running)
    (copies / "none.1.seep").write_bytes(b"no recording at all")
    shown.press("r")
    shown.wait("cannot be read")
    shown.press("q")
    shown.wait("status 0")


@in_terminal
@pytest.mark.parametrize("words, more, colored", [
    ((), {}, True), ((), {"NO_COLOR": "1"}, False),
    (("--color", "never"), {}, False),
    (("--color", "always"), {"NO_COLOR": "1"}, True)])
def test_colours_are_there_unless_refused(folder, screen, words, more,
                                          colored):
    shown = screen(80, 24, *words, recording(folder, "killed"), **more)
    shown.wait(LEAK)
    shown.press("p")
    shown.wait("PAUSED")
    found = re.search(r"\033\[[0-9;]*3[1-7]m", shown.with_colors())
    assert bool(found) == colored
    shown.press("q")
    shown.wait("status 0")


# what it does to the terminal

ENTERED = b"\033[?1049h"
LEFT = b"\033[?1049l"
CURSOR_HIDDEN = b"\033[?25l"
CURSOR_SHOWN = b"\033[?12l\033[?25h"
KEYPAD_ON = b"\033[?1h\033="
KEYPAD_OFF = b"\033[?1l\033>"


def assert_as_before(terminal):
    """Modes, screen, cursor and keypad."""
    assert terminal.modes() == terminal.before
    output = terminal.output
    assert output.count(ENTERED) == output.count(LEFT)
    left = output.rindex(LEFT)
    assert left > output.rindex(ENTERED)
    assert output.rindex(KEYPAD_OFF) > output.rindex(KEYPAD_ON)
    assert output.rindex(CURSOR_SHOWN) > output.rindex(CURSOR_HIDDEN)


@pytest.mark.parametrize("how, status", [
    (b"q", 0), (b"\x03", -signal.SIGINT), (b"\x1c", -signal.SIGQUIT),
    (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP),
    (signal.SIGINT, -signal.SIGINT)])
def test_the_terminal_is_as_before(folder, terminal, how, status):
    view = terminal(recording(folder, "running"))
    view.wait(b"keep_reply")
    assert view.modes() != view.before
    if isinstance(how, bytes):
        view.send(how)
    else:
        view.process.send_signal(how)
    assert view.end() == status
    assert_as_before(view)


def test_it_stops_and_goes_on(folder, terminal):
    shell = ('set -m; "$@"; echo STOPPED one; read x; fg; echo STOPPED two; '
             'read x; fg; exit $?')
    view = terminal(recording(folder, "running"), before=["sh", "-c", shell,
                                                          "sh"])
    since = 0
    for word in (b"one", b"two"):
        view.wait(b"keep_reply", since)
        assert view.modes() != view.before
        view.send(b"\x1a")
        view.wait(b"STOPPED " + word, since)
        assert_as_before(view)
        since = len(view.output)
        view.send(b"\n")
        view.wait(ENTERED, since)
    view.wait(b"keep_reply", since)
    view.send(b"q")
    assert view.end() == 0
    assert_as_before(view)


@pytest.mark.parametrize("before", [
    (), ("sh", "-c", "trap '' HUP; exec \"$@\"", "sh")])
def test_it_ends_with_its_terminal(folder, terminal, before):
    view = terminal(recording(folder, "running"), before=before)
    view.wait(b"keep_reply")
    view.hang_up()
    assert view.process.wait(LIMIT_S) != 0


@pytest.mark.parametrize("name", ["dumb", "no-such-terminal", ""])
def test_a_terminal_that_cannot_draw_is_refused(folder, terminal, name):
    view = terminal(recording(folder, "running"), TERM=name)
    assert view.end() == 1
    assert view.modes() == view.before
    assert b"\033" not in view.output
    assert b"--once" in view.output


def test_what_cannot_be_read_is_said_before_the_screen_is_taken(terminal):
    view = terminal("no-such-file")
    assert view.end() == 1
    assert b"\033" not in view.output
    assert b"no-such-file" in view.output
