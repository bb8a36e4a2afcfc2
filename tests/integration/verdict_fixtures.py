# SPDX-License-Identifier: LGPL-2.1-or-later
"""Services whose verdict is known, and how to run them side by side.

Invariant: a process that is started here is waited for, with a limit.
SEEP_TEST_KEEP=FOLDER keeps what they recorded.
"""
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import consistency
from conftest import (PRELOAD, PROGRAMS, SEEP, environment, frame_functions,
                      recordings_in)
from crowd import crowd

PYTHON = "/usr/bin/python3"
HERE = pathlib.Path(__file__).parent / "programs"
PROGRAM, SERVICE, REDIS = "verdict_cases", "service", "redis"
FILES = "files"
COMMANDS = {
    PROGRAM: [PROGRAMS / "verdict_cases"],
    SERVICE: [PYTHON, HERE / "verdict_service.py"],
    REDIS: [PYTHON, HERE / "verdict_redis.py"],
    FILES: [PYTHON, HERE / "file_service.py"],
}
EXACT, DENSE, DEFAULT = 1, 64 << 10, 512 << 10
EXACT_FILE_BYTES = 64 << 20
SECONDS = 40
SLACK_S = 120
NOT_GROWING = ("steady", "bounded")
FILLED = ("warming", "plateau", "step", "turnover", "steady", "sawtooth")
GIVEN_BACK = ("steady", "sawtooth", "turnover")


@dataclasses.dataclass(frozen=True)
class Case:
    """A service and what is right to say of it."""
    name: str
    verdicts: tuple
    site: str = None      # function of the site that it is about
    classes: tuple = ()   # of that site, if told; None: it may not be there
    leaks: bool = False
    samples: tuple = (EXACT, DENSE)
    seconds: int = SECONDS
    watched: bool = False  # started by `seep run`, which looks from outside
    program: str = PROGRAM


CASES = [
    Case("leak", ("leak",), "leak_request", ("leak",), True),
    Case("leak-small", ("leak",), "leak_small", ("leak",), True),
    Case("leak-load", ("leak",), "leak_under_load", ("leak",), True),
    Case("leak-sawtooth", ("leak",), "leak_collected", ("leak",), True),
    Case("leak-third", ("leak",), "leak_later", ("leak",), True),
    # At the edge of what is called a leak after one run: it has half of the
    # work behind it, and may be a ramp that goes on to a bound.
    Case("leak-halfway", ("leak", "suspect"), "leak_later",
         ("leak", "suspect"), True),
    Case("cache", ("bounded",), "fill_cache", FILLED),
    Case("lru", NOT_GROWING, "renew_oldest", GIVEN_BACK),
    Case("sawtooth", ("steady",), "make_garbage", GIVEN_BACK),
    Case("model", NOT_GROWING, "load_weights", ("step", "steady")),
    Case("pool", ("bounded",), "grow_pool", ("plateau", "step", "warming")),
    Case("quiet", ("steady",), "start_up",
         ("step", "steady", "insufficient-data"), samples=(EXACT,)),
    # Of 44 samples three quarters are of the start: in one run of three it
    # seems to have waited ever since.
    Case("quiet", ("steady", "insufficient-data"), "start_up",
         ("step", "steady", "insufficient-data"), samples=(DENSE,)),
    Case("retention", ("allocator-retention",), "do_burst", GIVEN_BACK,
         watched=True),
    Case("fragmentation", ("fragmentation",), "read_reply", GIVEN_BACK,
         watched=True),
    Case("mapping", ("unexplained",), watched=True),
    Case("past-malloc", ("unexplained",), samples=(EXACT,)),
    Case("past-malloc", ("unexplained",), samples=(DENSE,), watched=True),
    # glibc's malloc counts it as its own arena, when it goes on behind it
    Case("sbrk", ("leak", "suspect"), "extend_heap", ("leak", "suspect"),
         True, watched=True),
    Case("segments", ("leak",), "attach_segment", ("leak",), True),
    Case("reserved", ("steady",), "map_buffer", ("minor",)),
    Case("given-back", ("steady",), "map_buffer", ("minor",),
         samples=(DENSE,)),
    Case("part-touched", ("leak",), "map_buffer", ("leak",), True),
    Case("all-touched", ("leak",), "map_buffer", ("leak",), True),
    Case("written-elsewhere", ("leak",), "map_shared", ("leak",), True),
    Case("shared-reserved", ("steady",), "map_shared", ("minor",)),
    Case("arena", ("unexplained",), "map_buffer"),
    Case("unwritten", ("leak",), "allocate_buffer", ("leak",), True),
    Case("beside-unwritten", ("leak",), "read_reply", ("leak",), True),
    Case("written-later", ("leak",), "allocate_buffer", ("leak",), True),
    Case("buffer-fills", ("unexplained",), "allocate_buffer",
         samples=(EXACT,)),
    Case("buffer-fills", ("unexplained",), "allocate_buffer",
         samples=(DENSE,), watched=True),
    Case("buffer-freed", ("unexplained",), "allocate_buffer", watched=True),
    # a page each, however few bytes of what glibc mapped are asked for still
    Case("trimmed", ("leak",), "keep_head", ("leak",), True),
    Case("trimmed-freed", NOT_GROWING),
    Case("churn-most", ("leak",), "leak_in_churn", ("leak",), True,
         (DEFAULT,), 60),
    # one run in fifty samples no block of it; the process grows all the same
    Case("churn-little", ("insufficient-data", "suspect"), "leak_in_churn",
         ("insufficient-data", None), False, (DEFAULT,), 60),
    Case("leak", ("leak",), None, (), True, program=SERVICE),
    Case("cache", NOT_GROWING, program=SERVICE),
    Case("queue", NOT_GROWING, program=SERVICE),
    Case("grow", ("leak",), None, (), True, program=REDIS),
    Case("bounded", NOT_GROWING, program=REDIS),
]
NEEDED = {PROGRAM: "sh", SERVICE: PYTHON, REDIS: "redis-server"}
JOBS = [(case, sample) for case in CASES for sample in case.samples
        if shutil.which(NEEDED[case.program])]


def job_name(job):
    """As a test and a table call it."""
    case, sample = job
    mode = {EXACT: "exact", DENSE: "64KiB", DEFAULT: "512KiB"}[sample]
    name = case.name
    if case.program != PROGRAM:
        name = f"{case.program}-{name}"
    return f"{name}-{mode}"


@dataclasses.dataclass
class Outcome:
    """One service as the report of its recording has it."""
    status: int
    truth: dict
    process: dict
    contradictions: list

    @property
    def verdict(self):
        return self.process["verdict"]["class"]

    @property
    def sites(self):
        return self.process["sites"]

    def site(self, function):
        """First site in reading order with that function; None."""
        return next((site for site in self.sites
                     if function in frame_functions(site)), None)


def command_of(job, folder, seed):
    """What to start, and with which variables."""
    case, sample = job
    argv = [*map(str, COMMANDS[case.program]), case.name, str(case.seconds),
            str(seed)]
    more = {"SEEP_SIZE": EXACT_FILE_BYTES} if sample == EXACT else {}
    if case.watched:
        return ([str(SEEP), "run", "--quiet", "--no-report", "-o",
                 f"{folder}/", "--sample", str(sample), "--", *argv],
                environment(SEEP_PRELOAD=PRELOAD, **more))
    return argv, environment(folder, sample, **more)


def trim(process):
    """Without what is large and not looked at: a run keeps them all."""
    for site in process["sites"]:
        del site["series"]
        site["frames"] = frame_functions(site)
    return process


def read_report(folder, program):
    """Of the program itself: what drives it may leave a recording, too. And
    what it says against itself."""
    done = subprocess.run([SEEP, "report", "--json", *recordings_in(folder)],
                          capture_output=True, timeout=SLACK_S, check=False)
    assert done.returncode in (0, 3, 4), done.stderr
    processes = json.loads(done.stdout)["processes"]
    if program == REDIS:
        processes = [process for process in processes
                     if "redis" in process["process"]["exe"]]
    assert len(processes) == 1, [each["process"] for each in processes]
    against = consistency.contradictions_in(
        next(path for path in recordings_in(folder)
             if len(recordings_in(folder)) == 1
             or "redis" in path.name))
    return trim(processes[0]), against


def run_job(job, seed):
    """Run one service to its end and read what it left."""
    with tempfile.TemporaryDirectory(prefix="seep-test-") as folder:
        argv, variables = command_of(job, folder, seed)
        process = subprocess.Popen(argv, env=variables, cwd=folder,
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE,
                                   start_new_session=True)
        try:
            out, err = process.communicate(timeout=job[0].seconds + SLACK_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        assert (process.returncode, err) == (0, b""), (argv, err)
        keep = os.environ.get("SEEP_TEST_KEEP")
        if keep:
            shutil.copytree(folder, f"{keep}/{job_name(job)}.{seed}")
        return Outcome(process.returncode, json.loads(out or b"{}"),
                       *read_report(folder, job[0].program))


def run_all(jobs, seed):
    """{job: outcome}, all side by side."""
    with crowd(len(jobs)) as pool:
        futures = {job: pool.submit(run_job, job, seed) for job in jobs}
        return {job: future.result() for job, future in futures.items()}
