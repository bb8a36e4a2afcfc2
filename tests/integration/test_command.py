# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command `seep`: run is transparent, refusals are one line each.

Invariant: every process that is started here is waited for, with a limit.
"""
import functools
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import time

import pytest

from conftest import PRELOAD, SEEP, environment
from command_line import (LIMIT_S, PYTHON, allocate, document, recordings, run,
                          seep, start)


# what `run` gives back

@pytest.mark.parametrize("status", [0, 1, 42, 255])
def test_the_exit_status_is_the_commands(tmp_path, status):
    done = run(tmp_path, "sh", "-c", f"exit {status}")
    assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM,
                                    signal.SIGSEGV])
def test_a_signal_is_128_plus_it(tmp_path, number):
    done = run(tmp_path, "sh", "-c", f"kill -{int(number)} $$")
    assert done.returncode == 128 + number
    assert done.stderr == b""


def test_input_and_output_pass_byte_by_byte(tmp_path):
    data = os.urandom(300000)
    done = run(tmp_path, "sh", "-c", "cat; echo problem >&2", stdin=data)
    assert done.returncode == 0
    assert done.stdout == data
    assert done.stderr == b"problem\n"


def test_a_command_that_is_not_there_is_127(tmp_path):
    done = run(tmp_path, "no-such-command-here")
    assert done.returncode == 127
    assert re.fullmatch(rb"seep: no-such-command-here: .+; .+\n", done.stderr)


def test_a_command_that_is_no_program_is_126(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("data")
    done = run(tmp_path, plain)
    assert done.returncode == 126
    assert done.stderr.count(b"\n") == 1


def test_the_environment_gains_only_ours(tmp_path):
    def variables(text):
        pairs = (line.split(b"=", 1) for line in text.split(b"\0") if line)
        return {k: v for k, v in pairs if k != b"_"}

    env = environment() | {"SEEP_PRELOAD": str(PRELOAD)}
    plain = subprocess.run(["env", "-0"], env=env, capture_output=True,
                           timeout=LIMIT_S, check=True)
    before = variables(plain.stdout)
    after = variables(run(tmp_path, "env", "-0").stdout)
    assert after.pop(b"LD_PRELOAD") == os.fsencode(PRELOAD.resolve())
    assert after.pop(b"SEEP_OUT").startswith(os.fsencode(tmp_path))
    assert after.pop(b"SEEP_PYTHON") == b"objects"
    assert after.pop(b"SEEP_CUDA") == b"tensors"
    assert int(after.pop(b"SEEP_COMMAND_PID")) > 1
    after.pop(b"SEEP_FILTER", None)  # where a filter is around the tests
    assert after == before


@pytest.mark.parametrize("options, before, after", [
    ([], None, "objects"), ([], "", "objects"), ([], "frames", "frames"),
    (["--python", "off"], None, "off"), (["--python", "off"], "1", "off")])
def test_python_is_recorded_as_told(tmp_path, options, before, after):
    variables = {} if before is None else {"SEEP_PYTHON": before}
    done = run(tmp_path, "sh", "-c", "echo $SEEP_PYTHON", options=options,
               **variables)
    assert done.stdout.decode().strip() == after
    printed = seep("env", *options, **variables).stdout.decode()
    assert f"export SEEP_PYTHON='{after}'\n" in printed


@pytest.mark.parametrize("options, before, after", [
    ([], None, "tensors"), ([], "driver", "driver"),
    (["--cuda", "off"], None, "off"), (["--cuda", "driver"], "0", "driver")])
def test_cuda_is_recorded_as_told(tmp_path, options, before, after):
    variables = {} if before is None else {"SEEP_CUDA": before}
    done = run(tmp_path, "sh", "-c", "echo $SEEP_CUDA", options=options,
               **variables)
    assert done.stdout.decode().strip() == after
    printed = seep("env", *options, **variables).stdout.decode()
    assert f"export SEEP_CUDA='{after}'\n" in printed


def test_a_preload_that_is_there_stays_behind_ours(tmp_path):
    libz = next(pathlib.Path("/").glob("usr/lib/*/libz.so.1"), None) \
        or pytest.skip("no libz")
    done = run(tmp_path, "sh", "-c", "echo $LD_PRELOAD",
               LD_PRELOAD=str(libz))
    assert done.stdout.decode().strip() == f"{PRELOAD.resolve()}:{libz}"


def test_ignored_and_blocked_signals_reach_the_child_unchanged(tmp_path):
    show = ("sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status")
    def prepare():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    plain = subprocess.run(show, capture_output=True, preexec_fn=prepare,
                           timeout=LIMIT_S, check=True)
    ours = start(tmp_path, *show, preexec_fn=prepare)
    out, _ = ours.communicate(timeout=LIMIT_S)
    assert out == plain.stdout
    assert ours.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP,
                                    signal.SIGUSR1, signal.SIGUSR2,
                                    signal.SIGINT])
def test_a_signal_sent_to_us_reaches_the_command(tmp_path, number):
    # who runs the tests may be under nohup, and what is ignored stays so
    standard = functools.partial(signal.signal, number, signal.SIG_DFL)
    process = start(tmp_path, PYTHON, "-c",
                    "import signal,sys,time\n"
                    f"signal.signal({int(number)}, lambda *_: sys.exit(9))\n"
                    "print('ready', flush=True)\n"
                    # one long sleep could begin after the signal came
                    "while True: time.sleep(0.05)", preexec_fn=standard)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert process.wait(LIMIT_S) == 9


def test_an_alarm_that_outlives_an_exec_is_the_commands(tmp_path):
    """`perl -e 'alarm 1; exec ...'`, as one limits the time of a command."""
    process = start(tmp_path, PYTHON, "-c", "import time; time.sleep(60)",
                    preexec_fn=functools.partial(signal.alarm, 1))
    command = process.wait(LIMIT_S)

    assert command == 128 + signal.SIGALRM


# the terminal

class Terminal:
    """A shell-like parent: the command is the foreground job of a pty."""

    def __init__(self, *argv):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # also where a shell in the background started the tests
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            env = environment() | {"SEEP_PRELOAD": str(PRELOAD),
                                   "TERM": "dumb"}
            os.execve(argv[0], [str(word) for word in argv], env)
        self.seen = b""

    def until(self, text):
        """Read until the text was printed, and forget all up to it."""
        end = time.monotonic() + LIMIT_S
        while text not in self.seen:
            assert time.monotonic() < end, self.seen
            if select.select([self.fd], [], [], 1)[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:
                    break
        assert text in self.seen, self.seen
        self.seen = self.seen.split(text, 1)[1]

    def type(self, text):
        """What a person types."""
        os.write(self.fd, text)

    def wait(self):
        """Exit status, once all output was read."""
        while True:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                break
            if not data:
                break
            self.seen += data
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_interrupt_from_the_terminal_ends_the_command_once(tmp_path):
    terminal = Terminal(
        SEEP, "run", "--no-report", "-o", f"{tmp_path}/", "--", PYTHON, "-c",
        "import os, signal, time\n"
        "signal.signal(signal.SIGINT, lambda *_: os.write(1, b'one\\n'))\n"
        "print('ready', flush=True)\n"
        "for _ in range(50): time.sleep(0.02)\n"
        "print('end')")
    terminal.until(b"ready")
    terminal.type(b"\x03")
    assert terminal.wait() == 0
    assert terminal.seen.count(b"one") == 1
    assert b"end" in terminal.seen


def test_interrupt_that_kills_is_130(tmp_path):
    terminal = Terminal(SEEP, "run", "--no-report", "-o", f"{tmp_path}/",
                        "--", "sh", "-c", "echo ready; exec sleep 60")
    terminal.until(b"ready")
    terminal.type(b"\x03")
    assert terminal.wait() == 130


def test_a_stopped_job_stops_us_and_goes_on_with_us(tmp_path):
    """Under an interactive shell: Ctrl-Z gives the prompt, fg goes on."""
    terminal = Terminal("/bin/bash", "--norc", "--noediting", "-i")
    terminal.type(b"PS1='pro''mpt> '; set -m\n")
    terminal.until(b"prompt> ")
    command = (f"{SEEP} run --no-report -o {tmp_path}/ -- sh -c "
               "'echo rea''dy; read line; echo got:$line; exit 5'\n")
    terminal.type(command.encode())
    terminal.until(b"\nready")
    terminal.type(b"\x1a")
    terminal.until(b"Stopped")
    terminal.type(b"fg\n")
    terminal.until(b"read line")  # bash names the job that it continues
    terminal.type(b"hello\n")
    terminal.until(b"got:hello")
    terminal.type(b"echo status:$?\n")
    terminal.until(b"status:5")
    terminal.type(b"exit\n")
    terminal.wait()


def test_a_person_sees_the_report_and_where_the_file_is(tmp_path):
    terminal = Terminal(SEEP, "run", "-o", f"{tmp_path}/", "--", *allocate())
    assert terminal.wait() == 0
    text = terminal.seen.decode()
    assert "seep: python3 -c" in text
    assert re.search(r"seep: recorded /.*\.seep, .* [KM]iB, 1 process", text)
    assert "\033" not in text  # TERM is dumb


def said_by(folder, *command, options=(), **more):
    """Lines of `seep run` on stderr, without a terminal."""
    done = seep("run", *options, "-o", f"{folder}/", "--", *command, **more)
    return done.returncode, done.stderr.decode().splitlines()


def test_what_was_recorded_is_said_without_a_terminal_too(tmp_path):
    code, lines = said_by(".", *allocate("os.fork(); sys.exit(7)"),
                          cwd=tmp_path)
    assert code == 7
    line, = lines
    bytes_ = sum(512 * path.stat().st_blocks for path in recordings(tmp_path))
    found = re.fullmatch(r"seep: recorded \./(.*\.seep)( and 1 more)?, "
                         r"([\d.]+) KiB, ([12]) process(es)?"
                         r"; what grew: seep report (\S+)", line)
    assert found, line
    assert found[6] == ("." if found[2] else f"./{found[1]}")
    told = seep("report", found[6], cwd=tmp_path)
    assert told.returncode == 0 and b"python3" in told.stdout
    assert (tmp_path / found[1]).exists()
    assert float(found[3]) == pytest.approx(bytes_ / 2**10, .06)


def test_a_folder_that_was_made_for_nothing_is_removed(tmp_path):
    (tmp_path / "old").mkdir()
    for command in ("true", "/nowhere/none"):
        for folder in ("new", "old/new/newer", "old"):
            said_by(tmp_path / folder, command)
            assert os.listdir(tmp_path) == ["old"]
            assert os.listdir(tmp_path / "old") == []
    said_by(tmp_path / "new", "sh", "-c", f"echo >{tmp_path}/new/theirs")
    assert os.listdir(tmp_path / "new") == ["theirs"]
    said_by(tmp_path / "old/new", *allocate())
    assert len(recordings(tmp_path / "old/new")) == 1


def test_a_command_that_leaves_nothing_is_said_to(tmp_path):
    code, lines = said_by(tmp_path, "true")
    assert code == 0
    line, = lines
    assert line.startswith("seep: true: left no recording: it allocated ")
    assert "; try --exact" in line
    assert said_by(tmp_path, "true", options=["--quiet"]) == (0, [])


def test_what_is_not_understood_is_said_before_and_by_every_verb(tmp_path):
    wanted = {
        "SEEP_SAMPL": "did you mean SEEP_SAMPLE?",
        "SEEP_EXACT": "did you mean SEEP_SAMPLE=1?",
        "SEEP_SIZE": "expected a size from ",
        "SEEP_PYTHON": "did you mean SEEP_PYTHON=objects?",
    }
    variables = {"SEEP_SAMPL": "1", "SEEP_EXACT": "1", "SEEP_SIZE": "1",
                 "SEEP_PYTHON": "object"}
    code, lines = said_by(tmp_path, *allocate(), **variables)
    assert code == 0
    said = {line.split(":")[1].split("=")[0].strip(): line for line in lines}
    said.pop("recorded", None)
    for verb in ("report", "info"):
        text = seep(verb, tmp_path, COLUMNS="200").stdout.decode()
        for name, remedy in wanted.items():
            assert remedy in said[name]
            assert re.search(rf"ignored +{name}.* {re.escape(remedy)}", text)
    process, = document(tmp_path)["processes"]
    ignored = process["process"]["ignored"]
    assert sorted(word.split("=")[0] for word in ignored) == sorted(wanted)


@pytest.mark.parametrize("verb", ("env", "run"))
def test_a_mean_that_is_rounded_is_said_with_what_is_taken(tmp_path, verb):
    rest = ("--", *allocate()) if verb == "run" else ()
    done = seep(verb, "-o", f"{tmp_path}/", "--sample", "1.5M", *rest)
    assert done.returncode == 0
    assert b"seep: 1.5M: rounded down to 1 MiB, a power of two\n" \
        in done.stderr
    if verb == "env":
        assert b"SEEP_SAMPLE='1048576'\n" in done.stdout
        return
    process, = document(tmp_path)["processes"]
    assert process["process"]["sample_bytes"] == 1 << 20
    done = seep("run", "-o", f"{tmp_path}/", *rest, SEEP_SAMPLE="1.5M")
    assert b"seep: SEEP_SAMPLE=1.5M: rounded down to 1 MiB" in done.stderr


def test_a_static_program_is_told_on_a_terminal(tmp_path):
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 3; }\n")
    built = subprocess.run(["cc", "-static", "-o", tmp_path / "static",
                            source], capture_output=True, check=False,
                           timeout=LIMIT_S)
    if built.returncode != 0:
        pytest.skip("no static libc")
    terminal = Terminal(SEEP, "run", "-o", f"{tmp_path}/", "--",
                        tmp_path / "static")
    assert terminal.wait() == 3
    assert b"is a static program" in terminal.seen


# recordings

def test_report_option_prints_on_stderr_and_leaves_stdout_alone(tmp_path):
    done = run(tmp_path, *allocate("print('out')"), options=["--report"])
    assert done.stdout == b"out\n"
    assert b"seep: python3 -c" in done.stderr


def test_the_status_is_in_the_recording(tmp_path):
    done = run(tmp_path, *allocate("os.kill(os.getpid(), 9)"))
    assert done.returncode == 137
    process = document(tmp_path)["processes"][0]["process"]
    assert process["state"] == "killed"
    assert process["status"] == {"exit": None, "signal": 9}


def test_an_exec_chain_has_the_status_in_its_last_image(tmp_path):
    first = allocate("sys.stdout.flush(); os.execv(sys.executable, "
                     "[sys.executable, '-c', 'k=[bytearray(1<<20) for _ in "
                     "range(64)]; raise SystemExit(6)'])")
    assert run(tmp_path, *first).returncode == 6
    found = [p["process"] for p in document(tmp_path)["processes"]]
    assert len(found) == 2 and len({p["pid"] for p in found}) == 1
    found.sort(key=lambda p: p["started"])
    assert found[0]["status"] is None
    assert found[1]["status"] == {"exit": 6, "signal": None}


def test_children_are_followed_and_reported_together(tmp_path):
    child = "k=[bytearray(1<<20) for _ in range(64)]"
    done = run(tmp_path, *allocate("import subprocess; subprocess.run("
                                   f"[sys.executable,'-c','{child}'])"),
               options=["--report"])
    assert done.returncode == 0
    assert len(recordings(tmp_path)) == 2
    assert b"seep: 2 processes: " in done.stderr
    assert document(tmp_path)["summary"]["processes"] == 2


def test_folders_of_the_pattern_are_made(tmp_path):
    done = seep("run", "-o", "deep/er/%e.%p.seep", "--", *allocate(),
                cwd=tmp_path)
    assert done.returncode == 0
    assert len(recordings(tmp_path / "deep/er")) == 1


def test_exact_and_size_reach_the_worker(tmp_path):
    # Python starts from more places than so small a recording has room for
    run(tmp_path, *allocate(), options=["--exact", "--size", "32MiB",
                                        "--python", "off"])
    report = document(tmp_path)["processes"][0]
    assert report["process"]["mode"] == "exact"
    assert report["process"]["exact"] is True
    file, = recordings(tmp_path)
    # Its bound is not its price.
    assert 24 << 20 < file.stat().st_size <= 32 << 20
    assert 0 < report["cost"]["own_bytes"] < 16 << 20


def test_an_allocator_comes_below_us(tmp_path):
    done = run(tmp_path, *allocate(), options=["--allocator", "jemalloc"])
    if done.returncode == 1:
        pytest.skip(done.stderr.decode())
    assert "jemalloc" in document(tmp_path)["processes"][0]["process"][
        "allocator"]


def test_a_recording_that_is_written_can_be_reported(tmp_path):
    process = start(tmp_path, *allocate("print(1, flush=True); "
                                        "sys.stdin.read()"),
                    stdin=subprocess.PIPE)
    process.stdout.readline()
    assert document(tmp_path)["processes"][0]["process"]["state"] == "running"
    process.communicate(timeout=LIMIT_S)


def test_env_as_a_document_has_the_variables_of_the_shell(tmp_path):
    words = ("env", "--out", f"{tmp_path}/", "--exact", "--cuda", "off")
    printed = json.loads(seep(*words, "--json").stdout)
    env = environment() | {"LD_PRELOAD": ""}
    shell = subprocess.run(["sh", "-c", seep(*words).stdout.decode() + "env"],
                           capture_output=True, env=env, timeout=LIMIT_S,
                           check=True)
    assert printed["schema"] == "seep-env/1"
    assert set(printed["variables"]) == {"LD_PRELOAD", "SEEP_OUT",
                                         "SEEP_SAMPLE", "SEEP_PYTHON",
                                         "SEEP_CUDA"}
    for name, value in printed["variables"].items():
        assert f"{name}={value}\n" in shell.stdout.decode()


def test_env_gives_what_a_shell_needs(tmp_path):
    folder = tmp_path / "it's $HOME"
    folder.mkdir()
    done = seep("env", "--out", f"{folder}/", "--exact")
    script = done.stdout.decode() + 'printf "%s|%s|%s" "$LD_PRELOAD" ' \
        '"$SEEP_OUT" "$SEEP_SAMPLE"'
    env = environment() | {"LD_PRELOAD": ""}
    shell = subprocess.run(["sh", "-c", script], capture_output=True, env=env,
                           timeout=LIMIT_S, check=True)
    assert shell.stdout.decode().split("|") == [
        str(PRELOAD.resolve()), f"{folder}/seep.%e.%p.%t.seep", "1"]


# usage

@pytest.mark.parametrize("words, said", [
    (("repotr",), "did you mean `seep report`?"),
    (("frobnicate",), "; `seep --help` lists the commands"),
    (("report",), "no recording given"),
    (("report", "--bad", "x"), "--bad"),
    (("report", "--jsno", "x"), "did you mean --json?"),
    (("report", "--json=1", "x"), "takes no value"),
    (("report", "--sit", "x"), "did you mean --sites, --site?"),
    (("report", "-hx"), 'unknown option "-x" of "seep report"; see'),
    (("report", "x", "--sites"), 'option "--sites" needs a value'),
    (("info", "--jsno", "x"), "did you mean --json?"),
    (("env", "--fromat", "k8s"), "did you mean --format?"),
    (("env", "--format", "k9s"), "did you mean k8s?"),
    (("env", "--format", "k8s", "--json"), "--format"),
    (("run", "--exakt", "--", "true"), "did you mean --exact?"),
    (("",), 'unknown command ""; '),
    (("--vresion",), "did you mean `seep --version`?"),
    (("help", "repotr"), "did you mean `seep report`?"),
    (("report", "--sites", "many", "x"), '"many": expected a number'),
    (("report", "--processes", "-1", "x"), "expected a number"),
    (("report", "--by", "lines", "x"), "did you mean line?"),
    (("report", "--by", "fnuction", "x"), "did you mean function?"),
    (("report", "--by", "anything", "x"), "expected stack, line, function,"),
    (("report", "--known", "3f9a", "x"), "expected SITE=SIZE"),
    (("report", "--known", "=1MiB", "x"), "expected SITE=SIZE"),
    (("report", "--known", "3f9a=much", "x"), "expected a size"),
    (("report", "--known", "3f9a=0", "x"), "expected a size"),
    (("report", "--json", "--verdict", "x"), "--verdict"),
    (("run", "--known", "3f9a", "--", "true"), "expected SITE=SIZE"),
    (("report", "--color", "red", "x"), 'expected auto, always or never'),
    (("run",), "no command given"),
    (("run", "--sample", "much", "--", "true"), "expected a size"),
    (("run", "--size", "1KiB", "--", "true"), "expected a size from"),
    (("run", "--allocator", "my", "--", "true"), "expected jemalloc"),
    (("run", "--unwinder", "x", "--", "true"), "expected eh_frame"),
    (("run", "--python", "lines", "--", "true"), "objects, frames or off"),
    (("run", "--cuda", "on", "--", "true"), "expected tensors, driver"),
    (("env", "--cuda", "tensor"), "expected tensors, driver"),
    (("run", "--check", "--jsno", "--", "true"), '"--jsno" of "seep check"'),
    (("run", "--check", "--cap x", "--", "true"), "see `seep check -h`"),
    (("env", "extra"), 'unexpected argument "extra"'),
])
def test_wrong_usage_is_2_and_one_line(words, said):
    done = seep(*words)
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    assert said in done.stderr.decode()


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("run", "-h"),
                                   ("report", "--help"), ("info", "-h"),
                                   ("env", "-h")])
def test_help_is_on_stdout(words):
    done = seep(*words)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith((b"usage: seep", b"seep"))
