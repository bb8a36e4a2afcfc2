# SPDX-License-Identifier: LGPL-2.1-or-later
"""Services that ask the driver for memory, and what is said of each.

All run side by side on the fake driver, 33 s each: leaks of a device, of one
of two, of pinned memory, a leak that is killed, and none at all.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest

from conftest import BUILD, OURS, PRELOAD, SEEP
from crowd import crowd
from command_line import PYTHON, document, recordings

PROGRAMS = pathlib.Path(__file__).parent / "programs"
DRIVER = os.environ.get("SEEP_FAKE_CUDA", "")
CASES = ("leak", "clean", "two", "pinned", "killed")
LEAKS = ("leak", "two", "killed")  # of a device
SECONDS = 33
LIMIT_S = SECONDS + 90
MEMORY_BYTES = 4 << 30

if not DRIVER or not SEEP.exists():
    pytest.skip("the tool or the fake driver is not built",
                allow_module_level=True)


def variables():
    """Of a process that finds the fake driver."""
    kept = {k: v for k, v in os.environ.items() if k not in OURS}
    return kept | {
        "SEEP_PRELOAD": str(PRELOAD), "SEEP_FAKE_CUDA_DEVICES": "2",
        "SEEP_FAKE_CUDA_MEMORY": "4G",
        "LD_LIBRARY_PATH": f"{os.path.dirname(DRIVER)}:{BUILD}"
                           "/tests/integration/programs"}


def record(folder, *words, options=(), limit_s=LIMIT_S, **more):
    """Run a Python program to its end under `seep run`."""
    process = subprocess.Popen(
        [SEEP, "run", "--quiet", "--no-report", *options, "-o", f"{folder}/",
         "--", PYTHON, *map(str, words)], env=variables() | more, cwd=folder,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True)
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    assert err == b""
    return process.returncode, out


def print_report(path, columns):
    """What a person reads."""
    done = subprocess.run(
        [SEEP, "report", path], capture_output=True, timeout=LIMIT_S,
        check=True, env=variables() | {"COLUMNS": str(columns)})
    return done.stdout.decode()


class Outcome:
    """What a service knew of itself, and what is said of it."""

    def __init__(self, case, folder):
        self.status, out = record(folder, PROGRAMS / "gpu_worker.py", case,
                                  SECONDS)
        self.truth = json.loads(out)
        path, = recordings(folder)
        process, = document(path)["processes"]
        self.state = process["process"]["state"]
        self.verdict = process["verdict"]
        self.sites = process["sites"]
        self.devices = process["devices"]
        self.losses = process["losses"]
        self.facts = process["facts"]
        self.text = {columns: print_report(path, columns)
                     for columns in (80, 120)}


def run_case(case):
    """One service from its start to its report."""
    with tempfile.TemporaryDirectory(prefix="seep-test-") as folder:
        outcome = Outcome(case, folder)
        keep = os.environ.get("SEEP_TEST_KEEP")
        if keep:
            shutil.copytree(folder, f"{keep}/gpu-{case}")
        return outcome


@pytest.fixture(scope="module")
def outcomes():
    """{case: what was said of it}, all run side by side."""
    with crowd(len(CASES)) as pool:
        return dict(zip(CASES, pool.map(run_case, CASES)))


def is_inside(value, interval):
    """Does an interval, open or not, hold it?"""
    high = interval["high"]
    return interval["low"] <= value and (high is None or value <= high)


def joined(text):
    """Without the breaks of lines."""
    return " ".join(text.split())


@pytest.mark.parametrize("case", LEAKS)
def test_a_leak_of_a_device_is_told_with_its_line(outcomes, case):
    outcome = outcomes[case]
    site = outcome.sites[0]
    assert outcome.verdict["class"] == "leak"
    assert (site["class"], site["space"]) == ("leak", "device")
    assert site["device"] == outcome.verdict["device"] == (case == "two")
    assert site["where"].startswith("gpu_worker.py:")
    assert site["where"].endswith(" keep_reply")
    assert site["live_bytes"] == outcome.truth["leaked_bytes"]
    assert "keep_reply" in outcome.verdict["sentence"]


@pytest.mark.parametrize("case", CASES)
def test_address_space_of_the_driver_is_no_memory_of_the_host(outcomes, case):
    """It sets some 300 GiB aside, and more for what a device gives."""
    outcome = outcomes[case]
    assert sum(site["live_bytes"] for site in outcome.sites
               if site["space"] == "mapped") < 64 << 20
    assert outcome.facts["allocator_map_bytes"] > 256 << 30


@pytest.mark.parametrize("case", LEAKS + ("pinned",))
def test_the_planted_rate_is_in_the_interval(outcomes, case):
    truth = outcomes[case].truth["leaked_per_s"]
    assert is_inside(truth, outcomes[case].sites[0]["growth_bytes_per_s"])
    assert is_inside(truth, outcomes[case].verdict["growth_bytes_per_s"])


@pytest.mark.parametrize("case", LEAKS)
def test_the_time_until_it_is_full_is_in_the_interval(outcomes, case):
    outcome = outcomes[case]
    ordinal = int(case == "two")
    forecast = outcome.verdict["forecast"]
    truth_s = outcome.truth["free_bytes"] / outcome.truth["leaked_per_s"]
    assert (forecast["what"], forecast["device"]) == ("device", ordinal)
    assert forecast["limit_bytes"] == MEMORY_BYTES
    assert is_inside(truth_s, forecast["seconds"])
    assert outcome.devices[ordinal]["forecast"] == forecast


@pytest.mark.parametrize("case", LEAKS)
def test_the_parts_of_a_device_are_those_of_the_driver(outcomes, case):
    outcome = outcomes[case]
    device = outcome.devices[int(case == "two")]
    free_bytes = outcome.truth["free_bytes"]
    used, tracked, unexplained = (
        device[key]["last_bytes"] for key in ("used", "tracked",
                                              "unexplained"))
    assert device["total_bytes"] == MEMORY_BYTES
    assert abs(device["free_bytes"] - free_bytes) < 32 << 20
    assert abs(used - tracked - unexplained) < 1 << 20
    assert 60 << 20 < unexplained < 80 << 20  # the context, and what is new


def test_of_two_devices_only_one_leaks(outcomes):
    first, second = outcomes["two"].devices
    assert [first["ordinal"], second["ordinal"]] == [0, 1]
    assert first["forecast"]["answer"] == "never"
    assert second["forecast"]["answer"] == "time"
    assert not [site for site in outcomes["two"].sites
                if site["class"] in ("leak", "suspect")
                and site["device"] != 1]


def test_what_is_loaded_and_churns_is_no_leak(outcomes):
    outcome = outcomes["clean"]
    device, = outcome.devices
    assert outcome.verdict["class"] in ("steady", "bounded")
    assert device["forecast"]["answer"] == "never"
    assert not [site for site in outcome.sites
                if site["space"] == "device" and site["class"] == "leak"]
    assert device["tracked"]["last_bytes"] >= 192 << 20  # its weights


def test_a_pinned_leak_is_one_of_the_host(outcomes):
    outcome = outcomes["pinned"]
    site = outcome.sites[0]
    assert outcome.verdict["class"] == "leak"
    assert (site["class"], site["space"]) == ("leak", "pinned")
    assert outcome.verdict["device"] is None
    assert site["where"].endswith(" pin_reply")
    assert "pinned host memory grows" in outcome.verdict["sentence"]
    assert outcome.devices[0]["forecast"]["answer"] == "never"


def test_what_was_killed_is_told_as_what_ended(outcomes):
    killed, ended = outcomes["killed"], outcomes["leak"]
    assert killed.status == 128 + signal.SIGKILL
    assert (killed.state, ended.state) == ("killed", "exited")
    for key in ("class", "device", "growing_count"):
        assert killed.verdict[key] == ended.verdict[key]
    assert killed.sites[0]["id"] == ended.sites[0]["id"]
    assert killed.losses == ended.losses


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_lost(outcomes, case):
    assert not [name for name, count in outcomes[case].losses.items()
                if name.startswith("cuda") and count != 0]


@pytest.mark.parametrize("case", LEAKS)
@pytest.mark.parametrize("columns", [80, 120])
def test_a_person_reads_it(outcomes, case, columns):
    text = outcomes[case].text[columns]
    ordinal = int(case == "two")
    words = joined(text)
    assert max(map(len, text.splitlines())) <= columns
    assert text.startswith("LEAK ")
    assert f"): memory of GPU {ordinal} grows " in words
    assert f"At this rate GPU {ordinal}'s 4 GiB will be full in " in words
    assert f"\n GPU {ordinal} " in text
    assert "\n full   in " in text
    assert ("  device 1  gpu_worker.py" in text) == (case == "two")


def test_a_person_reads_that_nothing_grows(outcomes):
    text = outcomes["clean"].text[120]
    assert "of GPU memory live at" in joined(text)
    assert "\n full   never" in text
    assert "\nnext " not in text


def test_the_driver_alone_or_nothing_is_recorded_as_told(tmp_path):
    spaces = {}
    for what in ("driver", "off"):
        folder = tmp_path / what
        folder.mkdir()
        record(folder, PROGRAMS / "gpu_worker.py", "leak", 1,
               options=["--cuda", what])
        process, = document(*recordings(folder))["processes"]
        spaces[what] = "device" in process["memory"]["spaces"]
        assert bool(process["devices"]) == (what == "driver")
        assert process["facts"]["cuda_lookups"] > 0
        assert not any("driver" in advice
                       for advice in process["verdict"]["advice"])
    assert spaces == {"driver": True, "off": False}


def test_info_tells_of_devices(tmp_path):
    record(tmp_path, PROGRAMS / "gpu_worker.py", "two", 1)
    path, = recordings(tmp_path)
    done = subprocess.run([SEEP, "info", path], capture_output=True,
                          timeout=LIMIT_S, check=True)
    text = done.stdout.decode()
    assert "\ndevices    GPU 0, 4 GiB" in text
    assert "\n           GPU 1, 4 GiB" in text
    assert "look-ups of names of the CUDA driver\n" in text
    assert "second CUDA driver" not in text


def test_a_driver_that_is_not_seen_is_told(tmp_path):
    program = ("import ctypes; "
               "assert ctypes.CDLL('libcuda.so.9').hidden_start(1 << 20) == 0")
    record(tmp_path, "-c", program, options=["--exact", "--size", "32MiB"])
    process, = document(*recordings(tmp_path))["processes"]
    assert process["facts"]["cuda_lookups"] == 0
    assert any("a way that seep does not see" in advice
               for advice in process["verdict"]["advice"])
