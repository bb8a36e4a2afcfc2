# SPDX-License-Identifier: LGPL-2.1-or-later
"""Where recordings go, how many stay there, and whose the name is.

Invariant: what the program does is what it does without a recording; where
there is none, SEEP_VERBOSE says why, and nothing else ever says anything.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import textwrap
import time

import pytest

from command_line import PYTHON, allocate, document, recordings, seep
from conftest import LONG, environment, need
from conftest import PRELOAD as BUILT

PRELOAD = BUILT.resolve()
USER, GROUP = 12345, 12346
RECORDED = "seep: recording to "
REFUSED = "seep: not recording: "


def preloaded(folder, *command, user=None, **variables):
    """A program that only its environment says to record."""
    names = {name: str(value) for name, value in variables.items()}
    env = environment() | {"LD_PRELOAD": str(PRELOAD),
                           "SEEP_OUT": str(folder)} | names
    as_user = {"user": user, "group": user, "extra_groups": [GROUP],
               "cwd": "/"} if user is not None else {}
    return subprocess.run(command or allocate(), env=env, timeout=60,
                          check=False, capture_output=True, **as_user)


def other_user():
    """Somebody who is not the owner of the folders of this test."""
    if os.getuid() != 0:
        pytest.skip("another user can only be had as root")
    return USER


@pytest.fixture(name="shared")
def shared_folder():
    """A folder whose parents everybody may pass. It is none of pytest's: each
    pytest that begins takes that right from the parent of them all."""
    with tempfile.TemporaryDirectory(prefix="seep-test-") as top:
        for path in (pathlib.Path(top), *pathlib.Path(top).parents):
            if path.stat().st_uid == os.getuid() and path != pathlib.Path("/"):
                path.chmod(path.stat().st_mode | 0o011)
        folder = pathlib.Path(top) / "shared"
        folder.mkdir()
        yield folder


@pytest.fixture(name="preload_for_all", scope="module", autouse=True)
def preload_can_be_read():
    """Another user must be able to load the library."""
    if os.getuid() == 0 and not all(
            parent.stat().st_mode & 0o001 for parent in PRELOAD.parents):
        pytest.skip("the build lies where others cannot read")


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o2777, 0o2770])
def test_an_empty_dir_of_kubernetes_holds_recordings(shared, mode):
    user = other_user()
    os.chown(shared, 0, GROUP)
    shared.chmod(mode)
    done = preloaded(shared, user=user)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    [path] = recordings(shared)
    assert path.stat().st_uid == user
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(document(path)["processes"]) == 1


def test_a_folder_of_another_user_is_refused_and_said(shared):
    user = other_user()
    shared.chmod(0o755)
    done = preloaded(shared, user=user, SEEP_VERBOSE=1)
    assert recordings(shared) == []
    assert done.returncode == 0
    assert done.stderr.decode() == (
        f"{REFUSED}{shared} cannot be written by this user; "
        "let this user write there, or choose another folder\n")


def test_a_file_planted_by_another_is_left_alone(shared):
    user = other_user()
    shared.chmod(0o777)
    victim = shared / "victim"
    victim.write_text("precious")
    for name in ("x.seep", "x.1.seep"):
        (shared / name).symlink_to(victim)
    os.mkfifo(shared / "x.2.seep", 0o666)
    done = preloaded(shared / "x.seep", user=user)
    assert done.returncode == 0
    assert victim.read_text() == "precious"
    assert (shared / "x.3.seep").stat().st_uid == user


def test_a_folder_needs_no_slash(tmp_path):
    folder = tmp_path / "recordings"
    folder.mkdir()
    assert preloaded(folder).returncode == 0
    assert len(recordings(folder)) == 1
    assert os.listdir(tmp_path) == ["recordings"]


@pytest.mark.parametrize("name, words", [
    ("none/x.seep", "none does not exist"),
    ("file/x.seep", "file is not a folder"),
    ("x" * 256 + ".seep", " makes the name too long"),
])
def test_one_line_says_why_there_is_none(tmp_path, name, words):
    (tmp_path / "file").write_text("")
    silent = preloaded(tmp_path / name)
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, b"", b"")
    done = preloaded(tmp_path / name, SEEP_VERBOSE=1)
    assert done.stderr.decode().startswith(REFUSED + str(tmp_path))
    assert re.search(f"{words}; .+\n$", done.stderr.decode())
    assert done.stderr.count(b"\n") == 1
    assert recordings(tmp_path) == []


def test_one_line_says_where_it_is(tmp_path):
    done = preloaded(tmp_path / "%e.seep", SEEP_VERBOSE=1)
    [path] = recordings(tmp_path)
    assert done.stderr.decode() == f"{RECORDED}{path}\n"
    assert preloaded(tmp_path).stderr == b""
    launcher = preloaded(tmp_path, "/bin/sh", "-c", ":", SEEP_VERBOSE=1)
    assert launcher.stderr.decode() == (
        f"{REFUSED}shells, launchers and the tools they call "
        "are skipped (SEEP_SKIP)\n")


def test_a_line_goes_to_nobody_elses_file(tmp_path):
    """What stands at descriptor 2 when the recording begins can be another."""
    kept = tmp_path / "kept"
    # dash allocates too little to begin; what it execs begins after dup2
    script = (f"exec 2>{kept}; exec {PYTHON} -c 'import os; "
              "k=[bytearray(1<<20) for _ in range(64)]'")
    preloaded(tmp_path / "x.seep", "/bin/sh", "-c", script, SEEP_VERBOSE=1)
    assert kept.read_text().startswith(RECORDED)
    # closed at the start: the program's own file has its number
    script = (f"import os; fd=os.open('{kept}', os.O_CREAT|os.O_TRUNC|"
              "os.O_WRONLY); os.dup2(fd, 2); "
              "k=[bytearray(1<<20) for _ in range(64)]")
    subprocess.run(
        ["/bin/sh", "-c", f'exec 2>&-; exec "$0" -c "$1"', PYTHON, script],
        check=True, timeout=60, env=environment() | {
            "LD_PRELOAD": str(PRELOAD), "SEEP_OUT": str(tmp_path / "y.seep"),
            "SEEP_VERBOSE": "1", "SEEP_SAMPLE": "16MiB"})
    assert kept.read_text() == ""


def test_a_pipe_that_nobody_reads_kills_nobody(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    env = environment() | {"LD_PRELOAD": str(PRELOAD), "SEEP_VERBOSE": "1",
                           "SEEP_OUT": str(tmp_path / "x.seep")}
    done = subprocess.run(allocate(), env=env, stderr=writing, check=False,
                          timeout=60)
    os.close(writing)
    assert done.returncode == 0
    assert (tmp_path / "x.seep").exists()


def test_what_is_not_understood_is_in_the_recording(tmp_path):
    done = preloaded(tmp_path / "x.seep", SEEP_SAMPL=1, SEEP_PYTHON="yes",
                     SEEP_EXACT="of-no-concern", SEEP_LABELS="a=b")
    assert (done.returncode, done.stderr) == (0, b"")
    data = (tmp_path / "x.seep").read_bytes()
    line = data[data.index(b"SEEP_PYTHON=yes\n"):].split(b"\0")[0]
    assert sorted(line.split()) == [b"SEEP_EXACT", b"SEEP_PYTHON=yes",
                                    b"SEEP_SAMPL"]
    assert b"of-no-concern" not in data


def names(folder):
    """Names of the recordings in a folder."""
    return [path.name for path in recordings(folder)]


HOLD = "k=[bytearray(1<<20) for _ in range(64)]"


def test_the_name_goes_to_the_command_and_children_have_numbers(tmp_path):
    child = [PYTHON, "-c", HOLD]
    script = (f"import subprocess as s; s.run({child}); s.run({child}); "
              f"import os; os.write(1, b'%d' % os.getpid()); {HOLD}")
    done = seep("run", "-o", "name.seep", "--", PYTHON, "-c", script,
                cwd=tmp_path)
    assert done.returncode == 0
    assert names(tmp_path) == ["name.1.seep", "name.2.seep", "name.seep"]
    [process] = document(tmp_path / "name.seep")["processes"]
    assert process["process"]["pid"] == int(done.stdout)


def launcher_in(folder, last):
    """As pyenv starts a python3: shells, and what these call."""
    path = folder / "launcher"
    path.write_text(textwrap.dedent(f"""\
        #!/bin/bash
        for i in 1 2 3; do
            at="$(readlink -f "$0")"; at="${{at%/*}}"; at="$(dirname "$at")"
        done
        name="$(basename "$0" | tr a-z A-Z | head -n 1)"
        exec env NAME="$name" {last} "$@"
        """))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("options", [(), ("--exact",)])
def test_launchers_leave_nothing(tmp_path, options):
    folder = tmp_path / "recordings"
    folder.mkdir()
    launcher = launcher_in(tmp_path, launcher_in(
        pathlib.Path(shutil.copytree(tmp_path, tmp_path / "second")), PYTHON))
    done = seep("run", *options, "-o", folder / "name.seep", "--", launcher,
                "-c", HOLD, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert names(folder) == ["name.seep"]


def test_what_a_launcher_starts_is_told_as_recorded(tmp_path):
    """timeout is not recorded, and leaves the name free."""
    done = seep("run", "-o", "name.seep", "--", "timeout", "60", PYTHON, "-c",
                HOLD, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert names(tmp_path) == ["name.1.seep"]
    assert b"seep: recorded ./name.1.seep, " in done.stderr
    assert b"not recorded" not in done.stderr


def test_a_chain_of_exec_ends_at_the_name(tmp_path):
    """Two images recorded before the last: one at once gone, one not."""
    last = f"{HOLD}; print('last')"
    second = (f"import os,time; {HOLD}; time.sleep(1.2); "
              f"os.execv({PYTHON!r}, ['third', '-c', {last!r}])")
    first = f"import os; os.execv({PYTHON!r}, ['second', '-c', {second!r}])"
    done = seep("run", "--no-looks", "-o", "name.seep", "--", PYTHON, "-c",
                first, cwd=tmp_path)
    assert done.stdout == b"last\n"
    assert names(tmp_path) == ["name.1.seep", "name.seep"]
    [process] = document(tmp_path / "name.seep")["processes"]
    assert process["process"]["argv"][0] == "third"


def test_what_the_command_is_called_does_not_matter(tmp_path):
    """sort is a helper of scripts, and can be what is asked about."""
    text = "\n".join(map(str, range(200000)))
    done = seep("run", "--exact", "-o", "name.seep", "--", "tr", "0", "1",
                stdin=text.encode(), cwd=tmp_path)
    assert done.returncode == 0
    assert names(tmp_path) == ["name.seep"]


# How much stays

def short(folder, **variables):
    """A process that is over within a second, and keeps nothing large."""
    return preloaded(folder / "%e.%p.%n.seep", PYTHON, "-c", "pass",
                     SEEP_SAMPLE="64KiB", SEEP_SIZE="2MiB", **variables)


def test_a_folder_is_bounded(tmp_path):
    for _ in range(12):
        assert short(tmp_path, SEEP_KEEP=5).returncode == 0
    assert len(recordings(tmp_path)) <= 6
    for _ in range(3):
        assert short(tmp_path, SEEP_KEEP="all").returncode == 0
    assert len(recordings(tmp_path)) >= 8


def test_the_living_stay_and_the_killed_go_last(tmp_path):
    env = environment() | {"LD_PRELOAD": str(PRELOAD),
                           "SEEP_OUT": f"{tmp_path}/%p.seep"}
    alive, killed = (subprocess.Popen(
        allocate("print(flush=True); time.sleep(60)"), env=env,
        stdout=subprocess.PIPE) for _ in range(2))
    for process in (alive, killed):
        assert process.stdout.readline() == b"\n"
    killed.kill()
    killed.wait()
    left = preloaded(tmp_path / "left.seep", *allocate("os._exit(0)"))
    assert left.returncode == 0
    try:
        for _ in range(8):
            assert short(tmp_path, SEEP_KEEP=4).returncode == 0
        assert {f"{alive.pid}.seep", f"{killed.pid}.seep",
                "left.seep"} <= set(names(tmp_path))
        assert len(recordings(tmp_path)) <= 5
        # No more is kept of those that were killed or called _exit.
        for _ in range(2):
            assert short(tmp_path, SEEP_KEEP=1).returncode == 0
        assert f"{alive.pid}.seep" in names(tmp_path)
        assert len(recordings(tmp_path)) <= 2
    finally:
        alive.kill()
        alive.wait()
        alive.stdout.close()
        killed.stdout.close()


def test_what_went_is_told(tmp_path):
    for _ in range(4):
        short(tmp_path, SEEP_KEEP="all")
    taken = {path: path.stat().st_blocks * 512
             for path in recordings(tmp_path)}
    done = short(tmp_path, SEEP_KEEP=2, SEEP_VERBOSE=1)
    assert done.stderr.decode().endswith(
        "; 2 older recordings were removed (SEEP_KEEP)\n")
    [path] = [path for path in recordings(tmp_path)
              if document(path)["processes"][0]["process"]["removed"]
              ["recordings"]]
    removed = document(path)["processes"][0]["process"]["removed"]
    assert removed["recordings"] == 2
    gone = set(taken) - set(recordings(tmp_path))
    # A file system may have moved its own blocks of them meanwhile.
    assert removed["bytes"] == pytest.approx(
        sum(taken[path] for path in gone), rel=0.1)
    for verb in ("info", "report"):
        text = seep(verb, path).stdout.decode()
        assert re.search(r"removed +2 older recordings, [0-9.]+ KiB,", text)
    done = seep("run", "--keep", "1", "-o", f"{tmp_path}/", "--", PYTHON, "-c",
                "pass")
    assert re.search(r"held more than SEEP_KEEP allows: 2 older recordings, "
                     r"\S+ \wiB, were removed; --keep all",
                     done.stderr.decode().replace("\n", " "))


def test_twenty_clean_at_once(tmp_path):
    command = [PYTHON, "-c", "pass"]
    env = environment() | {
        "LD_PRELOAD": str(PRELOAD), "SEEP_OUT": f"{tmp_path}/%e.%p.seep",
        "SEEP_KEEP": "10", "SEEP_SAMPLE": "64KiB", "SEEP_SIZE": "2MiB"}
    for _ in range(5 if LONG else 3):
        running = [subprocess.Popen(command, env=env, stderr=subprocess.PIPE)
                   for _ in range(20)]
        for process in running:
            assert process.communicate(timeout=60)[1] == b""
            assert process.returncode == 0
    short(tmp_path, SEEP_KEEP=10)
    paths = recordings(tmp_path)
    assert 8 <= len(paths) <= 11
    for path in paths:
        document(path)


# Read-only, small and full: mounted in a name space of their own

def mounted(folder, options, script, **variables):
    """@script of a shell where @folder is a tmpfs of its own."""
    need("unshare", "mount")
    lines = f"mount -t tmpfs -o {options} tmpfs {folder} || exit 77\n{script}"
    done = subprocess.run(
        ["unshare", "-m", "/bin/sh", "-c", lines], env=environment() | {
            "PRELOAD": str(PRELOAD), "OUT": str(folder), "PYTHON": PYTHON,
            "SEEP_VERBOSE": "1"} | variables,
        capture_output=True, timeout=60, check=False)
    if done.returncode == 77 or b"unshare" in done.stderr:
        pytest.skip("nothing can be mounted here")
    return done


ALLOCATE = ("LD_PRELOAD=$PRELOAD SEEP_OUT=$OUT/%p.seep $PYTHON -c "
            f"'{HOLD}' || exit 1; ls $OUT | grep -c seep$")


def test_a_read_only_folder_is_said(tmp_path):
    done = mounted(tmp_path, "ro", ALLOCATE)
    assert done.stdout == b"0\n"
    assert done.stderr.decode() == (
        f"{REFUSED}{tmp_path} is on a read-only file system; "
        "mount a volume there, or choose another folder\n")


def test_the_shared_memory_of_a_container_holds_recordings(tmp_path):
    """64 MiB; a quarter of it is left alone."""
    done = mounted(tmp_path, "size=64m", ALLOCATE)
    assert done.stdout == b"1\n", done.stderr
    assert done.stderr.decode().startswith(RECORDED)


def test_a_quarter_of_a_tmpfs_is_left_alone(tmp_path):
    fill = "head -c 52m /dev/zero >$OUT/filler; "
    done = mounted(tmp_path, "size=64m", fill + ALLOCATE, SEEP_SIZE="2MiB")
    assert done.stdout == b"0\n"
    assert "would be left with too little free space" in \
        done.stderr.decode()
    done = mounted(tmp_path, "size=64m", fill + ALLOCATE, SEEP_FLOOR="1%",
                   SEEP_SIZE="2MiB")
    assert done.stdout == b"1\n", done.stderr


def test_a_full_folder_is_said(tmp_path):
    fill = "head -c 100m /dev/zero >$OUT/filler 2>/dev/null; "
    done = mounted(tmp_path, "size=64m", fill + ALLOCATE)
    assert done.stdout == b"0\n"
    assert done.stderr.decode() == (
        f"{REFUSED}{tmp_path} is on a full file system; "
        "free some space, or choose another folder\n")


# As a pod: examples/06-kubernetes

def probe_often(folder, user):
    until = time.monotonic() + (600 if LONG else 0)
    rounds = 0
    while rounds < 30 or time.monotonic() < until:
        done = preloaded(f"{folder}/%e.%p.%t.seep", PYTHON, "-c",
                         "x = bytearray(5 << 20)", user=user, SEEP_KEEP="10")
        assert (done.returncode, done.stderr) == (0, b"")
        assert len(recordings(folder)) <= 12
        rounds += 1
        time.sleep(1 if LONG else 0)


def test_a_pod_with_an_exec_probe_is_bounded(shared):
    """A worker, and a probe each second that is preloaded like it."""
    user = other_user()
    os.chown(shared, 0, GROUP)
    shared.chmod(0o2777)
    env = environment() | {"LD_PRELOAD": str(PRELOAD),
                           "SEEP_OUT": f"{shared}/%e.%p.%t.seep"}
    with subprocess.Popen(
            allocate("print(flush=True); time.sleep(900)"), env=env,
            user=user, group=user, extra_groups=[GROUP], cwd="/",
            stdout=subprocess.PIPE) as worker:
        try:
            assert worker.stdout.readline() == b"\n"
            [recording] = recordings(shared)
            probe_often(shared, user)
            assert recording.exists()
        finally:
            worker.kill()
    document(recording)
