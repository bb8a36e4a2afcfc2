# SPDX-License-Identifier: LGPL-2.1-or-later
"""Limits on the memory of tests: suites are run as a user runs them, and what
became of each test is read from JUnit's file.

Invariant: every process that is started here has a time limit.
"""
import importlib.util
import json
import mmap
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as etree

import pytest

from conftest import OURS, PRELOAD, SEEP
from crowd import crowd

HERE = pathlib.Path(__file__).parent
PROGRAMS = HERE / "programs"
SOURCE = pathlib.Path(os.environ.get("SEEP_SOURCE", HERE.parents[1]))
DRIVER = os.environ.get("SEEP_FAKE_CUDA", "")
LIMIT_S = 1000  # none takes that long: for what hangs
TRIES = 3
INI = "[pytest]\nseep = true\naddopts = --strict-markers\n"
PLUGIN = (sys.executable, "-m", "pytest", "-p", "seep.pytest_plugin",
          "-p", "no:cacheprovider", "-q")
LEAKS = ("test_a_list", "test_malloc", "test_cycles_that_nobody_collects",
         "test_a_table", "test_a_cache")

sys.path.insert(0, str(SOURCE / "tools/python"))

from seep import (  # noqa: E402
    _gate_limits, _gate_measure, _gate_sites, _gate_verdict)

if not SEEP.exists():
    pytest.skip("the tool is not built", allow_module_level=True)


def environment(folder):
    """Nothing of seep's but where the build is; a folder for recordings."""
    kept = {k: v for k, v in os.environ.items()
            if k not in OURS and not k.startswith("PYTEST")}
    return kept | {
        "SEEP_PRELOAD": str(PRELOAD), "TMPDIR": str(folder),
        "PYTHONPATH": str(SOURCE / "tools/python"),
        "PATH": f"{SEEP.resolve().parent}:{os.environ['PATH']}"}


class Suite:
    """A folder of tests, and how running it ended."""

    def __init__(self, folder, files, ini=""):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        for name in files:
            shutil.copy(PROGRAMS / f"pytest_{name}.py",
                        self.folder / f"test_{name}.py")
        (self.folder / "pytest.ini").write_text(ini or "[pytest]\n")
        self.status = self.out = None
        self.cases = {}

    def run(self, *words, before=(), **variables):
        """Run it; @return itself."""
        process = subprocess.Popen(
            [*before, *PLUGIN, "--junitxml", "junit.xml", *words],
            cwd=self.folder, env=environment(self.folder) | variables,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True)
        try:
            self.out, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            self.out, _ = process.communicate()
            pytest.fail(f"it hung: {self.out}")
        self.status = process.returncode
        junit = self.folder / "junit.xml"
        for case in etree.parse(junit).iter("testcase") \
                if junit.exists() else ():
            self.cases[case.get("name")] = case
        return self

    def outcome(self, name):
        """"pass", "failure", "error", "skipped", and in which words."""
        for child in self.cases[name]:
            if child.tag in ("failure", "error", "skipped"):
                return child.tag, (child.get("message") or "") + \
                    (child.text or "")
        return "pass", ""

    def properties(self, name):
        """What JUnit's file has of a test beside its outcome."""
        return {entry.get("name"): entry.get("value")
                for entry in self.cases[name].iter("property")}


def line_that_says(file, text):
    """The number of a line."""
    lines = (PROGRAMS / f"pytest_{file}.py").read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if f"# {text}" in line)


# Who holds it, where it is told: by asking the process that waits.
HOLDERS = {"test_a_list": "test_leaks.kept, a list of ",
           "test_a_table": "test_leaks.table, a dict of "}


def may_be_asked():
    """Yama lets ancestors ask only."""
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    return not scope.exists() or scope.read_text().strip() == "0"


def run_parallel(folder):
    if importlib.util.find_spec("xdist") is None:
        return None
    return Suite(folder / "parallel", ("clean", "leaks"), INI).run(
        "-n", "2")


def run_serial(folder):
    return Suite(folder / "serial", ("others", "leaks"), INI).run(
        "test_others.py", "test_leaks.py::test_a_list")


def run_device(folder):
    if not DRIVER:
        return None
    return Suite(folder / "device", ("device",)).run(
        "--seep", before=(SEEP, "run", "--no-report", "-o", folder / "d/",
                          "--"),
        LD_LIBRARY_PATH=str(pathlib.Path(DRIVER).parent))


def run_sampled(folder):
    return Suite(folder / "sampled", ("leaks",)).run(
        "--seep", "--seep-strict", "-k", "test_a_list",
        before=(SEEP, "run", "--no-report", "-o", folder / "s/", "--"))


@pytest.fixture(name="suites", scope="module")
def suites_fixture(tmp_path_factory):
    """{name: suite that was run}, side by side."""
    folder = tmp_path_factory.mktemp("suites")
    runs = {"parallel": run_parallel, "serial": run_serial,
            "device": run_device, "sampled": run_sampled}
    with crowd(len(runs)) as pool:
        futures = {name: pool.submit(run, folder)
                   for name, run in runs.items()}
        return {name: future.result() for name, future in futures.items()}


def chosen(suites, name):
    if suites[name] is None:
        pytest.skip(f"what {name} needs is not there")
    return suites[name]


def surely(suite, file, name, folder):
    """The suite; one in which the test is run by itself, if a busy machine left
    too little data. What is over its limit is that at once."""
    for number in range(TRIES):
        outcome = suite.outcome(name)
        if outcome[0] != "skipped" or "not enough data" not in outcome[1]:
            break
        suite = Suite(folder / f"{name}.{number}", (file,), INI).run(
            "-k", name.partition("[")[0])
    return suite


def sure(suite, file, name, folder):
    """Its outcome, as above."""
    return surely(suite, file, name, folder).outcome(name)


def test_what_keeps_nothing_passes(suites, tmp_path):
    suite = chosen(suites, "parallel")
    clean = {name: sure(suite, "clean", name, tmp_path)
             for name, case in suite.cases.items()
             if "clean" in case.get("classname")}

    assert len(clean) >= 24, suite.out
    # pytest would cut a dictionary short.
    wrong = [f"{name}: {how}" for name, how in clean.items()
             if how != ("pass", "")]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_fails_by_its_line(suites, name, tmp_path):
    suite = surely(chosen(suites, "parallel"), "leaks", name, tmp_path)
    outcome, text = suite.outcome(name)
    line = line_that_says("leaks", f"{name} leaks")

    assert outcome == "failure", text + suite.out
    assert "the limit is 64 B" in text
    assert f"test_leaks.py:{line}: " in text.splitlines()[1]
    assert "pytest_pyfunc_call" not in text  # none of pytest's own frames
    if name in HOLDERS and may_be_asked():
        assert f"    held by  {HOLDERS[name]}" in text
    told = suite.properties(name)
    assert told["seep_outcome"] == "fail"
    assert told["seep_where"].startswith(f"test_leaks.py:{line}: ")
    assert told["seep_limit_growth_per_call"] == "64 B"


@pytest.mark.parametrize("name", ["serial", "parallel"])
def test_how_many_were_held_is_said_at_the_end(suites, name):
    """Of how they ended; which of them must pass or fail others say."""
    suite = chosen(suites, name)
    held = [suite.properties(case).get("seep_outcome") for case in suite.cases]
    words = [f"{held.count(outcome)} {said}" for outcome, said in (
        ("pass", "within"), ("fail", "over"),
        ("not enough data", "not enough data"),
        ("not measured", "not measured")) if outcome in held]

    assert held.count("pass") > 0 and held.count("fail") > 0, suite.out
    assert f"seep: {', '.join(words)}" in suite.out.splitlines(), suite.out


def test_what_a_test_that_passes_could_not_see_has_its_size(suites, tmp_path):
    name = "test_an_arena_that_grows_once"
    told = surely(suites["serial"], "others", name, tmp_path).properties(name)

    # 1 MiB over the 30 calls of a round.
    assert told["seep_limit_growth_per_call_unseen"] == "34.1 KiB per call"
    name = "test_three_limits"
    suite = surely(suites["serial"], "others", name, tmp_path)
    told = suite.properties(name)
    assert told["seep_limit_growth_unseen"].endswith("/min")
    assert told["seep_limit_growth_per_call_unseen"] == "20.5 KiB per call"
    assert "seep_limit_device_memory_unseen" not in told
    assert re.search(r"^seep: within: memory that no hook sees may still grow "
                     r"by up to \S+ KiB per call, \S+ MiB/min$", suite.out,
                     re.M)
    # What was over its limit is told as that.
    assert not [name for name in suites["serial"].properties("test_a_list")
                if name.endswith("_unseen")]


@pytest.mark.parametrize("name", ["serial", "parallel"])
def test_the_reports_verdict_is_told_of_each_process(suites, name):
    suite = chosen(suites, name)
    told = re.findall(r"^seep: (?:([A-Z ]+)  python3|within its limit is not "
                      r"\"no leak\": the verdict on pid (\d+) as a whole is "
                      r"([A-Z ]+), and (?:a leak of up to \S+ \S+/min could "
                      r"hide|how large a leak could hide is unknown)$)",
                      suite.out, re.M)

    assert len(told) == (2 if name == "parallel" else 1), suite.out
    # Tests of it were over their limits: whatever the verdict, it is no
    # "no leak" beside them.
    assert "no leak:" not in suite.out


def verdict(name, reassures=False, hidden=None, grows=False, filling=False):
    rate = {"estimate": 2.0, "low": 1.0, "high": 3.0} if grows else None
    return {"process": {"pid": 42}, "verdict": {
        "class": name, "reassures": reassures, "hidden_bytes_per_s": hidden,
        "growth_bytes_per_s": rate, "filling": filling,
        "sentence": "python3 (pid 42): as the report has it."}}


@pytest.mark.parametrize("process, said", [
    (verdict("steady", True, 100), "seep: STEADY  python3 (pid 42): as the "
     "report has it."),
    (verdict("leak", grows=True), "seep: LEAK  python3 (pid 42): as the "
     "report has it."),
    (verdict("bounded", filling=True), "seep: BOUNDED  python3 (pid 42): as "
     "the report has it."),
    (verdict("allocator-retention", False, 1024), "seep: within its limit is "
     "not \"no leak\": the verdict on pid 42 as a whole is ALLOCATOR "
     "RETENTION, and a leak of up to 60 KiB/min could hide"),
    (verdict("insufficient-data", grows=True), "seep: within its limit is not "
     "\"no leak\": the verdict on pid 42 as a whole is INSUFFICIENT DATA, and "
     "how large a leak could hide is unknown")])
def test_a_verdict_that_does_not_reassure_is_not_told_as_one(process, said):
    assert _gate_verdict.told(process) == said


def test_no_leak_is_not_said_beside_a_test_that_leaked():
    sure = verdict("steady", True, 1024)

    assert _gate_verdict.told(sure, is_over=True) == (
        "seep: within its limit is not \"no leak\": the verdict on pid 42 as a "
        "whole is STEADY, and a leak of up to 60 KiB/min could hide")
    assert "as the report has it" in _gate_verdict.told(sure)


def test_the_verdict_told_is_the_reports(suites):
    path = suites["sampled"].folder.parent / "s"
    done = subprocess.run([SEEP, "report", "--json", path], check=True,
                          stdout=subprocess.PIPE, timeout=LIMIT_S)
    processes = json.loads(done.stdout)["processes"]

    assert _gate_verdict.lines(str(SEEP), str(path)) == [
        _gate_verdict.told(process) for process in processes]
    assert "is unknown" in _gate_verdict.lines(str(SEEP), __file__)[0]


def test_a_leak_fails_without_workers_too(suites, tmp_path):
    suite = surely(suites["serial"], "leaks", "test_a_list", tmp_path)
    outcome, text = suite.outcome("test_a_list")

    assert outcome == "failure", text + suite.out
    assert f":{line_that_says('leaks', 'test_a_list leaks')}: test_a_list" \
        in text
    low, high = re.search(r"grows by (\S+) to (\S+) KiB per call",
                          text).groups()
    # 1 KiB, what an object of Python's takes beside it, and the list itself.
    assert 1.0 <= float(low) <= float(high) <= 1.25


def test_what_grows_now_and_then_is_not_enough_data(suites):
    outcome, text = suites["serial"].outcome("test_now_and_then")

    assert outcome == "skipped"
    assert "not enough data" in text and "calls=400" in text


@pytest.mark.parametrize("name, unit", [
    ("test_pages_that_no_hook_sees", "KiB per call"),
    ("test_an_allocator_that_no_hook_sees", "KiB per call"),
    ("test_unseen_pages_by_time", "/min")])
def test_memory_that_no_hook_sees_does_not_pass(suites, name, unit):
    outcome, text = suites["serial"].outcome(name)

    assert outcome == "skipped", text
    assert "seep: not enough data: memory grows" in text
    assert unit in text and "private memory of the process" in text
    assert "no call site is seen to hold that" in text
    assert suites["serial"].properties(name)["seep_outcome"] == \
        "not enough data"


def test_an_arena_that_grows_once_passes(suites, tmp_path):
    suite = suites["serial"]

    assert sure(suite, "others", "test_an_arena_that_grows_once",
                tmp_path)[0] == "pass", suite.out


@pytest.mark.parametrize("grown, is_over", [
    ([8192] * 10, True), ([4096] * 10, False), ([0] * 10, False),
    ([640] * 10, False), ([200000] + [0] * 9, False),
    ([2 << 20] + [0] * 9, True), ([2 << 20, -2 << 20] * 5, False)])
def test_private_memory_is_held_against_the_limit(grown, is_over):
    assert _gate_measure.private_is_over(grown, [10] * 10, 64) == is_over


def test_private_memory_has_no_shared_pages_in_it():
    before = _gate_measure.private_bytes()
    shared = mmap.mmap(-1, 32 << 20)
    shared.write(bytes(len(shared)))
    between = _gate_measure.private_bytes()
    own = bytearray(b"x") * (32 << 20)
    after = _gate_measure.private_bytes()

    assert between - before < 16 << 20
    # What the process frees meanwhile is not ours to say.
    assert after - between > 24 << 20
    assert len(own) == len(shared)


def test_a_test_that_fails_fails_as_it_would(suites):
    suite = suites["serial"]

    outcome, text = suite.outcome("test_that_fails_by_itself")
    assert outcome == "failure" and "assert (1 + 1) == 3" in text
    outcome, text = suite.outcome("test_that_fails_when_repeated")
    assert outcome == "failure" and "!= 9" in text
    assert re.search(r"call \d+ of the body, which seep repeats", suite.out)


@pytest.mark.parametrize("name, words", [
    ("test_an_argument_that_is_none", "did you mean 'calls'?"),
    ("test_a_unit_that_is_none", "did you mean 'B'?"),
    ("test_a_time_that_is_none", "did you mean '1 MiB/min'?"),
    ("test_no_limit", "expected one limit"),
])
def test_a_marker_that_cannot_be_read_is_an_error(suites, name, words):
    outcome, text = suites["serial"].outcome(name)

    assert outcome == "error" and words in text, text


def test_what_pytest_does_not_call_is_not_measured(suites):
    outcome, text = suites["serial"].outcome("test_a_method_of_unittest")

    assert outcome == "skipped" and "not measured" in text


def test_three_limits_are_held_at_once(suites, tmp_path):
    name = "test_three_limits"
    suite = surely(suites["serial"], "others", name, tmp_path)

    assert suite.outcome(name)[0] == "pass", suite.out
    told = suite.properties(name)
    assert told["seep_limit_growth"] == "10 MiB/min"
    assert told["seep_limit_growth_per_call_measured"].endswith(" per call")
    assert told["seep_limit_device_memory_measured"] == "0 B"
    assert sure(suites["serial"], "others", "test_a_leak_within_its_limit",
                tmp_path)[0] == "pass"
    suite = suites["serial"]
    assert not suite.properties("test_without_a_limit")


def test_recordings_are_gone_at_the_end(suites):
    for suite in filter(None, suites.values()):
        assert not list(suite.folder.glob("seep-pytest-*"))


def test_the_most_that_is_held_of_a_gpu_is_limited(suites):
    suite = chosen(suites, "device")

    assert suite.outcome("test_one")[0] == "pass", suite.out
    outcome, text = suite.outcome("test_three")
    assert outcome == "failure"
    assert "reaches 3 GiB, the limit is 2 GiB (GPU 0)" in text
    assert "test_device.py:" in text
    assert suite.outcome("test_one_after_three")[0] == "pass", suite.out


def test_where_blocks_are_sampled_growth_is_not_measured(suites):
    suite = suites["sampled"]
    outcome, text = suite.outcome("test_a_list")

    assert outcome == "failure"  # --seep-strict
    assert "seep: not measured: blocks are sampled" in text, suite.out


def test_unless_it_is_asked_for_nothing_is_measured(tmp_path):
    suite = Suite(tmp_path, ("leaks", "others")).run(
        "--strict-markers", "-k", "not fails and not none and not no_limit")

    assert suite.status == 0, suite.out
    assert "seep" not in suite.out
    assert not any(suite.properties(name) for name in suite.cases)


def test_without_seep_it_says_what_is_missing(tmp_path):
    suite = Suite(tmp_path, ("leaks",)).run(
        "--seep", PATH="/nowhere")

    assert suite.status == 4
    assert "ERROR: seep: command 'seep' not found in PATH" in suite.out


def test_a_program_that_calls_pytest_is_not_started_twice(tmp_path):
    code = "import sys, pytest; print('once'); " \
        "sys.exit(pytest.main(['-p', 'seep.pytest_plugin', '--seep']))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(tmp_path),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False, timeout=LIMIT_S)

    assert done.returncode == 4
    assert done.stdout.count("once") == 1
    assert "seep run --exact -- PROGRAM" in done.stdout


@pytest.mark.parametrize("text, count", [
    ("64 B", 64), ("1.5 KiB", 1536), ("2K", 2048), ("3 MB", 3e6), (7, 7)])
def test_sizes_are_read(text, count):
    assert _gate_limits.size(text) == count


@pytest.mark.parametrize("text", [
    "3000000", "3000000B", "3000000 b", "4096K", "4096Ki", "4096 KiB", "3M",
    "3mib", "3 MB", "2.5M", "2.999999M", ".5G", "0.01T", "0.00001P", "3\tMi",
    "", "M", "3 X", "3MiBs", "1,5M", "3.M", "-3M", "3000000.5", "3000000.0B",
    " 3M", "3M ", "3 M B", "0x300000", "3e6", "16E"])
def test_a_size_is_what_the_command_reads(text):
    done = subprocess.run([SEEP, "env", f"--size={text}"], timeout=LIMIT_S,
                          check=False, capture_output=True, text=True)
    try:
        found = _gate_limits.size(text)
    except _gate_limits.BadLimit:
        found = None
    told = re.search("SEEP_SIZE='([0-9]+)'", done.stdout)
    assert found == (told and float(told[1]))


def test_sizes_are_written_with_one_unit():
    assert _gate_limits.written(0) == "0 B"
    assert _gate_limits.written(1000, 1100) == "0.98 to 1.07 KiB"
    assert _gate_limits.written(3 << 30) == "3 GiB"
    assert _gate_limits.rate("3 MiB/min") * 60 == 3 << 20


def test_the_interval_has_the_mean():
    low, high = _gate_measure.interval([100.0] * 10)
    assert low == high == 100
    low, high = _gate_measure.interval([0.0] * 9 + [1000.0])
    assert low < 0 < 100 < high


def tool_that_says(folder, document):
    """A command that prints it, whatever it is asked."""
    (folder / "said").write_text(json.dumps(document))
    tool = folder / "tool"
    tool.write_text(f"#!/bin/sh\nexec cat {folder}/said\n")
    tool.chmod(0o755)
    return str(tool)


@pytest.mark.parametrize("first, now, said", [
    (1, 1, None), (1, 2, "since the recording filled up: use a larger"),
    (512, 512, "`seep run --exact -- pytest --seep`")])
def test_only_sampled_blocks_are_called_sampled(tmp_path, first, now, said):
    """What was lost before, in imports, keeps nobody from measuring."""
    tool = tool_that_says(tmp_path, {"recordings": [{
        "process": {"exact": False, "first_sample_bytes": first,
                    "sample_bytes": now, "python": {"objects": "recorded"}},
        "losses": {"dropped_frees": 3, "torn_sites": 1}}]})
    why_not = _gate_measure.why_not_exact(tool, "a recording")

    assert (said is None and why_not is None) or (
        "blocks are sampled" in why_not and said in why_not)


@pytest.mark.parametrize("before, after, outcome, advice", [
    ({}, {}, "fail", ""), ({"nested": 7}, {"nested": 7}, "fail", ""),
    ({}, {"torn_sites": 1}, "fail", ""),
    ({}, {"dropped_frees": 3}, "not enough data", "less busy"),
    ({"nested": 2}, {"nested": 1, "sites_full": 9}, "not enough data",
     "SEEP_SIZE"),
    ({}, {"thinned_blocks": 9}, "not enough data", "SEEP_SIZE"),
    ({}, {"dropped_allocs": 3, "room_refused": 1}, "not enough data",
     "room on the disk")])
def test_what_is_lost_meanwhile_is_said_and_no_more(tmp_path, before, after,
                                                    outcome, advice):
    def looked(counts):
        tool = tool_that_says(tmp_path, {"processes": [{
            "facts": {}, "losses": {"torn_sites": 0, **counts}, "sites": []}]})
        return _gate_sites.read(tool, "a recording")

    lost = _gate_sites.lost(looked(before), looked(after))
    found = judged(lost, 1000)

    assert found.outcome == outcome
    assert advice in found.advice
    assert all(f"{name} {count}" in found.told
               for name, count in after.items()
               if outcome != "fail" and name in lost)


def judged(lost, grown_bytes):
    """Found, of a round whose call sites grew by so much."""
    limit = _gate_limits.Limit("limit_growth_per_call", "64 B", 64, 10, 0, 0)
    rounds = [_gate_measure.Round(limit)]
    rounds[0].work[0], rounds[0].calls = 10, 10
    # pylint: disable-next=protected-access
    return _gate_measure._judged(limit, rounds, (90, 110), {
        "grown": [{"bytes": grown_bytes}], "lost": lost})


def test_sites_that_were_read_half_written_clear_nobody():
    assert judged({}, 10).outcome == "pass"
    assert judged({"torn_sites": 1}, 10).outcome == "not enough data"


def test_a_reader_asks_again_while_sites_are_half_written(monkeypatch):
    torn = iter([1, 1, 0, 1])

    def process_of(*_):
        return {"facts": {}, "losses": {"torn_sites": next(torn)},
                "sites": []}

    monkeypatch.setattr(_gate_sites, "_process_of", process_of)
    assert _gate_sites.read("seep", "a recording")["torn_sites"] == 0
    assert next(torn) == 1


def site(live=0, allocated=0, peak=0, space="heap", stacks=1,
         place=("/t/test_x.py", 5, "f")):
    return {"live_bytes": live, "live_count": live, "space": space,
            "allocated_bytes": allocated, "peak_bytes": peak, "device": 0,
            "stacks": stacks, "place": place}


def test_the_runners_own_lines_are_left_out():
    before = {"sites": {"a": site(10)}}
    after = {"sites": {
        "a": site(30), "b": site(5, place=("/lib/_pytest/x.py", 1, "g")),
        "c": site(7, space="device"),
        "d": site(9, place=("/lib/seep/m.py", 1, "call_repeatedly"))}}
    rows = _gate_sites.grown(before, after, ("/lib/_pytest/", "/lib/seep/"))

    assert [row["bytes"] for row in rows] == [20, 9]


def test_a_peak_of_a_gpu_lies_between_bounds():
    before = {"sites": {"a": site(10, 100, 60, "device")}}
    after = {"sites": {"a": site(10, 130, 60, "device"),
                       "b": site(0, 50, 40, "device", stacks=2)}}
    held = _gate_sites.peaks(before, after)["0"]

    # a held 40 at most, of which 10 all the while; b 40 at some time.
    assert (held["low"], held["high"]) == (40, 40 + 50)
