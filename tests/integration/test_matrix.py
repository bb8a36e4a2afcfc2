# SPDX-License-Identifier: LGPL-2.1-or-later
"""Folders as people have them, by each way of recording: a recording, or one
sentence with the folder, the reason and the remedy; never silence.

Invariant: what is mounted is so in a name space of this process; every process
that is started here is waited for, with a limit.
"""
import contextlib
import ctypes
import dataclasses
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time

import pytest

from conftest import PRELOAD, SEEP, environment
from command_line import PYTHON

LIMIT_S = 30
USER = 1000
IS_ROOT = os.geteuid() == 0
NEW_NAME_SPACE = 0x20000  # CLONE_NEWNS
WAYS = ("terminal", "none", "variables", "verbose")
ALONE = ("variables", "verbose")  # without `seep run`
PROGRAM = (PYTHON, "-c", "k = [bytearray(1 << 20) for _ in range(32)]; "
                         "print('done', flush=True)")


@dataclasses.dataclass
class Kind:
    """A folder: its mode and owner, and what is said where it is of no use."""
    mode: int = 0o755
    owner: int = USER
    mount: str = ""       # options of a tmpfs
    reason: str = ""      # "": recordings can be made there
    needs_root: bool = False
    made: bool = True     # it is there
    is_file: bool = False
    slash: str = "/"


KINDS = {
    "0700": Kind(0o700),
    "0755-of-another": Kind(0o755, 0, needs_root=True,
                            reason="cannot be written by this user"),
    "0777": Kind(0o777, 0),
    "1777": Kind(0o1777, 0),
    "2777": Kind(0o2777, 0),
    "no-slash": Kind(0o777, 0, slash=""),
    "read-only": Kind(mount="ro", reason="is on a read-only file system"),
    "full": Kind(mount="size=64k,mode=777",
                 reason="is on a full file system"),
    "missing": Kind(made=False, reason="does not exist"),
    "a-file": Kind(is_file=True, reason="is not a folder"),
}


@pytest.fixture(name="place", scope="module")
def place_fixture():
    """Where folders lie: all that is run there can be reached by anybody."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="seep-matrix-"))
    path.chmod(0o777)
    for file in (SEEP, SEEP.parent / "seep-probe", PRELOAD):
        shutil.copy(file, path)
        (path / file.name).chmod(0o755)
    if IS_ROOT:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.unshare(NEW_NAME_SPACE)
        subprocess.run(["mount", "--make-rprivate", "/"], check=False,
                       timeout=LIMIT_S, capture_output=True)
    yield path
    for mount in path.glob("*/"):
        subprocess.run(["umount", mount], check=False, timeout=LIMIT_S,
                       capture_output=True)
    shutil.rmtree(path)


def make(place, kind, name):
    """The folder @name of this kind."""
    folder = place / name
    if kind.needs_root and not IS_ROOT:
        pytest.skip("needs root to be another")
    if kind.is_file:
        folder.touch()
        return folder
    if not kind.made:
        return folder
    folder.mkdir()
    if IS_ROOT:
        os.chown(folder, kind.owner, kind.owner)
    folder.chmod(kind.mode)
    if kind.mount:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", kind.mount,
                               "tmpfs", folder], check=False, timeout=LIMIT_S,
                              capture_output=True)
        if done.returncode != 0:
            pytest.skip("nothing can be mounted here")
        with contextlib.suppress(OSError):  # until it is full, if it is to be
            with open(folder / "filler", "wb", buffering=0) as file:
                while "full" in kind.reason:
                    file.write(b"x" * 4096)
    return folder


def as_user(place):
    """Who runs all of it, and its variables."""
    more = {"user": USER, "group": USER, "extra_groups": []} if IS_ROOT else {}
    env = environment() | {"SEEP_PRELOAD": str(place / PRELOAD.name),
                           "HOME": "/", "TMPDIR": "/nowhere"}
    return more, {k: v for k, v in env.items() if k != "SEEP_FAKE_CUDA"}


def read_all(fd):
    """What comes out of a terminal until nobody has it open any more."""
    text, end = b"", time.monotonic() + LIMIT_S
    while select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
        try:
            text += os.read(fd, 65536)
        except OSError:  # EIO: closed
            return text.decode().replace("\r\n", "\n")
    raise AssertionError(text)


def execute(place, words, way, **variables):
    """(status, stdout, stderr) of @words; on a terminal both are one."""
    who, env = as_user(place)
    env |= variables
    if way != "terminal":
        done = subprocess.run([*map(str, words)], env=env, text=True, cwd="/",
                              capture_output=True, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL, check=False, **who)
        return done.returncode, done.stdout, done.stderr
    ours, theirs = pty.openpty()
    with subprocess.Popen([*map(str, words)], env=env | {"TERM": "dumb"},
                          cwd="/", stdin=theirs, stdout=theirs, stderr=theirs,
                          start_new_session=True, **who) as process:
        os.close(theirs)
        text = read_all(ours)
        os.close(ours)
        return process.wait(timeout=LIMIT_S), text, text


def record(place, folder, kind, way):
    """What was said while the program ran, in one of the four ways."""
    if way in ALONE:
        variables = {"SEEP_VERBOSE": "1"} if way == "verbose" else {}
        status, out, said = execute(
            place, PROGRAM, way, LD_PRELOAD=str(place / PRELOAD.name),
            SEEP_OUT=f"{folder}{kind.slash}", **variables)
        assert (said == "") == (way == "variables")  # as if absent
    else:
        status, out, said = execute(
            place, [place / SEEP.name, "run", "--no-looks", "-o",
                    f"{folder}{kind.slash}", "--", *PROGRAM], way)
    assert status == 0, said
    assert "done" in out
    return said


def assert_sentence(said, folder, reason):
    """One line with the folder, the reason, and what to do."""
    pattern = re.escape(str(folder)) + r"/?\S*:? .*" + reason + r".*[;(>] ?\S+"
    text = re.sub(r"\s+", " ", said)
    assert re.search(pattern, text), said


def verb(place, *words):
    """A verb of the command, as the user; (status, all that it said)."""
    status, out, said = execute(place, [place / SEEP.name, *words], "none",
                                PATH="/nowhere")
    return status, out, said


def assert_recorded(place, folder, said, way):
    files = list(folder.glob("*.seep"))
    assert len(files) == 1, said
    if way == "verbose":
        assert said == f"seep: recording to {files[0]}\n"
    elif way != "variables":
        assert re.search(rf"seep: recorded {re.escape(str(files[0]))}, "
                         r"[\d.]+ [KM]iB, 1 process"
                         r"(; what grew: seep report .*)?\n", said), said
    status, out, _ = verb(place, "report", folder)
    assert status == 0 and "python3" in out
    status, out, _ = verb(place, "check", "--cap", "1GiB", folder)
    assert status == 0, out
    status, out, said = verb(place, "probe", "--max-age", "1h", folder)
    assert (status, out) == (6, "not ready: no process is running any more: 1 "
                                "ended\n"), said
    status, out, said = verb(place, "metrics", "--once", folder)
    assert status == 0 and "seep_live_bytes" in out, said
    status, out, _ = verb(place, "doctor", "-o", folder)
    assert status == 0, out
    assert f"{folder}" in re.sub(r"\s+", " ", out)


def assert_told(place, folder, kind, said, way):
    """Nothing was recorded, and each verb says it."""
    assert not (folder.is_dir() and list(folder.glob("*.seep")))
    if way == "verbose":
        assert said.startswith("seep: not recording: ")
        assert_sentence(said, folder, kind.reason)
    elif way != "variables":
        before, after = "nothing will be recorded", "nothing was recorded"
        assert_sentence(said, folder, f"{kind.reason}.*: {before}")
        assert_sentence(said, folder, f"{kind.reason}.*: {after}")
    reason = "contains no recordings, and here " + kind.reason \
        if folder.is_dir() else "does not exist"
    if "full" in kind.reason:
        reason = "contains no recordings, and " + kind.reason
    where = f"{folder}/"
    for words, wanted in ((("report", where), 1),
                          (("check", "--cap", "1GiB", where), 1),
                          (("metrics", "--once", where), 1),
                          (("probe", "--max-age", "1h", where),
                           0 if folder.is_dir() else 7)):
        status, out, said = verb(place, *words)
        assert status == wanted, (words, out, said)
        assert_sentence(said + out, folder, reason)
    status, out, said = verb(place, "doctor", "-o", where)
    assert status == (0 if not kind.made else 3), out
    assert_sentence(out, folder, kind.reason)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", KINDS)
def test_there_is_a_recording_or_a_sentence(place, name, way):
    kind = KINDS[name]
    folder = make(place, kind, f"{name}-{way}")
    said = record(place, folder, kind, way)
    if kind.reason and (kind.made or way in ALONE):
        assert_told(place, folder, kind, said, way)
    else:
        assert_recorded(place, folder, said, way)


@pytest.mark.parametrize("way", ("terminal", "none"))
def test_who_wants_nothing_said_gets_that(place, way):
    folder = place / f"quiet-{way}"
    folder.touch()
    status, out, said = execute(
        place, [place / SEEP.name, "run", "--quiet", "--no-report", "-o",
                f"{folder}/", "--", *PROGRAM], way)
    assert status == 0
    assert said.replace("done\n", "") == "", out


@pytest.mark.skipif(not IS_ROOT, reason="needs root")
def test_recordings_of_another_user_are_told_by_each_verb(place):
    folder = make(place, Kind(0o777, 0), "anothers")
    subprocess.run([SEEP, "run", "--quiet", "-o", f"{folder}/", "--",
                    *PROGRAM], check=True, timeout=LIMIT_S,
                   capture_output=True, env=as_user(place)[1])
    assert len(list(folder.glob("*.seep"))) == 1
    for words, wanted in ((("report", folder), 1),
                          (("check", "--cap", "1GiB", folder), 1),
                          (("metrics", "--once", folder), 1),
                          (("probe", "--max-age", "1h", folder), 7)):
        status, out, said = verb(place, *words)
        assert status == wanted, (words, out, said)
        assert_sentence(said + out, folder, "is not readable by this user")
    assert 'seep_recordings{state="refused"} 1' in verb(
        place, "metrics", "--once", folder)[1]


def test_who_looks_into_the_wrong_folder_is_told_the_right_one(place):
    """By the variables of the process, which an exec probe has as well."""
    wrong = make(place, Kind(0o777, 0), "wrong")
    right = make(place, Kind(0o777, 0), "right")
    for words in (("report",), ("check", "--cap", "1GiB"),
                  ("metrics", "--once"), ("probe", "--max-age", "1h")):
        _, out, said = execute(place, [place / SEEP.name, *words, wrong],
                               "none", SEEP_OUT=f"{right}/%p.seep")
        assert_sentence(said + out, wrong, "contains no recordings")
        assert f"SEEP_OUT is {right} here: give that" in said + out


@pytest.mark.parametrize("floor, wanted", (("0", "contains no recordings"),
                                           ("50%", "too little free space")))
def test_what_is_to_stay_free_is_asked_as_the_process_asks(place, floor,
                                                           wanted):
    folder = make(place, Kind(mount="size=64m,mode=777"), f"floor{floor[0]}")
    (folder / "filler").write_bytes(b"x" * (40 << 20))
    _, _, said = execute(place, [place / SEEP.name, "report", folder], "none",
                         SEEP_FLOOR=floor)
    assert_sentence(said, folder, wanted)
