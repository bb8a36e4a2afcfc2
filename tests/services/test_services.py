# SPDX-License-Identifier: LGPL-2.1-or-later
"""What seep says of services whose truth is known.

Ten of them, 38 s each and side by side; SEEP_TEST_LONG=1 runs all of them in
three modes, 90 s each, and prints the table. SEEP_TEST_KEEP=FOLDER keeps what
they recorded. A leak that is not called yet may be called when it runs again;
one that is told to be none, and a false alarm, are wrong at once.
"""
import os
import pathlib
import sys
import tempfile

import pytest

import judge
import run
import services

sys.path.append(str(pathlib.Path(__file__).parent.parent / "integration"))

from crowd import crowd  # noqa: E402

LONG = os.environ.get("SEEP_TEST_LONG", "") not in ("", "0")
SEEP = pathlib.Path(os.environ.get("SEEP", "build/tools/seep/seep"))
FEW_SECONDS, SECONDS = 38, 90
FEW_MIB = 128  # of each recording
# Of the ten: what any report of 38 s must call, and by which line.
CLEAR = ("each-request@kill", "each-request@return", "reload-keeps@kill",
         "py-dict-cache@sigterm")
MOST_REASSURED, LEAST_RIGHT = 0.01, 0.9
LEAST_COVERED = 0.88  # of intervals that promise 0.95, over some 40
LEAST_TIDY = 0.95


def options(folder, *more):
    """As run.py takes them."""
    seconds, jobs = (SECONDS, 16) if LONG else (FEW_SECONDS, 20)
    modes = "exact,64K,default" if LONG else "exact,64K"
    words = ["--seep", str(SEEP), "--keep", folder, "--few-words",
             "--seconds", str(seconds), "--jobs", str(jobs),
             "--modes", modes, *more]
    if not LONG:
        words += ["--size-mib", str(FEW_MIB)]
    if os.environ.get("SEEP_PRELOAD"):
        words += ["--preload", os.environ["SEEP_PRELOAD"]]
    return run.parse(words if LONG else [*words, "--few"])


def unsure(row):
    """Not called, or by another line: chance may have it so once."""
    return (row.name in CLEAR and not row.reassured
            and not (row.called and row.right))


@pytest.fixture(scope="module", name="rows")
def all_rows(request):
    """Each service in each mode, judged; who is unsure has run twice."""
    captures = request.config.pluginmanager.getplugin("capturemanager")
    if not SEEP.exists():
        pytest.skip("the tool is not built")
    with tempfile.TemporaryDirectory(prefix="seep-test-") as folder:
        folder = os.environ.get("SEEP_TEST_KEEP", folder)
        chosen = options(folder)
        with crowd(1):
            rows = run.run_jobs(run.chosen_jobs(chosen), chosen)
        again = {(row.name, row.mode) for row in rows if unsure(row)}
        if again and not LONG:
            chosen = options(folder, "--seed", "2")
            jobs = [job for job in run.chosen_jobs(chosen)
                    if (job[0].name, job[1]) in again]
            print("again:", again)
            rows = [row for row in rows if (row.name, row.mode) not in again]
            with crowd(1):
                rows += run.run_jobs(jobs, chosen)
        with captures.global_and_fixture_disabled():
            judge.print_table(rows)
        yield rows


def said(rows):
    """For a failure."""
    return [(row.name, row.mode, row.verdict, row.check, row.first_class,
             row.first, row.error) for row in rows]


def part(rows, figure):
    """Of the totals, as a share."""
    some, whole = judge.totals_of(rows)[figure]
    return some / whole if whole else None


def test_every_service_ran_and_was_read(rows):
    wrong = [row for row in rows if row.error]
    if not LONG:
        # too short for what some keep in 90 s
        wrong = [row for row in wrong if row.error != "keeps too little"]
    assert said(wrong) == []


def test_no_leak_is_told_to_be_none(rows):
    wrong = [row for row in rows if row.reassured]
    leaks = sum(row.leaks for row in rows)
    assert len(wrong) <= (MOST_REASSURED * leaks if LONG else 0), said(wrong)


def test_no_clean_service_is_a_leak(rows):
    assert said([row for row in rows if row.alarm]) == []


def test_a_clear_leak_is_called_by_the_line_that_keeps(rows):
    if LONG:
        assert part(rows, "clear leaks called with the right line "
                    "first") >= LEAST_RIGHT
    else:
        assert said([row for row in rows if unsure(row)]) == []


def test_a_tidy_end_changes_nothing(rows):
    pairs = list(judge.tidy_pairs(rows))
    assert pairs
    wrong = [pair for pair in pairs if pair[0].called != pair[1].called]
    assert (len(wrong) <= (1 - LEAST_TIDY) * len(pairs)), [
        said(pair) for pair in wrong]


@pytest.mark.skipif(not LONG, reason="too few in the short form")
def test_intervals_hold_the_true_rate(rows):
    assert part(rows, "intervals that hold the true rate") >= LEAST_COVERED


def a_row(**more):
    """A leak that is called as it should be."""
    row = judge.Row("each-request@kill", "exact", True, 90.0, 60.0, 1000.0,
                    verdict="leak", check=3, right=True, listed_first=True)
    return judge.dataclasses.replace(row, **more)


@pytest.mark.parametrize("more, mark", [
    ({}, ""), ({"verdict": "bounded"}, "REASSURED"),
    ({"verdict": "allocator-retention"}, "REASSURED"),
    ({"verdict": "insufficient-data", "check": 0}, "CHECK-PASSES"),
    ({"verdict": "insufficient-data", "check": 4}, "not called"),
    ({"verdict": "suspect", "right": False}, "wrong line"),
    ({"leaks": False}, "ALARM"),
    ({"leaks": False, "verdict": "steady", "false_sites": 1}, "ALARM"),
    ({"leaks": False, "verdict": "suspect"}, ""),
    ({"verdict": "insufficient-data", "check": 4, "faint": True}, ""),
    ({"verdict": "steady", "check": 4, "faint": True}, "REASSURED"),
])
def test_what_is_wrong_is_marked(more, mark):
    assert a_row(**more).mark == mark


def test_totals_count_what_is_wrong():
    rows = [a_row(), a_row(name="each-request@return", verdict="steady"),
            a_row(name="churn@kill", leaks=False)]
    totals = judge.totals_of(rows)
    assert totals["leaks told bounded, steady, retention or check-pass"] == (
        1, 2)
    assert totals["clean services called leak"] == (1, 1)
    assert totals["clear leaks called with the right line first"] == (1, 2)
    assert totals["tidy twins with the verdict of their abrupt twins"] == (
        0, 1)


def test_a_service_that_stops_is_no_leak():
    parts = [1 << 20] * 25 + [9 << 20] * 25
    truth = judge.Truth(True, ["keep"], True, 90.0, 9 << 20, 900, parts,
                        list(range(1, 51)), 1)
    assert truth.fault() == "has stopped"
    truth.kept_by_part = parts[:-1] + [10 << 20]
    assert truth.fault() is None
    truth.kept_bytes = 1 << 20
    assert truth.fault() == "keeps too little"


def test_there_are_sixty_services_and_ten_of_them_run_each_time():
    every = {service.name for service in services.every_service()}
    assert len({service.kind for service in services.every_service()}) >= 60
    assert set(services.FEW) <= every and len(services.FEW) == 10
