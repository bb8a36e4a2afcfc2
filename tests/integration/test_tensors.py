# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tensors inside PyTorch's cache, by Python line, beside the segments that
the cache took from the driver; and which of the two a leak is. The programs
are fake_torch.py's three cases, and one of them with the driver's calls alone,
all at once."""
import dataclasses
import json
import pathlib
import subprocess

import pytest

from conftest import BUILD, PROGRAMS, SEEP, dump, execute
from crowd import crowd
from test_cuda_truth import FIGURES, NEVER

PYTHON = "/usr/bin/python3"
PROGRAM = pathlib.Path(__file__).parent / "programs/fake_torch/fake_torch.py"
LIBRARIES = PROGRAMS / "fake_torch"
SECONDS = 31  # no verdict before 30
CASES = ("leak", "fragmentation", "quiet")
# {how it is run: the program's case, what is recorded of GPUs}
RUNS = {case: (case, "tensors") for case in CASES} | {
    "driver": ("leak", "driver")}


@dataclasses.dataclass
class Outcome:
    """One case: what it knows of itself, what was recorded and reported."""
    told: dict
    recorded: dict
    report: dict

    @property
    def lines(self):
        """{(base name:line, space): figures} of all that was recorded."""
        sums = {}
        for site in self.recorded["sites"]:
            place = site["where"].split(" ")[0].rpartition("/")[2]
            entry = sums.setdefault((place, site["space"]),
                                    dict.fromkeys(FIGURES, 0))
            for figure in FIGURES:
                entry[figure] += site[figure]
        return sums

    def place(self, name):
        """Of a line, as the report writes it."""
        return ":".join(map(str, self.told["lines"][name]["where"]))

    def total(self, space, figure):
        return sum(site[figure] for site in self.recorded["sites"]
                   if site["space"] == space)

    def sites(self, name, space):
        """Rows of the report that are charged to a line."""
        return [site for site in self.report["sites"]
                if site["space"] == space
                and f"/{site['where']}".split(" ")[0].endswith(
                    f"/{self.place(name)}")]


def run_program(folder, case, seconds, **more):
    """Recorded by default, as in production."""
    done = execute([PYTHON, PROGRAM, case, seconds], folder, cwd=folder,
                   timeout=seconds + 90, PYTHONDONTWRITEBYTECODE=1,
                   SEEP_FAKE_TORCH=LIBRARIES,
                   LD_LIBRARY_PATH=f"{BUILD / 'tests/fake'}:{LIBRARIES}",
                   **more)
    assert (done.status, done.stderr) == (0, b""), (case, done.stderr)
    return done


def run_case(folder, case, recorded):
    """A run that is long enough for a verdict."""
    folder.mkdir()
    done = run_program(folder, case, SECONDS, SEEP_CUDA=recorded)
    said = subprocess.run([SEEP, "report", "--json", "--by", "line",
                           done.recordings[0]], capture_output=True,
                          timeout=60, check=False)
    assert said.returncode in (0, 3, 4), said.stderr
    return Outcome(json.loads(done.stdout), dump(done.recordings[0]),
                   json.loads(said.stdout)["processes"][0])


@pytest.fixture(scope="module", name="outcomes")
def run_all(tmp_path_factory):
    """{case: its outcome}"""
    if not SEEP.exists():
        pytest.skip("the tool is not built")
    folder = tmp_path_factory.mktemp("tensors")
    with crowd(len(RUNS)) as pool:
        futures = {name: pool.submit(run_case, folder / name, *how)
                   for name, how in RUNS.items()}
        return {name: future.result() for name, future in futures.items()}


@pytest.mark.parametrize("case", CASES)
def test_tensors_are_charged_to_their_python_lines(outcomes, case):
    """By samples, as the heap beside them; those that are as large as the mean
    are nearly all there. Where the end of the run freed what it had, totals are
    those of the moment before."""
    outcome = outcomes[case]
    tensors = {place: figures for (place, space), figures
               in outcome.lines.items() if space == "tensor"}
    told = {outcome.place(name): {figure: line[figure] for figure in FIGURES}
            for name, line in outcome.told["lines"].items()
            if line["allocated_count"] != 0}
    assert tensors.keys() <= told.keys()
    for place, figures in told.items():
        if figures["allocated_bytes"] < 32 << 20:
            continue  # too few samples to tell
        for figure in ("allocated_bytes", "allocated_count"):
            assert (0.7 * figures[figure] <= tensors[place][figure]
                    <= 1.15 * figures[figure]), (place, figure)
    assert outcome.recorded["losses"] == {}
    assert not any(outcome.recorded["counters"][name] for name in NEVER)


def test_where_every_block_is_recorded_tensors_are_told_to_the_byte(tmp_path):
    done = run_program(tmp_path, "quiet", 3, SEEP_SAMPLE=1)
    told = json.loads(done.stdout)
    outcome = Outcome(told, dump(done.recordings[0]), {})
    assert {place: figures for (place, space), figures
            in outcome.lines.items() if space == "tensor"} == {
                outcome.place(name): {figure: line[figure]
                                      for figure in FIGURES}
                for name, line in told["lines"].items()
                if line["allocated_count"] != 0}


@pytest.mark.parametrize("case", CASES)
def test_segments_stand_beside_them_as_the_driver_gave_them(outcomes, case):
    """To the byte, but where totals are those of the moment before the end, or
    of tensors, which are sampled."""
    outcome = outcomes[case]
    slack = 0 if outcome.report["process"]["end"] is None else 0.2
    assert outcome.total("tensor", "live_bytes") == pytest.approx(
        outcome.told["allocated_bytes"], rel=0.2)
    for space, figure, name in (
            ("device", "live_bytes", "reserved_bytes"),
            ("device", "live_count", "segment_count"),
            ("device", "allocated_bytes", "segments_made_bytes")):
        assert outcome.total(space, figure) == pytest.approx(
            outcome.told[name], rel=slack, abs=0), name


@pytest.mark.parametrize("case", CASES)
def test_pytorch_is_told_all_that_it_would_be_told(outcomes, case):
    """Every tensor that was made or freed, once."""
    lines = outcomes[case].told["lines"].values()
    assert outcomes[case].told["reports"] == sum(
        2 * line["allocated_count"] - line["live_count"] for line in lines)


@pytest.mark.parametrize("case", CASES)
def test_the_caches_own_totals_are_told_to_the_end(outcomes, case):
    """Reports go on when the driver is asked for nothing any more."""
    told, recorded = outcomes[case].told, outcomes[case].recorded
    (device,) = recorded["devices"]
    assert device["ordinal"] == 0
    assert device["total_bytes"] == 4 << 30
    assert device["tensor_reserved"]["last_bytes"] == pytest.approx(
        told["reserved_bytes"], rel=0.05)
    assert device["used"]["last_bytes"] == pytest.approx(
        told["reserved_bytes"] + (64 << 20), rel=0.05)
    if case != "fragmentation":  # its batches come and go
        assert device["tensor_allocated"]["last_bytes"] == pytest.approx(
            told["allocated_bytes"], rel=0.05)
    assert device["cache_fragments"] == (case == "fragmentation")


def test_a_leak_of_tensors_is_named_by_line_with_its_rate(outcomes):
    outcome = outcomes["leak"]
    line = outcome.told["lines"]["reply"]
    (site,) = outcome.sites("reply", "tensor")
    growth = site["growth_bytes_per_s"]
    assert outcome.report["verdict"]["class"] == "leak"
    assert outcome.report["sites"][0] == site
    assert site["class"] == "leak"
    assert growth["low"] <= line["live_bytes"] / outcome.told["served_s"] \
        <= growth["high"]


def test_segments_of_a_leak_are_not_a_second_leak(outcomes):
    """What the verdict is about is the tensors."""
    outcome = outcomes["leak"]
    (site,) = outcome.sites("reply", "tensor")
    assert [each["where"] for each in outcome.report["sites"]
            if each["class"] == "leak"] == [site["where"]]
    assert outcome.report["verdict"]["growing_count"] == 1
    assert all(each["backs_tensors"] for each in outcome.report["sites"]
               if each["space"] == "device")
    assert outcome.report["verdict"]["growth_bytes_per_s"]["estimate"] == \
        pytest.approx(site["growth_bytes_per_s"]["estimate"], rel=0.02)


def test_where_tensors_are_not_recorded_segments_are_the_leak(outcomes):
    """Or suspect: half a minute has some thirty segments, and whether chance
    can make their times is a matter of chance."""
    report = outcomes["driver"].report
    site = report["sites"][0]
    assert report["verdict"]["class"] in ("leak", "suspect")
    assert site["space"] == "device"
    assert site["growth_bytes_per_s"]["low"] > 0
    assert not site["backs_tensors"]
    assert not [site for site in report["sites"] if site["space"] == "tensor"]


def test_a_cache_that_grows_around_the_same_tensors_is_fragmented(outcomes):
    outcome = outcomes["fragmentation"]
    assert outcome.report["verdict"]["class"] == "fragmentation"
    assert not [site["where"] for site in outcome.report["sites"]
                if site["class"] == "leak"]


def test_a_cache_that_has_filled_is_no_leak(outcomes):
    verdict = outcomes["quiet"].report["verdict"]
    assert verdict["class"] in ("bounded", "steady")


@pytest.mark.parametrize("word, spaces", [
    ("tensors", {"device", "tensor"}), ("driver", {"device"}), ("off", set())])
def test_what_is_recorded_of_a_gpu_can_be_chosen(word, spaces, folder):
    """And PyTorch is told the same."""
    done = run_program(folder, "quiet", 1, SEEP_CUDA=word)
    recorded = dump(done.recordings[0])
    assert {site["space"] for site in recorded["sites"]} - \
        {"heap", "mapped", "python"} == spaces
    told = json.loads(done.stdout)
    assert told["reports"] == sum(
        2 * line["allocated_count"] - line["live_count"]
        for line in told["lines"].values())
