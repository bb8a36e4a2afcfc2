# SPDX-License-Identifier: LGPL-2.1-or-later
"""Python programs that leak, named by line with the right rate; clean ones.

Six run at a time. A line that is told by some 600 sampled blocks is not
always told to be a leak, so a program that fails runs again; one that does not
leak is never told to be one that does. A line that gives nothing back is told
by its even pace, which a busy machine does not leave it: one line of a process
that was late may stay a suspect, in whatever it runs again.
SEEP_TEST_LONG=1 runs longer, several times, and prints what was seen.
SEEP_TEST_KEEP=FOLDER keeps what was recorded.
"""
import collections
import dataclasses
import json
import math
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from conftest import (LONG, PRELOAD, SEEP, execute, frame_functions,
                      recordings_in)
from crowd import crowd
from figures import differences as of_figures
from test_python_frames import known
from verdict_fixtures import trim

PROGRAM = pathlib.Path(__file__).parent / "programs" / "python_leak.py"
PYTHON = "/usr/bin/python3"
EXACT, DENSE = 1, 4 << 10
REPETITIONS = 5 if LONG else 1
SECONDS = 40 if LONG else 31  # no verdict before 30
AGAIN_SECONDS = (31, 60)
LATE_S = 0.1  # to be called late: five ticks
AT_ONCE = 6
SLACK_S = 120
COVERED_SHARE = 0.88  # of intervals that promise 0.95
NOT_GROWING = ("steady", "bounded")
PROCESSES = {"fork": 3}
LENDER = "serve"  # its lines make and free what Python lends
LENT_SLACK = 1.1
THREAD_NAME = "leaky-worker"


@dataclasses.dataclass(frozen=True)
class Job:
    """One program in one mode."""
    group: str
    sample: int = EXACT
    malloc: str = ""  # PYTHONMALLOC
    python: str = PYTHON

    def __str__(self):
        mode = "exact" if self.sample == EXACT else "sampled"
        python = self.python.replace("/", "_") * (self.python != PYTHON)
        return "-".join(filter(None, (self.group.replace(",", "+"),
                                      self.malloc, python, mode)))


LEAKS, CLEAN = "code,run,native", "clean,import"
JOBS = [Job(LEAKS), Job(LEAKS, DENSE), Job("code", malloc="malloc"),
        Job("fork"), Job(CLEAN), Job(CLEAN, DENSE)]
if LONG:
    JOBS += [Job("fork", DENSE), Job("import", DENSE),
             Job("code", DENSE, "malloc"), Job(CLEAN, EXACT, "malloc"),
             *(Job(group, sample) for group in ("code", "run", "native")
               for sample in (EXACT, DENSE)),
             *(Job("code", DENSE, python=path) for path in known())]


def asked_share(site):
    """What was asked for, of what its blocks take of memory."""
    live = site["live_bytes"]
    return site["requested"]["live_bytes"] / live if live else 1


@dataclasses.dataclass
class Line:
    """A planted line and the sites that the report has of it.

    Its rate is at least that over the life of the process, less what it may
    have been lent, and at most that while it served: imports keep nothing, and
    are work all the same.
    """
    name: str
    least: float  # bytes a second
    most: float
    sites: list

    @property
    def leaks(self):
        return any(site["class"] == "leak" for site in self.sites)

    @property
    def is_suspect(self):
        return any(site["class"] == "suspect" for site in self.sites)

    @property
    def is_split(self):
        """Is it more than one row of a function and a space?"""
        rows = [(site["where"], site["space"]) for site in self.sites]
        return len(set(rows)) < len(rows)

    def is_of_thread(self, name):
        """Is that where it leaks?"""
        return any(site["thread"] == name for site in self.sites)

    @property
    def interval(self):
        """(estimate, low) in bytes a second, of all its sites, of what was
        asked for: that is what was planted."""
        told = [(site["growth_bytes_per_s"], asked_share(site))
                for site in self.sites if site["growth_bytes_per_s"]]
        estimate = sum(each["estimate"] * share for each, share in told)
        error = math.hypot(*((each["estimate"] - each["low"]) * share
                             for each, share in told))
        return estimate, estimate - error

    @property
    def error(self):
        """Distance from the planted rate, in half intervals."""
        estimate, low = self.interval
        distance = max(0, self.least - estimate, estimate - self.most)
        return distance / max(estimate - low, 0.02 * self.most)


@dataclasses.dataclass
class Process:
    """One process as the report has it, beside what it says of itself."""
    document: dict
    truth: dict
    differences: list  # between the ways to tell it

    @property
    def verdict(self):
        return self.document["verdict"]["class"]

    @property
    def lines(self):
        life_s = self.document["process"]["duration_s"]
        return [Line(name,
                     (planted["bytes"] - planted["lent_bytes"]) / life_s,
                     planted["bytes"] / self.truth["served_s"],
                     [site for site in self.document["sites"]
                      if is_at(site, planted["where"])])
                for name, planted in self.truth["lines"].items()]

    @property
    def alarms(self):
        """What is told to leak, and was not planted. Of what Python lent, the
        lines that had allocated it may leak as much."""
        planted = [line["where"] for line in self.truth["lines"].values()]
        lent = (LENT_SLACK / self.truth["served_s"]
                * sum(line["lent_bytes"]
                      for line in self.truth["lines"].values()))
        alarms = []
        for site in self.document["sites"]:
            if site["class"] != "leak" or any(is_at(site, where)
                                              for where in planted):
                continue
            lent -= site["growth_bytes_per_s"]["low"]
            if LENDER not in frame_functions(site) or lent < 0:
                alarms.append(site["where"])
        return alarms

    def faults(self, is_excused=False):
        """All that is not as it should be; if @is_excused but for one line of a
        process that was late, which is told to be a suspect."""
        found = [f"false alarm: {where}" for where in self.alarms]
        if not self.truth["lines"]:
            return found + [self.verdict] * (
                self.verdict not in NOT_GROWING)
        is_excused = (is_excused and self.truth["late_s"] > LATE_S and
                      sum(not line.leaks for line in self.lines) == 1)
        if self.verdict != "leak" and not (
                is_excused and self.verdict == "suspect"):
            found.append(f"verdict is {self.verdict}")
        first = self.document["sites"][0]
        if not any(is_at(first, line["where"])
                   for line in self.truth["lines"].values()):
            found.append(f"first is {first['where']}")
        for line in self.lines:
            if not line.leaks:
                if is_excused and line.is_suspect:
                    continue
                found.append(f"{line.name} is "
                             f"{[site['class'] for site in line.sites]}")
            elif line.is_split:
                found.append(f"{line.name} is {len(line.sites)} rows")
            elif line.name == "thread" and not line.is_of_thread(THREAD_NAME):
                found.append("the thread has no name")
            elif line.error > 3:
                found.append(f"{line.name} grows by {line.least:.0f} to "
                             f"{line.most:.0f}, told {line.interval}")
        return found


def is_at(site, where):
    """Is [base name, line] the place that the site is charged to?"""
    place = site["where"].split(" ")[0]
    return ("/" + place).endswith(f"/{where[0]}:{where[1]}")


def command_of(job, folder, seed, seconds):
    """Under `seep run`, as a user would."""
    return [SEEP, "run", "--quiet", "--no-report", "-o", f"{folder}/",
            "--sample", job.sample, "--", job.python, PROGRAM, job.group,
            seconds, seed]


def variables_of(job):
    more = {"PYTHONMALLOC": job.malloc} if job.malloc else {}
    return {"SEEP_PRELOAD": PRELOAD, "PYTHONDONTWRITEBYTECODE": 1, **more}


def read_reports(folder):
    """{pid: process}, of a report by line."""
    done = subprocess.run([SEEP, "report", "--json", "--by", "line",
                           *recordings_in(folder)],
                          capture_output=True, timeout=SLACK_S, check=False)
    assert done.returncode in (0, 3, 4), done.stderr
    return {process["process"]["pid"]: trim(process)
            for process in json.loads(done.stdout)["processes"]}


def run_job(job, seed, seconds):
    """Run one program to its end; its processes."""
    with tempfile.TemporaryDirectory(prefix="seep-test-") as folder:
        done = execute(command_of(job, folder, seed, seconds), cwd=folder,
                       timeout=seconds + SLACK_S, **variables_of(job))
        assert (done.status, done.stderr) == (0, b""), (job, done.stderr)
        keep = os.environ.get("SEEP_TEST_KEEP")
        if keep:
            shutil.copytree(folder, f"{keep}/{job}.{seed}")
        truths = {truth["pid"]: truth for truth in
                  map(json.loads, done.stdout.splitlines())}
        reports = read_reports(folder)
        differences = [each for path in recordings_in(folder)
                       if job == Job(LEAKS) for each in of_figures(path)]
    assert len(reports) == len(truths) == PROCESSES.get(job.group, 1), reports
    return [Process(report, truths[pid], differences)
            for pid, report in reports.items()]


def run_all(jobs, seed, seconds=SECONDS):
    """{job: its processes}"""
    with crowd(AT_ONCE) as pool:
        futures = {job: pool.submit(run_job, job, seed, seconds)
                   for job in jobs}
        return {job: future.result() for job, future in futures.items()}


def faults_of(processes, is_excused=False):
    return [fault for process in processes
            for fault in process.faults(is_excused)]


def alarms_of(processes):
    return [alarm for process in processes for alarm in process.alarms]


def table(seen):
    """One line for a job and a planted line: what was said how often."""
    rows = collections.defaultdict(list)
    for job, runs in seen.items():
        for process in (process for each in runs for process in each):
            if not process.truth["lines"]:
                rows[f"{job}"].append(process.verdict)
            for line in process.lines:
                rows[f"{job} {line.name}"].append(
                    f"{'leak' if line.leaks else '-'} "
                    f"{line.interval[0] / line.most - 1:+.3f} "
                    f"[{line.error:.1f}]" if line.sites else "none")
    return "\n".join(f"{name:32} {'  '.join(said)}"
                     for name, said in rows.items())


@pytest.fixture(scope="module")
def outcomes():
    """{job: its runs, each a list of processes}"""
    if not SEEP.exists():
        pytest.skip("the tool is not built")
    seen = {job: [] for job in JOBS}
    for seed in range(1, REPETITIONS + 1):
        for job, processes in run_all(JOBS, seed).items():
            seen[job].append(processes)
        print(f"after {seed}\n{table(seen)}", flush=True)
    for seed, seconds in enumerate(() if LONG else AGAIN_SECONDS, 2):
        again = [job for job, runs in seen.items()
                 if faults_of(runs[0]) and not alarms_of(runs[0])]
        print("again:", {str(job): (faults_of(seen[job][0]), [
            process.truth["late_s"] for process in seen[job][0]])
            for job in again})
        for job, processes in run_all(again, seed, seconds).items():
            seen[job] = [processes]
    return seen


@pytest.mark.parametrize("job", JOBS, ids=str)
def test_lines_that_leak_are_named_with_their_rates(outcomes, job):
    wrong = [faults_of(processes, not LONG) for processes in outcomes[job]]
    assert sum(map(bool, wrong)) <= REPETITIONS // 5, wrong


@pytest.mark.parametrize("job", JOBS, ids=str)
def test_a_line_that_does_not_leak_is_never_a_leak(outcomes, job):
    assert [alarms_of(processes) for processes in outcomes[job]
            if alarms_of(processes)] == []


def test_a_leak_is_the_same_wherever_it_is_told(outcomes):
    assert [process.differences for processes in outcomes[Job(LEAKS)]
            for process in processes] == [[]] * REPETITIONS


def test_intervals_cover_the_planted_rates(outcomes):
    errors = [line.error for runs in outcomes.values() for processes in runs
              for process in processes for line in process.lines if line.leaks]
    covered = sum(error <= 1 for error in errors)
    print("covered", covered, "of", len(errors))
    assert errors
    if LONG:
        assert covered >= COVERED_SHARE * len(errors)
