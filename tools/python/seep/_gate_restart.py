# SPDX-License-Identifier: LGPL-2.1-or-later
"""pytest, once more, as a process that is recorded.

Invariant: it is started again at most once, before anything was collected or
captured, with the arguments that it had; what its tests see of the environment
is what it was started with.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

_SAVED = "SEEP_PYTEST_SAVED"    # the variables as they were; it was restarted
_FOLDER = "SEEP_PYTEST_FOLDER"  # where the recordings are, until the end
_OURS = ("LD_PRELOAD", "SEEP_OUT", "SEEP_SAMPLE", "SEEP_PYTHON", "SEEP_CUDA",
         "SEEP_OUT_ANY", "SEEP_STACKS", _SAVED, _FOLDER)
_KEPT_IF_SET = ("SEEP_PYTHON", "SEEP_CUDA", "SEEP_OUT_ANY", "SEEP_STACKS")
_LIMIT_S = 60

# As this process was started: what it is told is taken away later.
_saved = json.loads(os.environ[_SAVED]) if _SAVED in os.environ else None


class CannotRestart(Exception):
    """Why, and what to do: for people."""


def command(given=None):
    """Path of `seep`; CannotRestart."""
    asked = given or "seep"
    found = shutil.which(asked)
    if found is None:
        raise CannotRestart(
            f"seep: command {asked!r} not found in PATH: install it, or name "
            f"it by --seep-command")
    return found


def was_restarted():
    """Is this what restart() made of pytest, or a process below it?"""
    return _saved is not None


def _variables(tool, folder):
    done = subprocess.run(
        [tool, "env", "--exact", "--format", "docker", "-o", folder + "/"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=_LIMIT_S,
        check=False, text=True)
    if done.returncode != 0:
        raise CannotRestart(f"seep: {tool} env: {done.stderr.strip()}")
    found = dict(line.split("=", 1) for line in done.stdout.splitlines()
                 if "=" in line)
    # The imports of a suite have more stacks than there is room for, and what
    # is told is the user's line, which short ones keep.
    return {**found, "SEEP_OUT_ANY": "1", "SEEP_STACKS": "short"}


def _environment(tool, folder):
    environment = dict(os.environ)
    for name, value in _variables(tool, folder).items():
        if name == "LD_PRELOAD" and environment.get(name):
            value = f"{value}:{environment[name]}"
        if name not in _KEPT_IF_SET or name not in environment:
            environment[name] = value
    environment[_SAVED] = json.dumps(
        {name: os.environ.get(name) for name in _OURS})
    environment[_FOLDER] = folder
    return environment


def _arguments():
    with open("/proc/self/cmdline", "rb") as file:
        words = file.read().split(b"\0")[:-1]
    program = os.path.basename(sys.argv[0])
    if program not in ("pytest", "py.test", "__main__.py"):
        raise CannotRestart(
            "seep: pytest was called by a program, which cannot be started "
            "twice: run it as `seep run --exact -- PROGRAM`")
    return words


def prepare_workers(given=None):
    """What is started from here on is recorded. @return the folder of the
    recordings, for the caller to remove; CannotRestart"""
    tool = command(given)
    folder = tempfile.mkdtemp(prefix="seep-pytest-")
    os.environ.update(_environment(tool, folder))
    return folder


def restart(given=None):
    """Does not return, or raises CannotRestart."""
    if was_restarted():
        raise CannotRestart(
            "seep: the preload is not in this process (a static python, a "
            "sanitizer, LD_PRELOAD taken away?): nothing can be measured")
    words = _arguments()
    tool = command(given)
    folder = tempfile.mkdtemp(prefix="seep-pytest-")
    try:
        environment = _environment(tool, folder)
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(sys.executable, words, environment)
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotRestart(f"seep: pytest cannot be started again under "
                            f"the preload: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def plain_environment():
    """What a process that is not to be recorded gets."""
    environment = dict(os.environ)
    environment.pop("LD_PRELOAD", None)
    if was_restarted():
        _put_back(environment)
    return environment


def _put_back(environment):
    for name, value in _saved.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value


def take_folder():
    """The folder of the recordings, None if nobody was restarted. From here on
    tests see the environment of old."""
    folder = os.environ.get(_FOLDER)
    if was_restarted():
        _put_back(os.environ)
    return folder


def recording():
    """Path of this process's own recording; None.

    The file was made without a name, and got one: the mapping has its number
    and its folder only.
    """
    with open("/proc/self/maps", encoding="utf-8",
              errors="surrogateescape") as file:
        for line in file:
            words = line.rstrip("\n").split(None, 5)
            if len(words) == 6 and words[1] == "rw-s" and \
                    words[5].startswith("/"):
                found = _named(os.path.dirname(words[5]), int(words[4]))
                if found is not None:
                    return found
    return None


def _named(folder, number):
    """The recording in a folder that is that file, or ours by its name."""
    by_name = None
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return None
    for entry in entries:
        if entry.is_file() and _is_recording(entry.path):
            if entry.inode() == number:
                return entry.path
            if str(os.getpid()) in entry.name.split("."):
                by_name = entry.path
    return by_name


def _is_recording(path):
    try:
        with open(path, "rb") as file:
            return file.read(8) == b"seeprec\n"
    except OSError:
        return False
