# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run programs with and without the preload, and read what was recorded.

Invariant: every process that is started here has a time limit, and only
processes started here are ended.

Whatever a test reads must not contradict itself (consistency.py); with
SEEP_TEST_LONG=1 neither may anything that it leaves in its folder, and every
test runs at its full length.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

import consistency
from built import BUILD, PRELOAD, SEEP

PROGRAMS = BUILD / "tests/integration/programs"
DUMP = BUILD / "tests/integration/dump_recording"
LONG = os.environ.get("SEEP_TEST_LONG", "") not in ("", "0")
LIBRARIES = pathlib.Path("/usr/lib") / f"{os.uname().machine}-linux-gnu"
ALLOCATORS = {
    "glibc": None,
    "jemalloc": LIBRARIES / "libjemalloc.so.2",
    "tcmalloc": LIBRARIES / "libtcmalloc_minimal.so.4",
    "mimalloc": LIBRARIES / "libmimalloc.so.2",
}
OURS = ("LD_PRELOAD", "SEEP_OUT", "SEEP_SAMPLE", "SEEP_BUDGET", "SEEP_SIZE",
        "SEEP_UNWINDER", "SEEP_LABELS", "SEEP_OUT_ANY", "SEEP_PYTHON",
        "SEEP_CUDA", "SEEP_FLOOR", "SEEP_KEEP", "SEEP_VERBOSE",
        "SEEP_COMMAND_PID", "SEEP_FILTER")
TIMEOUT_S = 180  # none takes that long: for what hangs


@dataclasses.dataclass
class Run:
    """How one run ended, and what it recorded."""
    status: int
    stdout: bytes
    stderr: bytes
    recordings: list

    @property
    def seen(self):
        """What a user of the program could tell apart."""
        return self.status, self.stdout, self.stderr


def program(name):
    """Path of a test program."""
    return str(PROGRAMS / name)


def allocator_path(name):
    """Library of an allocator, None for glibc's; skips if not installed."""
    path = ALLOCATORS[name]
    if path is not None and not path.exists():
        pytest.skip(f"{path.name} is not installed")
    return path


def environment(folder=None, sample=None, allocator="glibc", seep_first=True,
                preload=True, **more):
    """The variables of a run; without a folder it goes unrecorded."""
    variables = {k: v for k, v in os.environ.items() if k not in OURS}
    path = allocator_path(allocator)
    libraries = [str(path)] if path else []
    if folder is not None:
        if preload:
            libraries.insert(0 if seep_first else len(libraries),
                             str(PRELOAD))
        variables["SEEP_OUT"] = f"{folder}/%e.%p.%t.%n.seep"
        if sample is not None:
            variables["SEEP_SAMPLE"] = str(sample)
    if libraries:
        variables["LD_PRELOAD"] = ":".join(libraries)
    for name, value in more.items():
        variables[name] = str(value)
    return variables


def recordings_in(folder):
    """The recordings of a folder, sorted by name."""
    return sorted(pathlib.Path(folder).glob("*.seep"))


def execute(argv, folder=None, cwd=None, stdin=b"", timeout=TIMEOUT_S,
            popen=None, **variables):
    """Run argv in a session of its own and wait for it; see environment()."""
    process = subprocess.Popen(
        [str(word) for word in argv], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
        env=environment(folder, **variables), start_new_session=True,
        **(popen or {}))
    try:
        out, err = process.communicate(stdin, timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        pytest.fail(f"{argv} hung; it printed {out[-2000:]} {err[-2000:]}")
    return Run(process.returncode, out, err,
               recordings_in(folder) if folder else [])


def dump(path, *options):
    """All that the reader library says of a recording."""
    done = subprocess.run([DUMP, *options, path], capture_output=True,
                          timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def report(*paths):
    """The document of `seep report --json`."""
    if not SEEP.exists():
        pytest.skip("the tool is not built")
    done = subprocess.run([SEEP, "report", "--json", *paths],
                          capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode in (0, 3, 4), done.stderr
    document = json.loads(done.stdout)
    against = consistency.of_document(document)
    assert not against, against
    return document


def frame_functions(site):
    """Names of a site's frames, of either document."""
    return [frame["function"] if isinstance(frame, dict) else frame
            for frame in site["frames"]]


SUMMED = ("live_bytes", "live_count", "allocated_bytes", "allocated_count",
          "freed_bytes", "freed_count")


def sums_by_site(sites, names):
    """{name: figures} of all sites with a frame of that name and space, in
    bytes that were asked for."""
    wanted = {entry["name"]: entry["space"] for entry in names}
    sums = {}
    for site in sites:
        found = [name for name in frame_functions(site) if name in wanted]
        if not found or site["space"] != wanted[found[0]]:
            continue
        entry = sums.setdefault(found[0], dict.fromkeys(SUMMED, 0))
        asked = {**site, **site.get("requested", {})}
        for key in SUMMED:
            entry[key] += asked.get(key, 0)
        entry["variance"] = (entry.get("variance", 0)
                             + (site.get("live_bytes_error", 0) / 1.96) ** 2)
    return sums


def read_truth(path):
    """What a program knew of itself, with the live figures worked out."""
    sites = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["sites"]
    for site in sites:
        site["live_bytes"] = site["allocated_bytes"] - site["freed_bytes"]
        site["live_count"] = site["allocated_count"] - site["freed_count"]
    return sites


def need(*commands):
    """Skip the test unless all commands are installed."""
    for command in commands:
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed")


@pytest.fixture
def folder():
    """A folder for recordings that is gone after the test: they are large."""
    with tempfile.TemporaryDirectory(prefix="seep-test-") as path:
        yield pathlib.Path(path)
        if LONG:
            assert not against_in(path)


def against_in(folder):
    """What of the recordings there, that can be read, denies itself."""
    return [f"{path.name}: {found}" for path in recordings_in(folder)
            if subprocess.run([SEEP, "info", path], capture_output=True,
                              timeout=TIMEOUT_S, check=False).returncode == 0
            for found in consistency.contradictions_in(str(path))]


@contextlib.contextmanager
def memory_folder(need_bytes):
    """A folder for recordings that are many, in memory if there is room: who
    removes them from a disk waits until they are written."""
    place = pathlib.Path("/dev/shm")
    room = place.is_dir() and os.access(place, os.W_OK) and (
        os.statvfs(place).f_bavail * os.statvfs(place).f_bsize)
    with tempfile.TemporaryDirectory(
            prefix="seep-test-",
            dir=place if room and room > 2 * need_bytes else None) as path:
        yield pathlib.Path(path)


def pytest_collection_modifyitems(items):
    """Nothing can be told before the preload is built."""
    if not PRELOAD.exists():
        for item in items:
            item.add_marker(pytest.mark.skip(reason=f"no {PRELOAD}"))


def pytest_collection_finish():
    """Whoever is not judged by how it grows gives way to those that are."""
    if "crowd" not in sys.modules:
        os.nice(5)
