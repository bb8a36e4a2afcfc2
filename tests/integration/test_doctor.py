# SPDX-License-Identifier: LGPL-2.1-or-later
"""`seep doctor` on this machine, and where something is broken on purpose.

What another machine would be like is told to the checks by unit tests; here
are faults that can be planted: folders, limits, a PATH, programs.
"""
import ctypes
import functools
import json
import os
import pathlib
import re
import resource
import stat
import struct
import subprocess
import sys
import time

import pytest

from conftest import ALLOCATORS, PRELOAD, SEEP, environment, need, program

LIMIT_S = 60


def doctor(*words, popen=None, **variables):
    """The command; without a Python in PATH, as trials of them take time."""
    env = environment() | {"SEEP_PRELOAD": str(PRELOAD), "PATH": "/nowhere"}
    return subprocess.run([SEEP, "doctor", *map(str, words)],
                          env=env | variables, capture_output=True,
                          timeout=LIMIT_S, check=False, **(popen or {}))


def checks(*words, status=None, **more):
    """{check: its first row}, from JSON."""
    done = doctor("--json", *words, **more)
    assert done.stderr == b"" and done.returncode in (0, 3)
    document = json.loads(done.stdout)
    assert document["schema"] == "seep-doctor/1"
    rows = document["checks"]
    worst = {row["level"] for row in rows}
    assert document["works"] == ("no" not in worst) == (done.returncode == 0)
    assert document["limits"] == sum(row["level"] == "warn" for row in rows)
    assert status is None or done.returncode == status
    return {row["check"]: row for row in reversed(rows)}


def script(path, text):
    path.write_text(text, encoding="ascii")
    path.chmod(0o755)
    return path


def test_here_it_works_and_leaves_nothing(folder):
    temporary = folder / "tmp"
    temporary.mkdir()
    found = checks("-o", folder / "out/%p.seep", status=0,
                   TMPDIR=str(temporary))
    for name in ("recording", "glibc", "limits", "container", "allocator",
                 "unwinder"):
        assert found[name]["level"] == "ok", found[name]
    assert re.search(r"\d\d+ events read back", found["recording"]["reason"])
    assert list(temporary.iterdir()) == []
    assert list(folder.iterdir()) == [temporary]


def test_a_person_gets_the_answer_then_rows_then_the_next_step(folder):
    done = doctor("-o", f"{folder}/", COLUMNS="80")
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0 and done.stderr == b""
    assert lines[0].startswith("seep works here")
    assert lines[1].startswith(" ok    recording  ")
    assert lines[-1] == " next   seep run -- python3 serve.py"
    assert max(map(len, (line for line in lines
                         if str(PRELOAD) not in line))) <= 80
    assert b"\033" not in done.stdout


def test_the_lines_of_a_python_are_seen():
    found = checks(PATH="/usr/bin:/bin", status=0)
    if not os.path.exists("/usr/bin/python3"):
        assert found["python"]["level"] == "absent"
        return
    assert found["python"]["level"] == "ok", found["python"]
    assert "its lines are in the stacks" in found["python"]["reason"]


def test_a_python_behind_a_launcher_is_seen(folder):
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip("no /usr/bin/python3")
    script(folder / "python3",
           f'#!/bin/sh\n/usr/bin/python3 "$@"\n{program("sampled")} 4 '
           '/dev/null\n')
    found = checks(PATH=str(folder), status=0)
    assert found["python"]["level"] == "ok", found["python"]


def test_two_names_of_one_python_are_one_row(folder):
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip("no /usr/bin/python3")
    (folder / "real").mkdir()
    for name in ("python", "python3"):
        (folder / "real" / name).symlink_to("/usr/bin/python3")
        script(folder / name,
               f'#!/bin/sh\nexec {folder}/real/{name} "$@"\n')
    done = doctor("--json", PATH=str(folder))
    rows = [row for row in json.loads(done.stdout)["checks"]
            if row["check"] == "python"]
    assert len(rows) == 1 and rows[0]["level"] == "ok", rows


def environment_of(folder):
    """A Python of an environment that PATH does not have; it has PyTorch."""
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip("no /usr/bin/python3")
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").symlink_to("/usr/bin/python3")
    version = subprocess.run(
        ["/usr/bin/python3", "-c",
         "import sys; print('python%d.%d' % sys.version_info[:2])"],
        capture_output=True, check=True, text=True).stdout.strip()
    torch = folder / "lib" / version / "site-packages" / "torch"
    torch.mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n", "ascii")
    (torch / "__init__.py").write_text("", "ascii")
    (torch / "version.py").write_text("__version__ = '9.8.7'\n", "ascii")
    return folder / "bin" / "python3"


@pytest.mark.parametrize("what", ["itself", "a script of it"])
def test_the_python_of_the_command_is_tried_and_no_other(folder, what):
    python = environment_of(folder)
    other = folder / "other"
    other.mkdir()
    script(other / "python3", "#!/bin/sh\nexit 1\n")
    command = python if what == "itself" else script(
        folder / "serve", f"#!{python}\n")
    found = checks("--", command, PATH=str(other), status=0)
    assert found["python"]["level"] == "ok", found["python"]
    assert str(python) in found["python"]["reason"]
    assert found["torch"]["reason"].startswith(f"PyTorch 9.8.7 for {python}")
    # of a command that is no Python, those of PATH
    found = checks("--", "/bin/ls", PATH=str(other), status=0)
    assert f"{other}/python3 does not work" in found["python"]["reason"]


def test_a_path_without_python_is_no_fault(folder):
    found = checks(PATH=str(folder), status=0)
    assert found["python"]["level"] == "absent"
    assert found["torch"]["level"] == "absent"


def test_a_python_that_fails_is_named_with_its_words(folder):
    script(folder / "python3",
           "#!/bin/sh\necho no module named encodings >&2\nexit 1\n")
    found = checks(PATH=str(folder), status=0)
    assert found["python"]["level"] == "warn"
    assert found["python"]["reason"] == (
        f"{folder}/python3 does not work: exit status 1, no module named "
        "encodings")


def test_a_python_that_hangs_is_ended_with_what_it_started(folder):
    script(folder / "python3",
           f"#!/bin/sh\nsleep 300 & echo $! >{folder}/started\n"
           "exec sleep 300\n")
    began = time.monotonic()
    found = checks(PATH=f"{folder}:/usr/bin:/bin", status=0)
    assert time.monotonic() - began < 30
    assert found["python"]["reason"] == (
        f"{folder}/python3 did not answer in time")
    started = int((folder / "started").read_text())
    state = pathlib.Path(f"/proc/{started}/stat")
    assert not state.exists() or state.read_text().split(")")[1][1] == "Z"


def test_a_placeholder_of_another_version_is_not_tried(folder):
    for name in ("python3.9", "python3-config", "pythonw"):
        script(folder / name, "#!/bin/sh\nexit 127\n")
    assert checks(PATH=str(folder))["python"]["level"] == "absent"


def test_without_its_library_it_does_not_work(folder):
    found = checks(status=3, SEEP_PRELOAD=str(folder / "gone.so"))
    assert found["recording"]["level"] == "no"
    assert "SEEP_PRELOAD" in found["recording"]["remedy"]


def test_a_library_that_is_none_is_told_in_the_loaders_words(folder):
    broken = folder / "libseep.so"
    broken.write_text("no library")
    found = checks(status=3, SEEP_PRELOAD=str(broken))
    assert "invalid ELF header" in found["recording"]["reason"] \
        or "file too short" in found["recording"]["reason"]


@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc", "mimalloc"])
def test_an_allocator_that_is_preloaded_is_named_and_works(name):
    if not ALLOCATORS[name].exists():
        pytest.skip(f"no {name}")
    found = checks(status=0, LD_PRELOAD=str(ALLOCATORS[name]))
    assert found["recording"]["level"] == "ok"
    assert found["allocator"]["reason"].startswith(f"{name} is preloaded")


def test_a_limit_of_files_does_not_end_the_doctor(folder):
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE,
                              (1 << 20, 1 << 20))
    found = checks("-o", f"{folder}/", status=3, popen={"preexec_fn": limit})
    assert found["limits"]["level"] == "no"
    assert "1 MiB" in found["limits"]["reason"]


def test_a_limit_of_the_address_space_is_told(folder):
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_AS,
                              (70 << 20, 70 << 20))
    found = checks("-o", f"{folder}/", status=3, popen={"preexec_fn": limit})
    assert "address space" in found["limits"]["reason"]


def test_a_folder_that_everybody_writes_is_no_fault(folder):
    """A volume of a pod is so, and no mode of it can be changed there."""
    folder.chmod(0o777)
    assert checks("-o", f"{folder}/")["folder"]["level"] != "no"


def test_a_folder_that_is_not_there_yet_is_a_limit(folder):
    found = checks("-o", f"{folder}/a/b/", status=0)
    assert found["folder"]["level"] == "warn"
    assert f"{folder}/a/b does not exist" in found["folder"]["reason"]


def test_variables_that_are_not_understood_are_told(folder):
    found = checks("-o", f"{folder}/", SEEP_SAMPL="1", status=0)
    assert found["variables"]["level"] == "warn"
    assert found["variables"]["remedy"] == "did you mean SEEP_SAMPLE?"
    found = checks("-o", f"{folder}/", SEEP_SAMPLE="1", status=0)
    assert found["variables"]["level"] == "ok"


def test_a_file_system_without_files_is_refused():
    found = checks("-o", "/proc/", status=3)
    assert found["folder"]["level"] == "no"
    assert "cannot be created" in found["folder"]["reason"]


def test_a_tmpfs_counts_as_memory():
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no /dev/shm")
    found = checks("-o", "/dev/shm/")
    assert "tmpfs" in found["folder"]["reason"] \
        or found["folder"]["level"] == "no"


def mounted(folder, options, *words, **variables):
    """The first rows with a tmpfs at a folder, in a name space of its own."""
    need("unshare", "mount")
    env = environment() | {"SEEP_PRELOAD": str(PRELOAD)} | variables
    lines = [f"mount -t tmpfs -o {options} tmpfs {folder} || exit 77",
             f"cp {PRELOAD} {folder}/ 2>/dev/null",
             f"PATH=/nowhere exec {SEEP} doctor --json {' '.join(words)}"]
    done = subprocess.run(["unshare", "-m", "sh", "-c", "\n".join(lines)],
                          env=env, capture_output=True, timeout=LIMIT_S,
                          check=False)
    if done.returncode in (1, 77):
        pytest.skip("nothing can be mounted here")
    assert done.returncode == 3, done.stderr
    return {row["check"]: row
            for row in reversed(json.loads(done.stdout)["checks"])}


def test_a_folder_that_is_full_is_told(folder):
    room = PRELOAD.stat().st_size + (128 << 10)  # the library is copied there
    found = mounted(folder, f"size={room}", "-o", f"{folder}/")
    assert "too little free space" in found["folder"]["reason"]


def test_a_folder_that_is_read_only_is_told(folder):
    found = mounted(folder, "ro", "-o", f"{folder}/")
    assert "read-only file system" in found["folder"]["reason"]


def test_a_library_without_execution_is_told(folder):
    found = mounted(folder, "noexec", "-o", "/dev/shm/",
                    SEEP_PRELOAD=f"{folder}/{PRELOAD.name}")
    assert "noexec" in found["recording"]["reason"]


def filtered(action):
    """In a child: process_vm_readv does what the filter says."""
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
    number = {"x86_64": 310, "aarch64": 270}[os.uname().machine]
    code = b"".join(struct.pack("=HBBI", *line) for line in (
        (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, action),
        (0x06, 0, 0, 0x7fff0000)))
    libc = ctypes.CDLL(None)
    libc.prctl(38, 1, 0, 0, 0)
    libc.prctl(22, 2, ctypes.byref(Program(4, code)), 0, 0)


@pytest.mark.parametrize("action, words", [
    (0x00050001, "Operation not permitted"), (0x80000000, "seccomp kills")])
def test_a_filter_of_system_calls_is_told_and_survived(action, words):
    found = checks(status=0, popen={
        "preexec_fn": functools.partial(filtered, action)})
    assert found["security"]["level"] == "warn"
    assert words in found["security"]["reason"]
    assert found["recording"]["level"] == "ok"


def test_another_user_is_told_what_it_may_not(folder):
    need("setpriv")
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    readable = pathlib.Path(SEEP).resolve()
    if not all(place.stat().st_mode & stat.S_IXOTH
               for place in readable.parents):
        pytest.skip("the build is not everybody's")
    folder.chmod(0o700)
    env = environment() | {"SEEP_PRELOAD": str(PRELOAD), "PATH": "/nowhere"}
    done = subprocess.run(
        ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
         "--clear-groups", SEEP, "doctor", "--json", "-o", f"{folder}/x/"],
        env=env, capture_output=True, timeout=LIMIT_S, check=False, cwd="/")
    assert done.returncode == 3, done.stderr
    rows = {row["check"]: row for row in json.loads(done.stdout)["checks"]}
    assert rows["recording"]["level"] == "ok"
    assert "cannot be written by this user" in rows["folder"]["reason"]


def compiled(folder, name, *flags):
    """A program that does nothing."""
    need("gcc")
    source = folder / "nothing.c"
    source.write_text("int main(void) { return 0; }\n")
    done = subprocess.run(["gcc", *flags, "-o", folder / name, source],
                          capture_output=True, timeout=LIMIT_S, check=False)
    if done.returncode != 0:
        pytest.skip(f"cannot build with {flags}")
    return folder / name


@pytest.mark.parametrize("flags, words", [
    (["-static"], "is a static program"),
    (["-static-pie"], "is a static program"),
    (["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"], "musl"),
    (["-Wl,--dynamic-linker=/nowhere/ld.so"], "a loader that is not installed"),
    (["-fsanitize=address"], "sanitizer"),
])
def test_a_command_that_cannot_be_recorded_is_told_why(folder, flags, words):
    path = compiled(folder, "program", *flags)
    done = doctor("--", path, "--its", "options")
    assert done.returncode == 3
    answer = b" ".join(done.stdout.split())
    assert answer.startswith(b"seep cannot record it: " + bytes(path))
    assert words.encode() in answer


def test_a_program_with_a_malloc_of_its_own_is_told():
    found = checks("--", program("own_malloc"), status=3)
    assert "malloc of its own" in found["command"]["reason"]


def test_a_32_bit_program_is_told(folder):
    path = compiled(folder, "program")
    with open(path, "r+b") as file:
        file.seek(4)
        file.write(b"\x01")
    found = checks("--", path, status=3)
    assert "another architecture" in found["command"]["reason"]


def test_a_command_that_can_is_told_and_not_run(folder):
    mark = folder / "was-run"
    path = script(folder / "job", f"#!/usr/bin/env sh\n: >{mark}\n")
    found = checks("-o", f"{folder}/", "--", path, status=0,
                   PATH="/usr/bin:/bin")
    assert found["command"]["level"] == "ok"
    assert not mark.exists()


def test_a_command_that_is_not_there_is_told(folder):
    found = checks("--", "no-such-command", status=3, PATH=str(folder))
    assert found["command"]["reason"] == "no-such-command was not found"


@pytest.mark.parametrize("words, said", [
    (["--jsn"], b"did you mean --json?"),
    (["--out"], b"needs a value"),
    (["-o", ""], b"expected a file"),
    (["--color", "pink"], b"expected auto, always or never")])
def test_wrong_usage_is_one_line(words, said):
    done = doctor(*words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in done.stderr and done.stderr.count(b"\n") == 1


def test_what_cannot_be_printed_is_said():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    env = environment() | {"SEEP_PRELOAD": str(PRELOAD), "PATH": "/nowhere"}
    with open("/dev/full", "wb") as full:
        done = subprocess.run([SEEP, "doctor", "--json"], env=env, stdout=full,
                              stderr=subprocess.PIPE, timeout=LIMIT_S,
                              check=False)
    assert done.returncode == 1


def test_the_help_is_short():
    done = doctor("--help")
    assert done.returncode == 0
    assert done.stdout.startswith(b"usage: seep doctor")
    assert len(done.stdout.splitlines()) <= 24


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-v", "-s"]))
