# SPDX-License-Identifier: LGPL-2.1-or-later
"""A pack says what its recordings say, also where nothing else is."""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time

import pytest

from command_line import PYTHON, allocate, recordings, run, seep, start
from conftest import need

SECRETS = ("quince", "rambutan", "salak", "tamarind", "ugli", "voavanga",
           "wampee", "yuzu")
SERVICE = """
import ctypes, mmap, sys, threading, time
sys.path.insert(0, sys.argv[2])
import seep
KEPT = []
def handle(i):
    KEPT.append(bytearray(60000 + i))
def loop():
    ctypes.CDLL(None).prctl(15, b"tamarind-7")  # PR_SET_NAME
    for i in range(200):
        handle(i)
seep.mark("rambutan")
seep.label("tenant", "salak")
sized = open(sys.argv[3], "w+b")
sized.truncate(1 << 22)
mapped = mmap.mmap(sized.fileno(), 1 << 22, flags=mmap.MAP_PRIVATE)
mapped.write(b"x" * (1 << 22))
thread = threading.Thread(target=loop, name="loop")
thread.start()
thread.join()
time.sleep(0.3)
"""
VIEWS = (("report",), ("report", "--json"), ("report", "--by", "thread"),
         ("report", "--by", "function", "--whole-stack", "--sites", "0"),
         ("info",), ("info", "--json"), ("check", "--cap", "1TiB"),
         ("check", "--cap", "1TiB", "--json"), ("top", "--once", "--json"),
         ("digest",), ("export", "--format", "folded"))
SEEP_MODULE = pathlib.Path(__file__).parents[2] / "tools/python"


def said(view, path, cwd):
    """All that a view says, and how it ends; the memory of this machine, which
    `top` tells as well, is of now."""
    done = seep(*view, path, cwd=cwd)
    text = re.sub(rb'(?m)^\s*"(machine|free|time|now)[^"]*": .*$|'
                  rb"^ machine .*$", b"", done.stdout)
    return done.returncode, text, done.stderr


def compare(plain, packed, name):
    """Both folders have @name: here recordings, there their pack."""
    for view in VIEWS:
        before = said(view, name, plain)
        assert before[0] in (0, 3, 4), (view, before)
        assert said(view, name, packed) == before, view


@pytest.fixture(name="home")
def fixture_home(tmp_path):
    """A program of its own, which nobody else has, and two recordings."""
    home = tmp_path / "quince"
    home.mkdir()
    source = home / "worker.c"
    source.write_text("#include <stdlib.h>\n#include <unistd.h>\n"
                      "static void *kept[400];\n"
                      "static __attribute__((noinline)) void keep(int i)\n"
                      "{ kept[i] = malloc(70000); }\n"
                      "int main(void)\n{ for (int i = 0; i < 400; i++) "
                      "keep(i); return kept[3] == 0; }\n")
    subprocess.run(["gcc", "-g", "-O1", "-o", home / "worker", source],
                   check=True)
    return home


def pack(*words, **more):
    """Its line."""
    done = seep("pack", *words, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_a_pack_of_one_says_the_same_where_its_program_is_not(home, tmp_path):
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    packed.mkdir()
    run(plain, home / "worker")
    path, = recordings(plain)
    pack(path, "-o", packed / path.name)
    before = [said(view, path.name, plain) for view in VIEWS]
    # it has names: what is the same is not nothing
    assert b"worker.c:5 keep" in before[0][1]

    shutil.rmtree(home)
    path.with_name(path.name + ".looks").unlink(missing_ok=True)
    for view, was in zip(VIEWS, before):
        assert said(view, path.name, packed) == was, view
    # and the plain one has lost them
    assert b"worker.c:5" not in said(VIEWS[0], path.name, plain)[1]


def test_packs_of_one_that_has_ended_are_the_same_to_the_byte(home, tmp_path):
    run(tmp_path, home / "worker", options=("--quiet", "--exact"))
    recording, = recordings(tmp_path)
    packs = []
    for name in ("first", "second"):
        done = seep("pack", "-o", tmp_path / name, recording)
        assert done.returncode == 0, done.stderr
        packs.append((tmp_path / name).read_bytes())
        time.sleep(0.05)
    assert packs[0] == packs[1]


def test_a_pack_of_a_folder_is_read_as_the_folder(home, tmp_path):
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    packed.mkdir()
    for _ in range(2):
        run(plain / "pod", home / "worker")
    run(plain / "pod", PYTHON, "-c",
        "k = [bytearray(1 << 20) for i in range(9)]")
    assert b"3 recordings" in pack(plain / "pod", "-o",
                                   packed / "pod").encode()
    compare(plain, packed, "pod")
    one = recordings(plain / "pod")[1].name
    compare(plain, packed, f"pod/{one}")
    absent = seep("report", "pod/none.seep", cwd=packed)
    assert absent.returncode == 1 and b"is not in the pack" in absent.stderr
    # a folder of packs is read where it has no recordings
    (packed / "pod").rename(packed / "pod.seeppack")
    assert b"3 processes" in seep("report", packed).stdout


def test_a_damaged_file_beside_a_recording_is_told_to_be_left_out(home,
                                                                  tmp_path):
    run(tmp_path / "pod", home / "worker")
    recording = recordings(tmp_path / "pod")[0]
    beside = pathlib.Path(f"{recording}.looks")
    beside.write_text("damaged\n")

    done = seep("pack", recording, "-o", tmp_path / "packed")

    assert done.returncode == 1
    assert f"{beside}: damaged".encode() in done.stderr
    assert seep("report", tmp_path / "packed").returncode in (0, 3, 4)


def test_a_process_that_runs_is_packed_as_it_stands(tmp_path):
    with start(tmp_path, PYTHON, "-c",
               "import sys; k = [bytearray(1 << 20) for i in range(40)];"
               "print('ready', flush=True); sys.stdin.read()",
               stdin=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        path, = recordings(tmp_path)
        pack(path, "-o", tmp_path / "now.seeppack")
        process.communicate(b"")
    report, = json.loads(seep("report", "--json", tmp_path / "now.seeppack")
                         .stdout)["processes"]
    assert report["process"]["state"] == "running"
    # what it does afterwards is none of the pack's business
    time.sleep(0.1)
    again, = json.loads(seep("report", "--json", tmp_path / "now.seeppack")
                        .stdout)["processes"]
    assert again == report
    # and nobody probes what is packed
    probed = seep("probe", "--max-age", "1h", tmp_path / "now.seeppack")
    assert b"is a pack" in probed.stdout + probed.stderr


def test_what_is_unpacked_is_the_recording(home, tmp_path):
    run(tmp_path / "plain", home / "worker")
    path, = recordings(tmp_path / "plain")
    pack(path, "-o", tmp_path / "x.seeppack")
    done = seep("unpack", "-o", tmp_path / "out", tmp_path / "x.seeppack")
    assert done.returncode == 0, done.stderr
    written = {pathlib.Path(line).name for line in
               done.stdout.decode().splitlines()}
    assert {path.name, "x.seeppack.names.jsonl"} <= written
    assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()
    names = [json.loads(line) for line in
             (tmp_path / "out/x.seeppack.names.jsonl").open()]
    assert any(frame["function"] == "keep" and frame["line"] == 5
               for name in names for frame in name["frames"])
    # nothing is overwritten
    done = seep("unpack", "-o", tmp_path / "out", tmp_path / "x.seeppack")
    assert done.returncode == 1 and b"exists already" in done.stderr
    done = seep("pack", path, "-o", tmp_path / "x.seeppack")
    assert done.returncode == 1 and b"exists already" in done.stderr
    assert seep("pack", "--replace", path, "-o",
                tmp_path / "x.seeppack").returncode == 0
    assert seep("unpack", path).returncode == 1


def test_recordings_of_one_name_are_numbered(home, tmp_path):
    run(tmp_path / "plain", home / "worker")
    recording, = recordings(tmp_path / "plain")
    paths = [tmp_path / name for name in
             ("a/x", "b/x.1", "c/x", "d/x", "e/x.1", "f/x")]
    for path in paths:
        path.parent.mkdir()
        os.link(recording, path)
    pack(*paths, "-o", tmp_path / "x.seeppack")

    done = seep("info", "--json", tmp_path / "x.seeppack")

    assert [pathlib.Path(name).name for name in
            re.findall(r'"recording": "([^"]*)"', done.stdout.decode())] == [
        "x", "x.1", "x.1.1", "x.2", "x.3", "x.4"]


def frames_of(path):
    """{(file, line): source}, of all call sites."""
    process, = json.loads(seep("report", "--json", path).stdout)["processes"]
    return {(pathlib.Path(frame["file"]).name, frame["line"]):
            frame.get("source") for site in process["sites"]
            for frame in site["frames"] if frame["file"]}


def test_lines_of_source_are_packed_if_asked_for(home, tmp_path):
    service = home / "service.py"
    service.write_text("import os\nKEPT = []\ndef handle(i):\n"
                       "    KEPT.append(bytearray(60000 + i))  # <b>plum\n"
                       "for i in range(200):\n    handle(i)\n")
    run(home / "out", PYTHON, service)
    path, = recordings(home / "out")
    line = "KEPT.append(bytearray(60000 + i))  # <b>plum"
    pack(path, "-o", tmp_path / "plain.seeppack")
    pack("--source", path, "-o", tmp_path / "x.seeppack")
    service.unlink()

    assert set(frames_of(tmp_path / "plain.seeppack").values()) == {None}
    found = frames_of(tmp_path / "x.seeppack")
    assert found["service.py", 4] == line
    assert found["service.py", 6] == "handle(i)"
    text = seep("report", "--stack", tmp_path / "x.seeppack").stdout.decode()
    assert f"\n        {line}\n" in text
    # What was packed is packed again, but for who redacts.
    pack(tmp_path / "x.seeppack", "-o", tmp_path / "again.seeppack")
    assert frames_of(tmp_path / "again.seeppack") == found
    pack("--redact", tmp_path / "x.seeppack", "-o", tmp_path / "safe.seeppack")
    assert b"plum" not in everything_in(tmp_path / "safe.seeppack",
                                        tmp_path / "safe")
    assert b"plum" in everything_in(tmp_path / "x.seeppack", tmp_path / "x")
    assert seep("pack", "--source", "--redact", path).returncode == 2


def test_only_of_source_is_a_line_packed(tmp_path):
    """A recording names what it likes, as a file that is none."""
    secret = tmp_path / "id_rsa"
    secret.write_text("quince\n" * 9)
    os.mkfifo(tmp_path / "fifo.py")
    for name in "id_rsa", "fifo.py":
        run(tmp_path / "out", PYTHON, "-c", "k = []\nexec(compile("
            f"'\\n\\nk.append(bytearray(1 << 21))', '{tmp_path}/{name}',"
            " 'exec'))")
    pack("--source", tmp_path / "out", "-o", tmp_path / "x.seeppack")
    everything = everything_in(tmp_path / "x.seeppack", tmp_path / "x")
    assert str(secret).encode() in everything
    assert b"quince" not in everything


def everything_in(path, folder):
    """Every byte of a pack, inflated; of zeros there are few left."""
    assert seep("unpack", "-o", folder, path).returncode == 0
    return path.read_bytes() + b"".join(
        re.sub(b"\0{64,}", b"\0", file.read_bytes()) + file.name.encode()
        for file in folder.iterdir())


def test_what_is_redacted_is_in_no_byte_of_the_pack(home, tmp_path):
    service = home / "service.py"
    service.write_text(SERVICE)
    done = run(home, PYTHON, service, "--token=ugli", SEEP_MODULE,
               home / "voavanga.data", options=("--quiet",),
               SEEP_LABELS="team=wampee", SEEP_STACKS="yuzu")
    assert done.returncode == 0, done.stderr
    run(home, home / "worker")
    pack(home, "-o", tmp_path / "whole.seeppack")
    pack("--redact", home, "-o", tmp_path / "safe.seeppack")
    # packing again redacts as well, and is what it is of
    pack("--redact", tmp_path / "whole.seeppack", "-o",
         tmp_path / "later.seeppack")

    whole = everything_in(tmp_path / "whole.seeppack", tmp_path / "whole")
    missing = [word for word in SECRETS if word.encode() not in whole]
    assert missing == [], "planted, and not there to be redacted"
    for name in "safe", "later":
        safe = everything_in(tmp_path / f"{name}.seeppack", tmp_path / name)
        assert [word for word in SECRETS if word.encode() in safe] == []
        assert f"/{tmp_path.name}".encode() not in safe
        assert len(socket.gethostname()) < 5 or \
            socket.gethostname().encode() not in safe
    for grouping in "line", "stack", "function", "thread":
        reports = [json.loads(seep("report", "--json", "--by", grouping,
                                   path).stdout)["processes"]
                   for path in (home, tmp_path / "safe.seeppack")]
        assert [[(site["id"], site["live_bytes"]) for site in one["sites"]]
                for one in reports[0]] == [
                    [(site["id"], site["live_bytes"]) for site in one["sites"]]
                    for one in reports[1]], grouping
    text = seep("report", "--processes", "0",
                tmp_path / "safe.seeppack").stdout
    assert b"service.py:7 handle" in text and b"worker.c:5 keep" in text
    assert b"stand for others" in seep("info",
                                       tmp_path / "safe.seeppack").stdout


def strip(program, to):
    """@program loses what it has besides its code, to a file @to."""
    subprocess.run(["objcopy", "--only-keep-debug", program, to], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={to}",
                    program], check=True)


def build_id(program):
    """In hexadecimal."""
    notes = subprocess.run(["readelf", "-n", program], check=True,
                           capture_output=True).stdout.decode()
    return re.search(r"Build ID: ([0-9a-f]+)", notes)[1]


def test_debug_files_are_found_in_a_folder(home, tmp_path):
    need("objcopy", "readelf")
    kept, by_id = tmp_path / "kept", tmp_path / "by_id"
    kept.mkdir()
    strip(home / "worker", kept / "worker.debug")
    identity = build_id(home / "worker")
    (by_id / ".build-id" / identity[:2]).mkdir(parents=True)
    shutil.copy(kept / "worker.debug",
                by_id / ".build-id" / identity[:2] / f"{identity[2:]}.debug")
    run(tmp_path / "out", home / "worker")
    path, = recordings(tmp_path / "out")

    # what no symbol covers is the module and an offset
    assert re.search(rb" worker\+0x[0-9a-f]+", seep("report", path).stdout)
    for folder in kept, by_id:
        found = seep("report", "--debug-dir", folder, path).stdout
        assert b"worker.c:5 keep" in found
    pack("--debug-dir", by_id, path, "-o", tmp_path / "x.seeppack")
    shutil.rmtree(by_id)
    assert b"worker.c:5 keep" in seep("report",
                                      tmp_path / "x.seeppack").stdout


def test_a_server_is_asked_for_debug_files_only_if_told(home, tmp_path):
    need("debuginfod", "objcopy")
    served, cache = tmp_path / "served", tmp_path / "cache"
    served.mkdir()
    strip(home / "worker", served / "worker.debug")
    run(tmp_path / "out", home / "worker")
    path, = recordings(tmp_path / "out")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path / "log"
    with log.open("wb") as out, subprocess.Popen(
            ["debuginfod", "-v", "-F", "-d", tmp_path / "index.sqlite", "-p",
             str(port), served], stdout=out, stderr=out,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            known = {"DEBUGINFOD_URLS": url,
                     "DEBUGINFOD_CACHE_PATH": str(cache)}
            # without the option, or without servers, nobody is asked
            seep("report", path, **known)
            seep("pack", path, "-o", tmp_path / "quiet.seeppack", **known)
            assert not cache.exists()
            assert b"keep" not in seep("report", "--debuginfod", path,
                                       DEBUGINFOD_URLS="").stdout
            for _ in range(300):  # it indexes first
                done = seep("report", "--debuginfod", path, **known)
                if b"worker.c:5 keep" in done.stdout:
                    break
                shutil.rmtree(cache, ignore_errors=True)
                assert server.poll() is None, log.read_text()
                time.sleep(0.2)
            assert b"worker.c:5 keep" in done.stdout, log.read_text()
            shutil.rmtree(cache)
            pack("--debuginfod", path, "-o", tmp_path / "x.seeppack", **known)
        finally:
            server.terminate()
    assert b"worker.c:5 keep" in seep("report",
                                      tmp_path / "x.seeppack").stdout


def test_what_is_no_file_is_not_replaced(tmp_path):
    """Root could replace /dev/null."""
    run(tmp_path, *allocate())
    recording, = recordings(tmp_path)
    pack, folder = tmp_path / "a.seeppack", tmp_path / "out"
    assert seep("pack", "-o", pack, recording).returncode == 0
    folder.mkdir()
    fifo = folder / recording.name
    os.mkfifo(fifo)

    made = seep("pack", "--replace", "-o", fifo, recording)
    unpacked = seep("unpack", "--replace", "-o", folder, pack)

    assert (made.returncode, unpacked.returncode) == (1, 1)
    assert b"is not a file" in made.stderr
    assert fifo.is_fifo()
