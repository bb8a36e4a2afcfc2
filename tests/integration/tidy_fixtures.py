# SPDX-License-Identifier: LGPL-2.1-or-later
"""Twins: the same service, ended by SIGKILL and in each tidy way.

Invariant: a process that is started here is waited for, with a limit.
"""
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import tempfile

from conftest import PROGRAMS, SEEP, environment, recordings_in
from crowd import crowd

PYTHON = "/usr/bin/python3"
HERE = pathlib.Path(__file__).parent / "programs"
EXACT, DENSE = 1, 64 << 10
EXACT_FILE_BYTES = 64 << 20
SECONDS = 44
SLACK_S = 120
COMMANDS = {"tidy": [PROGRAMS / "tidy"],
            "python": [PYTHON, HERE / "tidy_service.py"]}
ENDS = {"tidy": ("return", "static", "exit", "sigterm", "drain"),
        "python": ("main", "sys.exit", "sigterm", "worker", "pytest")}
ABRUPT = "abrupt"


@dataclasses.dataclass(frozen=True)
class Job:
    """One service and how it ends."""
    program: str
    kind: str
    end: str
    sample: int

    @property
    def name(self):
        """As a test calls it."""
        mode = "exact" if self.sample == EXACT else "64KiB"
        return f"{self.program}-{self.kind}-{self.end}-{mode}"

    @property
    def abrupt(self):
        """The twin that was killed."""
        return dataclasses.replace(self, end=ABRUPT)


@dataclasses.dataclass
class Outcome:
    """What the report says of the service, and what the service says."""
    truth: dict
    process: dict

    @property
    def verdict(self):
        return self.process["verdict"]

    @property
    def first(self):
        return self.process["sites"][0]

    @property
    def rate(self):
        return self.verdict["growth_bytes_per_s"]


def read_report(folder, end):
    """Of the service itself: a worker's parent leaves a recording, too."""
    done = subprocess.run([SEEP, "report", "--json", "--by", "line",
                           *recordings_in(folder)],
                          capture_output=True, timeout=SLACK_S, check=False)
    assert done.returncode in (0, 3, 4), done.stderr
    processes = [each for each in json.loads(done.stdout)["processes"]
                 if each["process"]["fork"] == (end == "worker")]
    assert len(processes) == 1, [each["process"] for each in processes]
    return processes[0]


def run_job(job):
    """Run one service to its end and read what it left."""
    with tempfile.TemporaryDirectory(prefix="seep-test-") as folder:
        argv = [*map(str, COMMANDS[job.program]), job.kind, job.end,
                str(SECONDS)]
        more = {"SEEP_SIZE": EXACT_FILE_BYTES} if job.sample == EXACT else {}
        with subprocess.Popen(
                argv, env=environment(folder, job.sample, **more), cwd=folder,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True) as process:
            try:
                out, err = process.communicate(timeout=SECONDS + SLACK_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        expected = -signal.SIGKILL if job.end == ABRUPT else 0
        assert (process.returncode, err) == (expected, b""), (argv, err)
        return Outcome(json.loads(out), read_report(folder, job.end))


def run_all(jobs):
    """{job: outcome}, all side by side."""
    with crowd(len(jobs)) as pool:
        futures = {job: pool.submit(run_job, job) for job in jobs}
        return {job: future.result() for job, future in futures.items()}
