# SPDX-License-Identifier: LGPL-2.1-or-later
"""Parts of a run, and what stood at a time, against what the program printed.

In the pauses between its phases nothing happens: where a step of the grid lies
in one, what stands there is known to the byte. On a machine that stands still
for longer than a pause none may, and the program is run again.
"""
import functools
import json
import re

import pytest

from command_line import recordings, run, seep
from conftest import SEEP, program

PAUSES = {"load": "fill", "fill": "empty", "empty": "leak", "leak": "over"}
TRIES = 5


def read_truth(text):
    """{phase: {line: bytes}}"""
    lines = [line.split() for line in text.decode().splitlines()]
    return {line[0]: {name: int(count) for name, count in
                      (word.split("=") for word in line[1:])}
            for line in lines}


@functools.cache
def document(path, *words):
    """Of the one process."""
    done = seep("report", "--json", "--sites", "0", *words, path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    process, = json.loads(done.stdout)["processes"]
    return process


def held(process, key="live_bytes"):
    """{function: bytes} by the figures of the window."""
    return {site["where"].split()[-1]: site["window"][key]
            for site in process["sites"]}


def is_calm(process):
    """Has each pause two steps of the grid in it?"""
    times = {mark["name"]: mark["t_s"] for mark in process["marks"]}
    return all(times[after] - times[f"{before} done"] > 3 * process["bucket_s"]
               for before, after in PAUSES.items())


@pytest.fixture(name="phases", scope="module")
def phases_fixture(tmp_path_factory):
    """(recording, truth)"""
    if not SEEP.exists():
        pytest.skip("the tool is not built")
    for i in range(TRIES):
        folder = tmp_path_factory.mktemp(f"phases{i}")
        done = run(folder, program("phases"), options=("--quiet", "--exact"))
        path, = recordings(folder)
        if is_calm(document(path)):
            return path, read_truth(done.stdout)
    pytest.skip("the machine stood still in every run")


def near(figures):
    """What blocks take: a word or a page more than what was asked for."""
    return pytest.approx(figures, rel=0.005)


def middle(process, name):
    """A time in the pause after a phase."""
    times = {mark["name"]: mark["t_s"] for mark in process["marks"]}
    return (times[f"{name} done"] + times[PAUSES[name]]) / 2


@pytest.mark.parametrize("by", ["line", "stack"])
@pytest.mark.parametrize("phase", PAUSES)
def test_what_stood_in_a_pause_is_what_the_program_says(phases, phase, by):
    path, truth = phases
    at_s = middle(document(path), phase)
    process = document(path, "--by", by, "--at", f"{at_s:.4f}")
    found = {}
    for site in process["sites"]:
        for frame in site["frames"]:
            name = frame["function"]
            if name in truth[phase]:
                found[name] = found.get(name, 0) + site["window"]["live_bytes"]

    assert process["window"]["moment"]
    assert abs(process["window"]["to_s"] - at_s) <= process["bucket_s"]
    assert found == near(truth[phase])


def test_the_peak_is_when_all_that_was_taken_stood(phases):
    path, truth = phases
    process = document(path, "--peak")
    window = process["window"]
    marks = {mark["name"]: mark["t_s"] for mark in process["marks"]}
    tracked = held(process)

    assert marks["fill"] < window["to_s"] <= marks["empty done"]
    assert {name: tracked[name] for name in truth["fill"]} == near(
        truth["fill"])
    assert window["total"]["live_bytes"] == window["peak"]["bytes"]
    assert window["total"]["live_bytes"] == sum(tracked.values())
    text = seep("report", "--peak", path).stdout.decode()
    assert re.search(r"^peak    .* after the start, 144 MiB was live$", text,
                     re.M), text
    rows = re.findall(r"^ +([\d.]+) MiB +.*phases\.c:\d+ (\w+)", text, re.M)
    assert [(int(float(size)), name) for size, name in rows] == [
        (64, "load"), (50, "fill"), (30, "take_buffer")]


def test_a_part_between_marks_has_what_happened_between_them(phases):
    path, truth = phases
    process = document(path, "--since", "leak", "--until", "leak done")
    allocated = held(process, "allocated_bytes")

    assert allocated["leak"] == near(truth["leak"]["leak"])
    assert allocated["churn"] == near(truth["churn"]["temporary"])
    assert allocated["load"] == allocated["fill"] == 0
    assert held(process, "growth_bytes")["leak"] == near(
        truth["leak"]["leak"])
    assert held(process, "temporary_bytes")["churn"] == allocated["churn"]
    freed = document(path, "--since", "empty", "--until", "empty done")
    assert held(freed, "freed_bytes")["fill"] == near(
        truth["fill"]["fill"])
    assert held(freed, "growth_bytes")["take_buffer"] == \
        near(-truth["fill"]["take_buffer"])


def test_parts_that_follow_each_other_are_the_whole(phases):
    path, _ = phases
    whole = document(path, "--until", "end")
    cut_s = middle(document(path), "fill")
    first = document(path, "--until", f"{cut_s:.4f}")
    second = document(path, "--since", f"{first['window']['to_s']:.9f}")

    assert second["window"]["from_s"] == pytest.approx(
        first["window"]["to_s"])
    for key in ("allocated_bytes", "freed_bytes", "growth_bytes"):
        both = first["window"]["total"][key] + second["window"]["total"][key]
        assert both == whole["window"]["total"][key], key


def test_the_end_is_what_the_report_says(phases):
    path, _ = phases
    process = document(path, "--at", "end")

    for site in process["sites"]:
        assert site["window"]["live_bytes"] == site["live_bytes"]
        assert site["window"]["live_count"] == site["live_count"]
        assert site["window"]["allocated_bytes"] == site["allocated_bytes"]
    for name, space in process["memory"]["spaces"].items():
        assert process["window"]["spaces"][name]["live_bytes"] == \
            space["last_bytes"]


def test_the_verdict_beside_a_part_is_said_to_be_of_the_whole(phases):
    path, _ = phases
    plain = seep("report", path).stdout.decode().splitlines()
    part = seep("report", "--since", "empty", path).stdout.decode()

    assert part.splitlines()[0] == "Of the whole run:"
    assert part.splitlines()[1] == plain[0]
    assert re.search(r"^part    from .* to .*: live ", part, re.M)
    assert "memory           first" not in part


def test_what_came_and_went_at_once_is_first_among_the_temporary(phases):
    path, _ = phases
    text = seep("report", "--temporary", path).stdout.decode()
    rows = text.partition("temporary  where\n")[2].splitlines()

    assert "6.7 MiB  phases.c" in rows[0] and " churn" in rows[0], text


def test_a_tree_has_in_its_root_what_its_branches_have(phases):
    path, _ = phases
    for way in ("down", "up"):
        text = seep("report", "--tree", way, "--peak", path).stdout.decode()
        all_, *branches = re.findall(
            r"^ +([\d.]+) MiB +[\d.]+ [KM]?i?B  (.*)$", text, re.M)

        assert all_ == ("144", "all"), text
        sizes = [int(float(size)) for size, _ in branches]
        assert sizes == [64, 50, 30], text
        lines = ["load", "fill", "take_buffer"]
        names = [label.split()[-1] for _, label in branches]
        assert names == (lines if way == "up" else ["main"] * 3), text
        assert all(re.search(rf"phases\.c:\d+ {name}$", text, re.M)
                   for name in lines), text
    running = seep("report", "--tree", "down", "--since", "leak", path)
    assert re.search(r"^ *\+9\.5 MiB +73\.\d MiB .* all$",
                     running.stdout.decode(), re.M), running.stdout


@pytest.mark.parametrize("words, code, reason", [
    (("--at", "nix"), 1,
     b"no mark of this recording, is named \"nix\"; its marks are load, "),
    (("--since", "1h"), 1, b"the run ended before that, after "),
    (("--since", "2", "--until", "1"), 1, b"it would end before it begins"),
    (("--at", "1", "--since", "1"), 2,
     b"--at cannot be combined with --since or --until"),
    (("--at", ""), 2, b"expected a time such as 90s, 1h30m or -5m"),
    (("--at", "1", "--holding"), 2, b"--holding cannot be combined"),
    (("--tree", "down", "--json"), 2, b"--tree cannot be combined with --json"),
    (("--tree", "dwon"), 2, b"down"),
])
def test_what_is_no_part_is_refused_with_what_there_is(phases, words, code,
                                                       reason):
    path, _ = phases
    done = seep("report", "--no-symbols", *words, path)

    assert done.returncode == code
    assert done.stdout == b""
    assert reason in done.stderr, done.stderr
    assert done.stderr.count(b"\n") == 1
