# SPDX-License-Identifier: LGPL-2.1-or-later
"""`seep probe` and seep-probe: every outcome.

Invariant: every process that is started here is ended here, by its pid, and no
answer is waited for longer than LIMIT_S.
"""
import json
import os
import shutil
import signal
import stat
import subprocess
import time

import pytest

from conftest import LONG, PRELOAD, PROGRAMS
from command_line import document
from probe_case import (FAILED, FORMS, GROWTH, HEADROOM, LIMIT_S,
                        NOT_CONFIGURED, PROBE, READY, STALE, UNKNOWN, USAGE,
                        WORKER, Worker, answer, live_fixture, probe,
                        workers_fixture)

DRIVER = os.environ.get("SEEP_FAKE_CUDA", "")
GROWTH_S = 33  # 30 are needed

__all__ = ["live_fixture", "workers_fixture"]

GPU_WORKER = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, kept = ctypes.c_void_p(), []
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
print("ready", flush=True)
for line in sys.stdin:
    word, size = (line.split() + [0])[:2]
    if word == "take":
        block = ctypes.c_uint64()
        assert cuda.cuMemAlloc_v2(ctypes.byref(block),
                                  ctypes.c_size_t(int(size))) == 0
        kept.append(block)
    elif word == "give":
        for block in kept:
            assert cuda.cuMemFree_v2(block) == 0
        kept.clear()
    print(word, flush=True)
"""
# 2 MiB per second, kept or not, a few requests at a time.
SERVICE = """
import sys, time
kept, end = [], time.monotonic() + 100
while time.monotonic() < end:
    block = bytearray(100 << 10)
    if sys.argv[1] == "leak":
        kept.append(block)
    time.sleep(.05)
"""


@pytest.fixture(name="services", scope="module")
def services_fixture(tmp_path_factory):
    """{kind: (folder, when it began)}; they run while other tests do."""
    folders, started = {}, []
    for kind in ("leak", "clean"):
        folder = tmp_path_factory.mktemp(kind)
        started.append(Worker(folder, SERVICE, kind, speaks=False))
        folders[kind] = folder, time.monotonic()
    yield folders
    for worker in started:
        worker.end()


@pytest.fixture(autouse=True, scope="module")
def begin_services(services):
    """At once, for growth needs half a minute."""
    return services


@pytest.mark.parametrize("form", FORMS)
def test_a_process_within_its_limits_is_ready(live, form):
    code, line = answer("--host-free", "1MiB", "--max-age", "1h", live[1],
                        form=form)

    assert code == READY
    assert line.startswith("ready: the host has ")
    assert "left; written " in line


def test_too_little_memory_of_the_host_is_not_ready(live):
    code, line = answer("--host-free", "1000TiB", live[1])

    assert code == HEADROOM
    assert line.startswith("not ready: the host has ")
    assert line.endswith(" left, under 1000 TiB")


def test_a_short_run_tells_no_growth(live):
    words = ("--max-growth", "1MiB/min", live[1])

    code, line = answer(*words)
    assert code == READY
    assert line.startswith("cannot tell: growth after ")
    assert answer("--strict", *words)[0] == UNKNOWN


def test_a_stopped_process_gets_stale(live):
    worker, folder = live
    words = ("--max-age", "3s", folder)

    worker.tell(f"take {1 << 20}")
    assert answer(*words)[0] == READY
    os.kill(worker.process.pid, signal.SIGSTOP)
    time.sleep(3.5)
    code, line = answer(*words)
    assert code == STALE
    assert line.startswith("not ready: nothing was written for ")
    assert line.endswith("over 3.0 s, and the process is stopped")
    os.kill(worker.process.pid, signal.SIGCONT)
    worker.tell(f"take {1 << 20}")
    assert answer(*words)[0] == READY


def test_of_several_faults_all_are_said_and_the_first_is_the_code(live):
    time.sleep(.1)
    code, line = answer("--max-age", "1ms", "--host-free", "1000TiB", live[1])

    assert code == HEADROOM
    assert line.index("the host has") < line.index("nothing was written")


def test_who_has_ended_does_not_count_unless_all_have(live, workers):
    worker, folder = live
    words = ("--max-age", "1h", folder)
    other = workers(folder, WORKER)
    other.tell(f"take {8 << 20}")

    assert "(pid" not in answer("--host-free", "1", "--max-age", "1h",
                                next(folder.glob("*.seep")))[1]
    worker.end()
    assert answer(*words)[0] == READY
    other.end()
    code, line = answer(*words)
    assert code == STALE
    assert line == "not ready: no process is running any more: 2 ended"


def test_the_worst_of_several_counts(live, workers):
    worker, folder = live
    other = workers(folder, WORKER)
    other.tell(f"take {8 << 20}")
    os.kill(worker.process.pid, signal.SIGSTOP)
    time.sleep(3.5)
    other.tell(f"take {8 << 20}")

    code, line = answer("--max-age", "3s", folder)
    assert code == STALE
    assert f"(pid {worker.process.pid})" in line
    assert f"(pid {other.process.pid})" not in line


@pytest.mark.parametrize("form", FORMS)
def test_what_is_no_recording_is_no_configuration(tmp_path, form):
    garbage = tmp_path / "x.seep"
    garbage.write_bytes(bytes(range(256)) * 64)
    words = ("--max-age", "30s")

    for path in garbage, tmp_path:
        code, line = answer(*words, path, form=form)
        assert code == NOT_CONFIGURED
        assert line.startswith(f"not ready: nothing can be read: {garbage} is "
                               "not a seep recording (")
        code, line = answer("--not-configured", "ready", *words, path,
                            form=form)
        assert code == READY
        assert "is not a seep recording" in line


def test_garbage_beside_a_recording_is_said_and_no_fault(live):
    folder = live[1]
    garbage = folder / "garbage.seep"
    garbage.write_bytes(bytes(range(256)) * 64)
    try:
        code, line = answer("--max-age", "1h", folder)
    finally:
        garbage.unlink()
    assert code == READY
    assert f"cannot tell: {garbage} is not a seep recording" in line


@pytest.mark.parametrize("form", FORMS)
def test_what_may_yet_be_a_recording_cannot_be_told(tmp_path, form):
    empty = tmp_path / "empty"
    empty.mkdir()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    for path, reason in ((empty, "contains no recordings"),
                         (fifo, "is a FIFO, not a file"),
                         (tmp_path / "none.seep", "does not exist")):
        words = ("--max-age", "30s", path)
        code, line = answer(*words, form=form)
        assert code == READY
        assert line.startswith(f"cannot tell: {path} {reason} (")
        assert answer("--strict", *words, form=form)[0] == UNKNOWN


@pytest.mark.parametrize("form", FORMS)
def test_what_can_never_be_read_is_no_configuration(tmp_path, form):
    file = tmp_path / "file"
    file.touch()
    for path, reason in ((tmp_path / "none", "does not exist"),
                         (tmp_path / "none/x.seep", "does not exist"),
                         (file / "x", "a part of its path is not")):
        words = ("--max-age", "30s", path)
        code, line = answer(*words, form=form)
        assert code == NOT_CONFIGURED
        assert line.startswith(f"not ready: nothing can be read: {path} does")
        assert answer("--strict", *words, form=form)[0] == NOT_CONFIGURED
        code, line = answer("--not-configured", "ready", "--strict", *words,
                            form=form)
        assert code == READY, reason
        assert line.startswith(f"cannot tell: nothing can be read: {path} ")
        assert answer("--not-configured", "not-ready", *words,
                      form=form)[0] == NOT_CONFIGURED


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_what_is_anothers_is_no_configuration(live):
    """A folder, then a recording in one: nothing can be read, ever."""
    folder = live[1]
    for mode in (0o700, 0o755):
        folder.chmod(mode)
        done = subprocess.run(
            [PROBE, "--max-age", "1h", folder], user=1000, group=1000,
            extra_groups=[], capture_output=True, text=True, timeout=LIMIT_S,
            check=False)
        assert done.returncode == NOT_CONFIGURED, done.stdout
        assert "is not readable by this user" in done.stdout


def test_what_is_cut_short_cannot_be_told(live, tmp_path):
    recording = next(live[1].glob("*.seep"))
    cut = tmp_path / "cut"
    cut.mkdir()
    cut /= "x.seep"
    shutil.copy(recording, cut)
    size = cut.stat().st_size

    for part in (size - 1, size // 2, 8192, 4097, 4096, 4095, 100, 8, 1, 0):
        os.truncate(cut, part)
        code, line = answer("--strict", "--max-age", "30s", cut)
        assert code == UNKNOWN
        assert line.startswith(f"cannot tell: {cut} ")


@pytest.mark.skipif(not DRIVER, reason="the fake driver is not built")
@pytest.mark.parametrize("step, sample", ((1, 65536), (64, 65536), (64, 1)))
def test_a_gpu_that_fills_is_not_ready_until_it_has_room(workers, tmp_path,
                                                         step, sample):
    """One at a time, or so fast that the driver is asked of the first only."""
    worker = workers(
        tmp_path, GPU_WORKER, sample=sample, SEEP_FAKE_CUDA_DEVICES="1",
        SEEP_FAKE_CUDA_MEMORY="4G", LD_LIBRARY_PATH=os.pathsep.join(
            (os.path.dirname(DRIVER), str(PROGRAMS))))
    words = ("--gpu-free", "2GiB", tmp_path)
    size = (2048 + 256) // step << 20

    code, line = answer(*words)
    assert code == READY
    assert line.startswith("cannot tell: ")
    worker.tell(f"take {16 << 20}")
    assert answer(*words)[0] == READY
    for _ in range(2):
        for _ in range(step):
            worker.tell(f"take {size}")
        code, line = answer(*words)
        assert code == HEADROOM, line
        assert line.startswith("not ready: GPU 0 has 1.")
        assert line.endswith(" GiB left, under 2 GiB")
        worker.tell("give")
        code, line = answer(*words)
        assert code == READY
        assert line.startswith("ready: GPU 0 has 3.")


def test_the_line_is_told_in_place_and_never_fails_the_probe(live, tmp_path):
    told = tmp_path / "log"
    told.write_text("x" * 5000)
    before = told.stat()
    words = ("--max-age", "1h", live[1])

    code, line = answer("--tell", told, *words)
    assert code == READY
    assert told.read_text() == line + "\n"
    assert told.stat().st_ino == before.st_ino
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (tmp_path, tmp_path / "no" / "such", fifo, "/dev/full"):
        assert answer("--tell", path, *words)[0] == READY


def test_an_answer_that_cannot_be_written_is_a_failure(live):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([PROBE, "--max-age", "1h", live[1]], stdout=full,
                              stderr=subprocess.PIPE, text=True,
                              timeout=LIMIT_S, check=False)

    assert done.returncode == FAILED
    assert done.stderr.startswith("seep: stdout: ")


@pytest.mark.parametrize("form", FORMS)
def test_the_document_says_the_same(live, form):
    worker, folder = live
    done = probe("--json", "--host-free", "1000TiB", "--max-age", "1h",
                 "--max-growth", "1MiB/min", "--gpu-free", "1MiB", folder,
                 form=form)
    said = json.loads(done.stdout)

    assert said["schema"] == "seep-probe/1"
    assert done.returncode == said["code"] == HEADROOM
    assert said["verdict"] == "not-ready"
    assert said["reason"].startswith("not ready: the host has ")
    assert said["elapsed_s"] < said["deadline_s"] == .8
    outcomes = {c["check"]: c["outcome"] for c in said["checks"]}
    assert outcomes == {"gpu-free": "cannot-tell", "host-free": "not-ready",
                        "growth": "cannot-tell", "age": "ready"}
    process, = said["processes"]
    assert process["pid"] == worker.process.pid
    assert process["state"] == "running"
    assert process["live_bytes"] > 8 << 20
    assert process["growth_bytes_per_s"] is None
    assert process["room"]["left_bytes"] < process["room"]["limit_bytes"]


def test_a_name_that_is_no_text_is_cleaned(tmp_path):
    name = os.fsencode(tmp_path) + b'/a"\\\x1b[31m\xff\n.seep'
    with open(name, "wb") as file:
        file.write(b"")
    done = subprocess.run([PROBE, "--max-age", "1s", name],
                          capture_output=True, timeout=LIMIT_S, check=True)
    assert done.stdout.count(b"\n") == 1
    assert b"\x1b" not in done.stdout and b"\xff" not in done.stdout
    done = subprocess.run([PROBE, "--json", "--max-age", "1s", name],
                          capture_output=True, timeout=LIMIT_S, check=True)
    assert json.loads(done.stdout)["processes"][0]["path"].endswith(".seep")


def test_of_many_processes_the_line_stays_short(live):
    folder = live[1]
    recording = next(folder.glob("*.seep"))
    for i in range(40):
        shutil.copy(recording, folder / f"copy-{i}.seep")
    time.sleep(.1)

    code, line = answer("--max-age", "1ms", "--deadline", "10s", folder)
    assert code == STALE
    assert line.endswith("…")
    document_ = json.loads(probe("--json", "--max-age", "1ms", "--deadline",
                                 "10s", folder).stdout)
    assert len(document_["processes"]) == 41


@pytest.mark.parametrize("words, said", (
    (("--gpu-fee", "1GiB", "."),
     'unknown option "--gpu-fee" of "seep probe"; did you mean --gpu-free?'),
    (("--gpu-free", "much", "."),
     'invalid value "much": expected a size such as 2GiB'),
    (("--max-growth", "5MiB", "."),
     'invalid value "5MiB": expected a rate such as 20MiB/min'),
    (("--max-age", "soon", "."),
     'invalid value "soon": expected a time such as 30s'),
    (("--deadline", "0", "."),
     'invalid value "0": expected a time such as 800ms'),
    (("--max-age",), 'option "--max-age" needs a value'),
    (("--max-age", "1s"), "no recording given"),
    (("x",), "no limit given, such as --gpu-free 2GiB"),
))
@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_command_line_is_told(words, said, form):
    done = probe(*words, form=form)

    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr.startswith(f"seep: {said}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("form", FORMS)
def test_the_help_tells_the_codes(form):
    done = probe("--help", form=form)

    assert done.returncode == READY
    assert "6 stale or ended" in done.stdout


def test_the_file_needs_nothing_else(live, tmp_path):
    """Nothing is loaded with it, so nothing is preloaded into it."""
    done = subprocess.run(["readelf", "-d", PROBE], capture_output=True,
                          text=True, timeout=LIMIT_S, check=True)
    if "NEEDED" in done.stdout:
        pytest.skip("there is no static libc here")
    before = set(live[1].iterdir())
    code, _ = answer("--max-age", "1h", live[1], LD_PRELOAD=str(PRELOAD),
                     SEEP_SAMPLE="1", SEEP_OUT=f"{live[1]}/%p.seep")
    assert code == READY
    assert set(live[1].iterdir()) == before
    if os.getuid() == 0:
        root = tmp_path / "root"
        root.mkdir()
        shutil.copy(PROBE, root)
        done = subprocess.run(["chroot", root, "/seep-probe", "--max-age",
                               "1s", "/"], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        assert done.stdout.startswith(
            "cannot tell: / contains no recordings (")


def test_where_all_is_preloaded_the_probe_is_not_recorded(live):
    before = set(live[1].iterdir())
    for _ in range(3):
        assert answer("--max-age", "1h", live[1], form="verb",
                      LD_PRELOAD=str(PRELOAD), SEEP_SAMPLE="1",
                      SEEP_OUT=f"{live[1]}/%p.seep")[0] == READY
    assert set(live[1].iterdir()) == before


def test_it_starts_at_once(live):
    """A few here, which the deadline alone judges; the long form all."""
    times, plain = [], []
    for _ in range(1000 if LONG else 30):
        done = probe("--max-age", "1h", "--host-free", "1MiB", live[1])
        assert done.returncode == READY
        times.append(done.seconds)
        begin = time.monotonic()
        subprocess.run(["/bin/true"], check=True, timeout=LIMIT_S)
        plain.append(time.monotonic() - begin)
    times.sort()
    print(f"median {times[len(times) // 2] * 1e3:.1f} ms, most "
          f"{times[-1] * 1e3:.1f} ms, /bin/true {max(plain) * 1e3:.1f} ms")
    assert times[len(times) // 2] < .8
    # What delays a program that does nothing is not of the probe.
    assert not LONG or times[-1] < .1 + max(plain)


def wait_for(services, kind):
    """Until growth can be told of it."""
    folder, began = services[kind]
    time.sleep(max(0, began + GROWTH_S - time.monotonic()))
    return folder


def test_what_grows_too_fast_is_not_ready(services):
    folder = wait_for(services, "leak")
    rate = 100 / 1024 / .05 * 60  # MiB a minute, if sleep is all it does

    code, line = answer("--max-growth", "10MiB/min", folder)
    assert code == GROWTH, line
    assert line.startswith("not ready: memory of the host grows by +")
    assert line.endswith("), over 10 MiB/min")
    code, line = answer("--max-growth", f"{rate * 2:.0f}MiB/min", folder)
    assert code == READY
    assert line.startswith("ready: memory of the host grows by +")


def test_what_does_not_grow_is_ready(services):
    folder = wait_for(services, "clean")

    assert answer("--max-growth", "10MiB/min", folder)[0] == READY


def test_growth_is_that_of_the_report(services):
    folder = wait_for(services, "leak")
    done = probe("--json", "--max-growth", "10MiB/min", folder)
    ours = json.loads(done.stdout)["processes"][0]["growth_bytes_per_s"]
    process, = document(folder)["processes"]
    theirs = process["memory"]["tracked"]
    verdict = process["verdict"]["growth_bytes_per_s"]

    error = theirs["slope_error_bytes_per_s"]
    assert ours["low"] <= theirs["slope_bytes_per_s"] + error
    assert ours["high"] >= theirs["slope_bytes_per_s"] - error
    assert ours["low"] <= verdict["high"] and ours["high"] >= verdict["low"]


def test_the_probe_is_executable_by_all():
    assert stat.S_IMODE(PROBE.stat().st_mode) & 0o111 == 0o111
