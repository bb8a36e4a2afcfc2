# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs whose imports take as long as their work, or longer: leaks, a cache,
nothing.

All run at a time, once; each runs long enough for a verdict.
"""
import concurrent.futures
import dataclasses
import json
import pathlib
import re
import subprocess
import tempfile

import pytest

import consistency
from conftest import SEEP, environment, frame_functions, recordings_in

PROGRAM = pathlib.Path(__file__).parent / "programs" / "python_begin.py"
PYTHON = "/usr/bin/python3"
DENSE = 16 << 10
SLACK_S = 120
IMPORT_S = {"graph": 26, "cache": 18, "late": 0, "clean": 18, "brief": 34,
            "thread": 38}
WORK_S = {"graph": 20, "cache": 36, "late": 44, "clean": 24, "brief": 6,
          "thread": 6}
IMPORTED_BYTES = 20 << 20  # at least


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What the report says, and what the program says."""
    truth: dict
    process: dict
    text: str
    holding: str
    against: list

    @property
    def verdict(self):
        """The class of the process."""
        return self.process["verdict"]["class"]

    @property
    def began(self):
        """When its work did."""
        return self.process["process"]["work_began"]

    def of(self, function):
        """The row in which @function allocated that holds the most."""
        return max((site for site in self.process["sites"]
                    if function in frame_functions(site)),
                   key=lambda site: site["live_bytes"])


def run_case(case):
    """Record one program and read what it left."""
    with tempfile.TemporaryDirectory(prefix="seep-test-") as folder:
        argv = [PYTHON, str(PROGRAM), case, str(IMPORT_S[case]),
                str(WORK_S[case])]
        run = subprocess.run(argv, env=environment(folder, DENSE),
                             cwd=folder, capture_output=True, check=True,
                             timeout=IMPORT_S[case] + WORK_S[case] + SLACK_S)
        path, = recordings_in(folder)
        process, = json.loads(consistency.start(
            "report", "--json", str(path)).stdout)["processes"]
        return Outcome(json.loads(run.stdout), process,
                       consistency.start("report", str(path)).stdout,
                       consistency.start("report", "--holding",
                                         str(path)).stdout,
                       consistency.contradictions_in(path))


@pytest.fixture(scope="module")
def outcomes():
    """{case: outcome}, all side by side."""
    with concurrent.futures.ThreadPoolExecutor(len(WORK_S)) as pool:
        return dict(zip(WORK_S, pool.map(run_case, WORK_S)))


@pytest.mark.parametrize("case", WORK_S)
def test_no_report_says_anything_against_itself(outcomes, case):
    assert not outcomes[case].against


def test_a_leak_after_long_imports_is_one_with_its_own_rate(outcomes):
    graph = outcomes["graph"]
    began = graph.began
    rate = graph.truth["kept_bytes"] / graph.truth["work_s"]

    assert graph.verdict == "leak", graph.text
    assert began["by"] == "imports"
    assert began["from_s"] <= began["at_s"]
    growth = graph.of("step")["growth_bytes_per_s"]
    # it is the mean since half of the run, if the imports took longer
    assert 0.6 * rate < growth["estimate"] < 1.2 * rate, graph.text
    assert "the work began" in graph.text


def test_a_leak_that_begins_late_is_no_steady_process(outcomes):
    late = outcomes["late"]

    assert late.verdict in ("leak", "suspect"), late.text
    assert late.of("step")["class"] in ("leak", "suspect")
    assert late.began["from_s"] == 0


def test_a_cache_that_is_full_is_named_and_no_import(outcomes):
    cache = outcomes["cache"]

    assert cache.verdict == "bounded", cache.text
    assert cache.began["by"] == "imports"
    assert "Node.__init__" in cache.process["verdict"]["sentence"]


def test_imports_alone_are_no_growth(outcomes):
    clean = outcomes["clean"]

    assert clean.verdict == "steady", clean.text


def test_mostly_imports_are_told_as_that(outcomes):
    brief = outcomes["brief"]

    assert brief.verdict == "insufficient-data", brief.text
    assert brief.began["by"] == "imports"
    # on a busy machine what its memory does comes first
    assert re.search("of imports is too little|private memory grows",
                     " ".join(brief.text.split())), brief.text
    assert not [site for site in brief.process["sites"]
                if site["class"] in ("leak", "suspect")], brief.text


def test_a_thread_that_leaks_while_others_import_is_found(outcomes):
    thread = outcomes["thread"]

    # on a busy machine its rate is not one, and it may be a cache that fills
    assert thread.verdict in ("leak", "suspect"), thread.text
    assert thread.of("step")["class"] in ("leak", "suspect")
    assert "Node.__init__" in thread.process["verdict"]["sentence"]


@pytest.mark.parametrize("case", [case for case in WORK_S if IMPORT_S[case]])
def test_imports_are_one_row(outcomes, case):
    outcome = outcomes[case]
    imported = sum(site["live_bytes"] for site in outcome.process["sites"]
                   if site["start_up"])

    assert imported > IMPORTED_BYTES
    for text in (outcome.text, outcome.holding):
        assert text.count("imports and start-up") == 1
        assert "<listcomp>" not in text
        assert " NAMES" not in text


@pytest.mark.parametrize("case", ["graph", "cache", "late"])
def test_the_most_that_is_held_stands_in_both_tables(outcomes, case):
    outcome = outcomes[case]

    for text in (outcome.text, outcome.holding):
        table = text.partition("\n\n")[2].partition("\n\n")[0]
        assert "Node.__init__" in table
    rows = [line for line in outcome.holding.partition("\n\n")[2].splitlines()
            if "Node.__init__" in line or "imports and start-up" in line]
    held = outcome.of("step")["live_bytes"]
    imported = sum(site["live_bytes"] for site in outcome.process["sites"]
                   if site["start_up"])
    assert ("Node.__init__" in rows[0]) == (held > imported), outcome.holding


@pytest.mark.parametrize("row", [
    "step  4 MiB  pool.cc:31 net::Pool::take > operator new < main",
    "step  4 MiB  a.py:3 f > pool.cc:31 net::Pool::take\u2026",
    "step  4 MiB  pool.cc:31 net::Po\u2026"])
def test_a_name_that_is_cut_off_is_in_its_row(row):
    where = "pool.cc:31 net::Pool<int>::take(std::map<int, int> const&)"

    assert consistency.is_shown(where, f" class  live\n {row}\n")
    assert consistency.is_named(where, "all of it at pool.cc:31 "
                                       "net::Pool::take.")
    assert not consistency.is_shown("pool.cc:32 net::drop", f"{row}\n")


def test_what_holds_is_text_only(tmp_path):
    run = subprocess.run([SEEP, "report", "--holding", "--json", tmp_path],
                         capture_output=True, check=False)
    assert run.returncode == 2
    assert b"--holding cannot be combined with --json" in run.stderr
