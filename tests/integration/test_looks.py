# SPDX-License-Identifier: LGPL-2.1-or-later
"""Looks from outside: what `seep run` keeps of a process beside its recording.

Invariant: every process that is started here is waited for, with a limit.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import pytest

from conftest import LONG, PRELOAD, SEEP, environment, program, report

LIMIT_S = 120
MIB = 1 << 20
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") \
    else sys.executable
SECONDS = 15 if LONG else 7
KEEP = "k = [bytearray(1 << 20) for _ in range(64)]; "


def run(out, *command, options=()):
    """`seep run` to its end."""
    done = subprocess.run(
        [SEEP, "run", "--quiet", "-o", out, *options, "--",
         *map(str, command)],
        env=environment() | {"SEEP_PRELOAD": str(PRELOAD)},
        capture_output=True, timeout=LIMIT_S, check=False,
        start_new_session=True)
    assert done.stderr == b""
    return done


def run_until(out, enough, *command):
    """`seep run` of a program that ends when its last word is a file: once the
    looks are enough, however long that takes on a machine that is busy."""
    with tempfile.TemporaryDirectory(prefix="seep-test-") as place:
        stop = pathlib.Path(place) / "stop"
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            done = pool.submit(run, out, *command, stop)
            end = time.monotonic() + LIMIT_S / 2
            while not done.done() and time.monotonic() < end and not any(
                    enough(looks_in(path)) for path in files(out)):
                time.sleep(.1)
            stop.touch()
            return done.result()


def python(code):
    """A Python program that is recorded."""
    return (PYTHON, "-c", "import os, signal, subprocess, time; " + KEEP + code)


def files(folder):
    """The files of looks in a folder."""
    return sorted(pathlib.Path(folder).glob("*.looks"))


def looks_in(path):
    """What a file of looks holds, without its header."""
    header, *looks = [json.loads(line)
                      for line in path.read_text().splitlines()]
    assert header["schema"] == "seep-looks/1"
    assert header["looks"] == len(looks)
    assert header["last_s"] == looks[-1]["t_s"]
    return looks


def show_growth(looks):
    """Do they show half of what grew by the last, its beginning aside? That is
    a quarter of the life, which goes on for a while after the last of them."""
    last_s = looks[-1]["t_s"]
    return (last_s >= SECONDS - 2 and looks[0]["t_s"] <= last_s / 2
            and any(.35 * last_s <= look["t_s"] <= .55 * last_s
                    for look in looks))


def ranges_of(look, name):
    """[(start, end, resident bytes)] of the mappings of that name."""
    found = []
    for mapping in look["mappings"]:
        if mapping["name"] == name:
            start, end = (int(x, 16) for x in mapping["range"].split("-"))
            found.append((start, end, mapping["rss_bytes"]))
    return found


def test_growth_that_no_hook_sees_is_in_a_mapping(folder):
    done = run_until(f"{folder}/", show_growth, program("raw_map"), MIB, 2000,
                     250000, "together")
    [path] = files(folder)
    looks = looks_in(path)
    mapped = [int(line, 16) for line in done.stdout.split()]
    last = looks[-1]
    seen = [at for at in mapped
            if any(start <= at < end
                   for start, end, _ in ranges_of(last, ""))]
    # one second old at the first look
    assert looks[0]["t_s"] >= 0.9
    assert len(seen) >= len(mapped) / 2
    assert (last["anonymous_bytes"] - looks[0]["anonymous_bytes"]
            >= len(mapped) / 3 * MIB)
    [process] = report(folder)["processes"]
    grown = [mapping
             for mapping in process["memory"]["unexplained"]["mappings"]
             if not mapping["tracked"]]
    most = max(grown, key=lambda m: m["last_bytes"] - m["first_bytes"])
    assert most["last_bytes"] - most["first_bytes"] >= len(mapped) / 4 * MIB
    assert most["name"] == ""


def test_thousands_of_small_mappings_are_one_line(folder):
    done = run_until(f"{folder}/", show_growth, program("raw_map"), 65536,
                     15000, 1000, "apart")
    mapped = [int(line, 16) for line in done.stdout.split()]
    [path] = files(folder)
    last = looks_in(path)[-1]
    assert len(last["mappings"]) <= 256
    largest = max(ranges_of(last, ""), key=lambda r: r[2])
    inside = [at for at in mapped if largest[0] <= at < largest[1]]
    # A neighbour that somebody else mapped may be told with them.
    assert len(inside) * 65536 >= 0.99 * largest[2]
    assert largest[2] > len(mapped) * 65536 / 4


def test_looks_are_private_and_no_recording(folder):
    run(f"{folder}/", *python("time.sleep(2.5)"))
    [path] = files(folder)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(report(folder)["processes"]) == 1
    assert len(list(folder.iterdir())) == 2


def test_the_recording_is_told_from_what_the_process_mapped(folder):
    run(f"{folder}/", *python("time.sleep(2.5)"))
    last = looks_in(files(folder)[0])[-1]
    assert len(ranges_of(last, "[seep]")) == 1


def test_looks_that_are_damaged_are_not_passed_over_in_silence(folder):
    run(f"{folder}/", *python("time.sleep(2.5)"))
    [path] = files(folder)
    whole = report(folder)["processes"][0]
    path.write_bytes(path.read_bytes().replace(b"\n{", b"\n"))

    damaged = report(folder)["processes"][0]
    assert whole["process"]["unread"] == []
    assert damaged["process"]["unread"] == [
        {"file": str(path), "reason": "damaged"}]
    for verb in (["info"], ["check", "--cap", "1G"], ["diff", folder]):
        said = subprocess.run([SEEP, *verb, folder], capture_output=True,
                              timeout=LIMIT_S, check=False).stdout.decode()
        assert (f"unread {path}: damaged; what was seen"
                in " ".join(said.split())), verb
    check = json.loads(subprocess.run(
        [SEEP, "check", "--json", "--cap", "1G", folder], capture_output=True,
        timeout=LIMIT_S, check=False).stdout)
    assert check["limits"][0]["process"]["unread"] == damaged["process"][
        "unread"]


def test_looks_outlive_a_kill(folder):
    done = run(f"{folder}/", *python(
        "time.sleep(3); os.kill(os.getpid(), signal.SIGKILL)"))
    assert done.returncode == 128 + signal.SIGKILL
    assert looks_in(files(folder)[0])[-1]["rss_bytes"] >= 64 * MIB


@pytest.mark.parametrize("launcher", ["", "sh"])
def test_who_is_killed_lived_as_long_as_it_was_seen(folder, launcher):
    """It calls nothing that is recorded while it grows. The one that `seep run`
    reaps itself has its end told as well."""
    words = [str(program("raw_map")), str(MIB), "2000", "100000", "together"]
    if launcher != "":
        words = ["sh", "-c", f"{shlex.join(words)} & wait"]
    with subprocess.Popen(
            [SEEP, "run", "--quiet", "-o", f"{folder}/", "--", *words],
            env=environment() | {"SEEP_PRELOAD": str(PRELOAD)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True) as done:
        end = time.monotonic() + LIMIT_S / 2
        while time.monotonic() < end and not any(
                looks_in(path)[-1]["t_s"] >= 3 for path in files(folder)):
            time.sleep(.1)
        [living] = report(folder)["processes"]
        os.kill(living["process"]["pid"], signal.SIGKILL)
        done.wait(LIMIT_S)
    [path] = files(folder)
    last = looks_in(path)[-1]
    [killed] = report(folder)["processes"]
    assert killed["process"]["state"] == (
        "killed" if launcher == "" else "gone")
    assert killed["process"]["duration_s"] >= last["t_s"] - .1
    if launcher == "":
        assert (killed["process"]["duration_s"]
                >= living["process"]["duration_s"] - .1)
    assert killed["memory"]["rss"]["last_bytes"] == last["rss_bytes"]


def test_a_link_in_its_place_is_not_followed(folder):
    victim = folder / "victim"
    victim.write_text("precious")
    (folder / "fixed.seep.looks").symlink_to(victim)
    run(f"{folder}/fixed.seep", *python("time.sleep(2.5)"))
    assert victim.read_text() == "precious"
    assert not (folder / "fixed.seep.looks").is_symlink()
    assert looks_in(folder / "fixed.seep.looks")


def test_no_looks_means_none(folder):
    run(f"{folder}/", *python("time.sleep(2.5)"), options=["--no-looks"])
    assert not files(folder)
    assert len(list(folder.glob("*.seep"))) == 1


def test_a_folder_that_nothing_can_be_written_to_is_no_fault(folder):
    """The recording's name is taken by a folder of looks."""
    (folder / "fixed.seep.looks").mkdir()
    done = run(f"{folder}/fixed.seep", *python("time.sleep(2.5)"))
    assert done.returncode == 0
    assert list((folder / "fixed.seep.looks").iterdir()) == []
    assert len(list(folder.iterdir())) == 2


def test_every_worker_is_looked_at(folder):
    run(f"{folder}/", *python(
        "pids = [os.fork() for _ in range(3)]; "
        "kept = [bytearray(1 << 20) for _ in range(64)]; time.sleep(6)"))
    # two, four, eight processes: each that was forked forks the next ones
    assert len(files(folder)) == 8
    for path in files(folder):
        assert looks_in(path)


def test_what_another_program_maps_after_an_exec_is_not_its(folder):
    run(f"{folder}/", *python(
        "time.sleep(2.5); os.execvp('sleep', ['sleep', '3.5'])"))
    # of the few blocks of sleep one may be sampled: then it has its own
    [path] = [path for path in files(folder) if "python" in path.name]
    for look in looks_in(path):
        names = {mapping["name"] for mapping in look["mappings"]}
        assert not any(name.endswith("/sleep") for name in names)
        assert look["t_s"] <= 3.5


def test_a_process_in_a_namespace_below_is_found(folder):
    words = ["unshare", "-p", "-f", "--mount-proc"]
    if shutil.which("unshare") is None or subprocess.run(
            [*words, "true"], capture_output=True, timeout=LIMIT_S,
            check=False).returncode != 0:
        pytest.skip("no pid namespace to be had")
    run(f"{folder}/", *words, *python("time.sleep(3)"))
    found = [looks_in(path)[-1]["rss_bytes"] for path in files(folder)]
    assert max(found, default=0) >= 64 * MIB
