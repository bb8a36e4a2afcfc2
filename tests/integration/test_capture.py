# SPDX-License-Identifier: LGPL-2.1-or-later
"""The walker against libunwind, frame by frame, in real programs.

A preloaded library captures at each malloc with both and counts in a file.
Every frame up to the walker's cut must be equal, and the share of cut stacks
is bounded, program by program, near what was measured.

SEEP_TEST_PYTHONS adds interpreters; SEEP_TEST_LONG=1 grows larger trees.
"""
import functools
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import pytest

BUILD = pathlib.Path(os.environ.get("SEEP_BUILD", "build"))
PROGRAMS = BUILD / "tests/integration/programs"
ORACLE = PROGRAMS / "libcapture_oracle.so"
SHAPES = ["sorted", "exceptions", "shapes", "signals", "interrupts",
          "alternate_stack", "threads", "coroutine", "unloads", "storm"]
# Deeper than the limit is no failure of the walker: both end there.
CUTS = ["none", "depth", "no object", "no rule", "expression", "register",
        "bounds", "order", "malformed", "disabled"]
FRAMES_MAX = 128
EXAMPLE_WORDS = 3 + 2 * FRAMES_MAX
TIMEOUT_S = 240
LONG = os.environ.get("SEEP_TEST_LONG", "") not in ("", "0")

pytestmark = pytest.mark.skipif(not ORACLE.exists(),
                                reason="built without libunwind")


class Counts:
    """The sum over all processes of a run."""

    def __init__(self, folder):
        self.compared = self.equal = self.shorter = self.differing = 0
        self.sooner = self.frames = 0
        self.cuts = dict.fromkeys(CUTS, 0)
        self.examples = []
        for path in pathlib.Path(folder).glob("counts.*"):
            self.add(path.read_bytes())

    def add(self, data):
        words = struct.unpack(f"<{len(data) // 8}Q", data)
        self.compared += words[0]
        self.equal += words[1]
        self.shorter += words[2]
        self.differing += words[3]
        self.sooner += words[4]
        self.frames += words[5]
        for name, count in zip(CUTS, words[6:]):
            self.cuts[name] += count
        for i in reversed(range(8)):
            at = 24 + i * EXAMPLE_WORDS
            ours, theirs, cut = words[at:at + 3]
            if ours != 0:
                self.examples.append(
                    (CUTS[cut], [hex(pc) for pc in words[at + 3:][:ours]],
                     [hex(pc) for pc in words[at + 3 + FRAMES_MAX:][:theirs]]))

    @property
    def cut_share(self):
        """Of the stacks that libunwind does not cut at the same depth."""
        cut = self.compared - self.cuts["none"] - self.cuts["depth"]
        return cut / max(self.compared, 1)

    def __str__(self):
        cuts = {name: n for name, n in self.cuts.items()
                if n and name != "none"}
        return (f"{self.compared} stacks, {self.frames} frames, "
                f"{self.equal} equal, {self.shorter} cut short, "
                f"{self.differing} differ, {self.sooner} end sooner, "
                f"cut {self.cut_share:.3%} {cuts}")


def oracle_environment(folder, every, **more):
    variables = {k: v for k, v in os.environ.items()
                 if not k.startswith("SEEP_")}
    variables.update(LD_PRELOAD=str(ORACLE), SEEP_ORACLE_EVERY=str(every),
                     SEEP_ORACLE_OUT=f"{folder}/counts",
                     OPENBLAS_NUM_THREADS="2", OMP_NUM_THREADS="2", **more)
    return variables


def judge(folder, name, at_least, cut_at_most, may_end=False):
    counts = Counts(folder)
    print(f"{name}: {counts}")
    assert counts.differing == 0, counts.examples[:2]
    assert counts.compared >= at_least
    assert may_end or counts.sooner == 0, counts.examples[-2:]
    assert counts.cut_share <= cut_at_most, counts.examples[:2]
    return counts


@functools.lru_cache(None)
def plainly(argv, cwd):
    """Once for all ways to look at it: its result may not change anyway."""
    done = subprocess.run(argv, cwd=cwd, capture_output=True,
                          timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.returncode, done.stdout


def compare(argv, at_least, cut_at_most, every=1, cwd=None,
            may_end=False, **more):
    """Run a program to its end under the oracle, unchanged in its result."""
    with tempfile.TemporaryDirectory(prefix="seep-oracle-") as folder:
        plain = plainly(tuple(argv), cwd)
        seen = subprocess.run(argv, cwd=cwd, capture_output=True,
                              env=oracle_environment(folder, every, **more),
                              timeout=TIMEOUT_S, check=False)
        assert (seen.returncode, seen.stdout) == plain, seen.stderr
        return judge(folder, pathlib.Path(argv[0]).name, at_least,
                     cut_at_most, may_end)


@pytest.mark.parametrize("build", ["capture_shapes_o3", "capture_shapes_o1",
                                   "capture_shapes_fp", "capture_shapes_cf",
                                   "capture_shapes_hole"])
@pytest.mark.parametrize("shape", SHAPES)
def test_compiled_shapes(shape, build):
    program = PROGRAMS / build
    if not program.exists():
        pytest.skip("no C++ compiler")
    # An interrupt may hit an instruction at which no rule can be told.
    bound = {"interrupts": 0.01}
    compare([str(program), shape], 1, bound.get(shape, 0))


def built(name):
    """Path of a program that needs a C++ compiler to be there."""
    program = PROGRAMS / name
    if not program.exists():
        pytest.skip("not built")
    return str(program)


@pytest.mark.parametrize("build", ["o3", "o1", "fp"])
@pytest.mark.parametrize("part", ["tree", "threads", "forks"])
def test_stacks_that_change_at_random(part, build):
    """What consecutive captures share may be anything from all to nothing."""
    nodes = 300000 if LONG else 20000
    compare([built(f"capture_tree_{build}"), str(nodes), part], nodes, 0)


@pytest.mark.parametrize("build", ["o3", "o1"])
def test_coroutines_of_the_language(build):
    compare([built(f"capture_resume_{build}")], 10000, 0)


# What no compiler wrote: (stacks at least, share of cut ones at most)
FORMS = {"rsp": (100, 0), "rbx": (100, 0), "r12": (100, 0),
         "loaded": (100, 0), "frame_pointer": (100, 1), "bare": (100, 1),
         "contexts": (3000, 0), "alternate": (2000, 0)}


@pytest.mark.parametrize("build", ["o3", "o1"])
@pytest.mark.parametrize("form", FORMS)
def test_code_that_no_compiler_wrote(form, build):
    compare([built(f"capture_forms_{build}"), form], *FORMS[form])


@pytest.mark.parametrize("build", ["o3", "o1"])
@pytest.mark.parametrize("what, at_least, cut_at_most", [
    ("step_code", 10000, 0), ("step_exception", 60000, 0.002),
    ("step_jump", 1900, 0)])
def test_code_that_is_stopped_behind_each_instruction(what, at_least,
                                                      cut_at_most, build):
    """No instruction has a rule that is not followed to the same end."""
    compare([built(f"capture_forms_{build}"), what], at_least, cut_at_most,
            SEEP_ORACLE_ANYWHERE="1")


OPENBLAS = """
import numpy
matrix = numpy.random.RandomState(1).rand(400, 400)
for _ in range(3):
    inverse = numpy.linalg.inv(matrix)
    product = matrix @ inverse
    numpy.linalg.svd(matrix[:100, :100])
print(round(product.trace()))
"""

TORCH = """
import torch
torch.manual_seed(1)
torch.set_num_threads(2)
model = torch.nn.Sequential(torch.nn.Linear(300, 400), torch.nn.ReLU(),
                            torch.nn.LayerNorm(400), torch.nn.Linear(400, 5))
words = torch.rand(64, 300)
for _ in range(8):
    loss = model(words).square().mean()
    loss.backward()
    try:
        model(words[:, :7])
    except RuntimeError:
        pass
script = torch.jit.trace(torch.nn.Linear(9, 9), torch.rand(2, 9))
print(loss.item() > 0, torch.linalg.svd(torch.rand(90, 90))[1].shape,
      script(torch.rand(3, 9)).shape)
"""

GREENLETS = """
import greenlet, json
def deep(depth, level):
    if depth:
        return [depth] + deep(depth - 1, level)
    json.dumps({str(i): [i] * 9 for i in range(40)})
    greenlet.getcurrent().parent.switch(level)
    return sorted((json.loads("[1, 2, {}]") for _ in range(5)), key=repr)
def run(level):
    for i in range(4):
        deep(level * 5 + i, level)
    if level % 3 == 0:
        raise ValueError(level)
seen = 0
waiting = [greenlet.greenlet(run) for _ in range(9)]
while waiting:
    for level, one in enumerate(list(waiting)):
        try:
            deep_from = one.switch(level)
        except ValueError:
            seen += 1
        if one.dead:
            waiting.remove(one)
print(seen)
"""


def debian_python(module):
    """The interpreter that the distribution's modules belong to."""
    python = "/usr/bin/python3"
    if not os.path.exists(python) or subprocess.run(
            [python, "-c", f"import {module}"], check=False,
            capture_output=True).returncode != 0:
        pytest.skip(f"{module} is not installed")
    return python


@pytest.mark.parametrize("module, code, at_least, every", [
    ("numpy", OPENBLAS, 10000, 1),
    ("torch", TORCH, 1000000 if LONG else 100000, 1 if LONG else 10),
    ("greenlet", GREENLETS, 2000, 1)], ids=["numpy", "torch", "greenlet"])
def test_libraries_of_python(module, code, at_least, every):
    # Where a greenlet began its stack ends: what lies above is of another.
    compare([debian_python(module), "-c", code], at_least, 0.001, every,
            may_end=module == "greenlet")


# Of OpenBLAS some is written by hand, with no rules at all.
@pytest.mark.parametrize("module, code, at_least, cut_at_most", [
    ("numpy", OPENBLAS, 50, 0.1), ("torch", TORCH, 500, 0.02),
    ("greenlet", GREENLETS, 10, 0.1)], ids=["numpy", "torch", "greenlet"])
def test_libraries_of_python_at_any_instruction(module, code, at_least,
                                                cut_at_most):
    compare([debian_python(module), "-c", code], at_least, cut_at_most,
            every=0, may_end=module == "greenlet",
            SEEP_ORACLE_TICK_US="1000", SEEP_ORACLE_ANYWHERE="1")


@functools.lru_cache(None)
def interpreters():
    """Each CPython of this machine, built with frame pointers or without."""
    places = [*os.environ.get("SEEP_TEST_PYTHONS", "").split(":"),
              "/usr/bin/python3"]
    for root in os.environ.get("PYENV_ROOT"), pathlib.Path.home() / ".pyenv":
        if root:
            places += sorted(pathlib.Path(root).glob(
                "versions/3.*/bin/python3"))
    return sorted({os.path.realpath(place) for place in filter(None, places)
                   if os.access(place, os.X_OK)})


INTERPRETER = """
import ctypes, json, re, sys, threading
sys.setrecursionlimit(5000)
def deep(n):
    return [n] + deep(n - 1) if n else []
print(len(deep(300)), len(json.dumps([{"a": i} for i in range(3000)])))
def failing(i):
    try:
        int("x" * (i + 1))
    except ValueError as error:
        re.compile("a%db*" % i).match(str(error))
for i in range(300):
    failing(i)
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(
    lambda left, right: len(json.dumps([1] * 40)) * 0)
ctypes.CDLL(None).qsort(ctypes.create_string_buffer(64), 16, 4, compare)
class Late:
    def __del__(self):
        json.loads("[1, 2]")
def body():
    for i in range(50):
        failing(i)
        Late()
threads = [threading.Thread(target=body) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


@pytest.mark.parametrize("path", interpreters())
def test_interpreters(path):
    compare([path, "-c", INTERPRETER], 1500, 0.001, PYTHONMALLOC="malloc",
            every=3)
    compare([path, "-c", INTERPRETER], 1000, 0.001)


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_compiler(language):
    driver = {"c": "gcc", "c++": "g++"}[language]
    if shutil.which(driver) is None:
        pytest.skip(f"{driver} is not installed")
    source = {"c": "#include <stdio.h>\nint main(void) {return puts(\"a\");}",
              "c++": "#include <map>\n#include <string>\n"
                     "int main() {std::map<std::string, int> m;"
                     " m[\"a\"] = 1; return m.size() != 1;}"}[language]
    with tempfile.TemporaryDirectory(prefix="seep-oracle-") as folder:
        path = pathlib.Path(folder) / ("a." + language.replace("+", "p"))
        path.write_text(source, encoding="ascii")
        compare([driver, "-O2", "-c", str(path), "-o", f"{folder}/a.o"],
                300, 0.001, every=5, cwd=folder)


@pytest.mark.parametrize("argv, at_least, cut_at_most", [
    (["perl", "-e", "my %h; $h{$_} = \"a$_\" for 1..20000;"
      " print scalar(sort keys %h), \"\\n\""], 1000, 0.001),
    (["sqlite3", ":memory:", "create table t(a, b); with recursive n(i) as"
      " (select 1 union all select i + 1 from n where i < 3000) insert into t"
      " select i, hex(randomblob(9)) from n; create index x on t(b);"
      " select count(*) from t order by b;"], 300, 0.001),
    (["sh", "-c", "tar -c /usr/include/linux | xz -1 | wc -c >/dev/null"],
     50, 0.001),
    # These two compile their code at run time: it has frame pointers at most.
    (["node", "-e", "let a = []; for (let i = 0; i < 1e5; i++) {"
      " a.push({x: 's' + i}); if (i % 1000 == 0) a = []; }"
      " console.log(Buffer.alloc(1e6).length)"], 1000, 0.01),
    # 4 % of its walks end in such code on a busy machine, under 1 % else.
    (["java", "-version"], 1000, 0.1),
], ids=["perl", "sqlite3", "tar and xz", "node", "java"])
def test_programs(argv, at_least, cut_at_most):
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    compare(argv, at_least, cut_at_most, every=4)


def test_a_library_in_the_place_of_another():
    program = PROGRAMS / "unload"
    if not program.exists():
        pytest.skip("not built")
    with tempfile.TemporaryDirectory(prefix="seep-oracle-") as folder:
        seen = subprocess.run(
            [program, PROGRAMS / "libcapture_first.so",
             PROGRAMS / "libcapture_second.so", "20", f"{folder}/same"],
            capture_output=True, timeout=TIMEOUT_S, check=False,
            env=oracle_environment(folder, 1))
        assert seen.stdout == b"wrong 0\n"
        same = json.loads(pathlib.Path(f"{folder}/same").read_text("ascii"))
        assert same["same"] > 0, "never at the same address: nothing is shown"
        judge(folder, "unload", 20 * 20, 0)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_redis_under_load():
    if shutil.which("redis-server") is None:
        pytest.skip("redis is not installed")
    port = str(free_port())
    with tempfile.TemporaryDirectory(prefix="seep-oracle-") as folder:
        server = subprocess.Popen(
            ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save",
             "", "--appendonly", "no", "--dir", folder],
            env=oracle_environment(folder, 7), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 30
            while subprocess.run(["redis-cli", "-p", port, "ping"],
                                 capture_output=True, timeout=30,
                                 check=False).stdout != b"PONG\n":
                assert time.monotonic() < deadline, "no answer"
                time.sleep(0.05)
            subprocess.run(["redis-benchmark", "-p", port, "-n", "2000", "-c",
                            "10", "-q", "-t", "set,get,lpush,lrange_100,zadd"],
                           capture_output=True, timeout=120, check=True)
            subprocess.run(["redis-cli", "-p", port, "eval",
                            "local t = {} for i = 1, 200 do t[i] ="
                            " cjson.encode({a = i}) end return #t", "0"],
                           capture_output=True, timeout=30, check=True)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)
        judge(folder, "redis-server", 500, 0.001)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-v", "-s"]))
