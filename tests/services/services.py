# SPDX-License-Identifier: LGPL-2.1-or-later
"""The services, how each is started, and how it ends.

What is true of a service it says itself; here is only what to start. A leak
is ended as the OOM killer would, unless it is a tidy twin; the others end in
either way.
Invariant: a row has a name of its own, "KIND@END".
"""
import dataclasses
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).parent
PYTHON = "/usr/bin/python3"
LIBRARIES = pathlib.Path("/usr/lib") / f"{os.uname().machine}-linux-gnu"
JEMALLOC = LIBRARIES / "libjemalloc.so.2"

NATIVE_LEAKS = """
    descriptor pictures churn-keeps each-request error-path tenant hourly
    late-35 late-60 flood timer rising-floor accelerates slows cache-and-leak
    strings sessions cycle thread-locals drained-tail spells orphans faint
    vector table hash arena lists-10-1.125 lists-40-1.5 lists-200-2
    lists-200-1.125 history reload-keeps map-keeps bare-map unjoined
    sqlite-statements sqlite-rows""".split()
NATIVE_CLEAN = """
    churn collected daily falling tails queue pool one-off reload start-up
    idle batch stops burst holes workers lru-15 lru-50 lru-75 ring-88
    catalogue aged doubles-to-bound plans reload-frees map-ring
    sqlite-file""".split()
PYTHON_LEAKS = """
    py-dict-cache py-closures py-lru-none py-tracebacks py-never-awaited
    py-tasks py-log-buffer py-arrays py-concatenate py-global-list
    py-thread-locals py-finalizers py-ctypes py-futures py-bytearray py-cycles
    py-lender py-sqlite py-bursts py-late-35 py-job py-slow-consumer
    py-metrics py-plugins py-streams""".split()
PYTHON_CLEAN = """
    py-lru-20 py-lru-70 py-aged py-ring py-array-churn py-json-churn
    py-imports py-collected py-reload py-one-off py-quiet py-batch py-daily
    py-awaited py-log-flushed py-burst py-sqlite-bounded""".split()
ONNX_LEAKS = ["onnx-outputs", "onnx-sessions"]
ONNX_CLEAN = ["onnx-infers", "onnx-reloads"]
# Which run with SEEP_PYTHON=objects, too: blocks too small for malloc.
OBJECT_LEAKS = ["py-lender", "py-global-list", "py-metrics", "py-plugins",
                "py-streams"]
OBJECT_CLEAN = ["py-lru-20", "py-json-churn", "py-collected", "py-one-off"]
# Which also end tidily, and how.
TIDY = {
    "each-request": ["return", "drain"], "error-path": ["exit"],
    "sessions": ["return"], "strings": ["exit"], "late-35": ["sigterm"],
    "vector": ["return"], "arena": ["exit"], "lists-40-1.5": ["return"],
    "map-keeps": ["return"], "thread-locals": ["return"],
    "rising-floor": ["sigterm"], "pictures": ["drain"],
    "py-dict-cache": ["return", "worker"], "py-arrays": ["sigterm"],
    "py-global-list": ["return"], "py-closures": ["pytest"],
    "py-lru-none": ["exit"], "py-thread-locals": ["return"],
    "redis-grows": ["sigterm"], "onnx-outputs": ["return"],
}
# The ten that every change is judged by: fast, clear and steady.
FEW = ("each-request@kill", "each-request@return", "vector@kill",
       "tenant@kill", "reload-keeps@kill", "churn@return", "lru-15@return",
       "collected@kill", "py-dict-cache@sigterm", "py-lru-20@return")


@dataclasses.dataclass(frozen=True)
class Service:
    """A kind of service, and an end of it."""
    kind: str
    end: str
    leaks: bool
    program: str
    beneath: pathlib.Path = None  # an allocator that is preloaded as well
    objects: bool = False         # of Python are recorded

    @property
    def name(self):
        """Of its rows."""
        more = ("+jemalloc" if self.beneath
                else "+objects" if self.objects else "")
        return f"{self.kind}{more}@{self.end}"

    def command(self, programs, seconds, seed):
        """What to start."""
        argv = {"native": [programs / "service"],
                "python": [PYTHON, HERE / "py_service.py"],
                "redis": [PYTHON, HERE / "redis_service.py"]}[self.program]
        return [*map(str, argv), self.kind, str(seconds), str(seed), self.end]


def rows(kinds, leaks, program):
    """A leak is killed; of the others, each second returns."""
    for number, kind in enumerate(kinds):
        ends = ["kill" if leaks or number % 2 else "return"]
        for end in ends + TIDY.get(kind, []):
            yield Service(kind, end, leaks, program)


def has_onnx():
    """May be found by PYTHONPATH, too."""
    return subprocess.run([PYTHON, "-c", "import onnxruntime"],
                          stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def every_service():
    """All that can run on this machine."""
    found = [*rows(NATIVE_LEAKS, True, "native"),
             *rows(PYTHON_LEAKS, True, "python"),
             *rows(NATIVE_CLEAN, False, "native"),
             *rows(PYTHON_CLEAN, False, "python"),
             Service("py-dict-cache", "sigterm", True, "python")]
    for kinds, leaks in (OBJECT_LEAKS, True), (OBJECT_CLEAN, False):
        found += [Service(kind, "kill", leaks, "python", objects=True)
                  for kind in kinds]
    if JEMALLOC.exists():
        found += [Service("sessions", "kill", True, "native", JEMALLOC),
                  Service("lru-50", "kill", False, "native", JEMALLOC)]
    if has_onnx():
        found += [*rows(ONNX_LEAKS, True, "python"),
                  *rows(ONNX_CLEAN, False, "python")]
    if shutil.which("redis-server"):
        found += [*rows(["redis-grows"], True, "redis"),
                  Service("redis-bounded", "kill", False, "redis")]
    return found
