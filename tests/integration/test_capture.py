# SPDX-License-Identifier: LGPL-2.1-or-later
"""The walker against libunwind, frame by frame, in real programs.

A preloaded library captures at each malloc with both and counts in a file.
Every frame up to the walker's cut must be equal, and the share of cut stacks
is bounded, program by program, near what was measured.
"""
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

pytestmark = pytest.mark.skipif(not ORACLE.exists(),
                                reason="built without libunwind")


class Counts:
    """The sum over all processes of a run."""

    def __init__(self, folder):
        self.compared = self.equal = self.shorter = self.differing = 0
        self.frames = 0
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
        self.frames += words[4]
        for name, count in zip(CUTS, words[5:]):
            self.cuts[name] += count
        for i in range(min(words[21], 8)):
            at = 22 + i * EXAMPLE_WORDS
            ours, theirs, cut = words[at:at + 3]
            self.examples.append(
                (CUTS[cut], [hex(pc) for pc in words[at + 3:at + 3 + ours]],
                 [hex(pc) for pc in words[at + 3 + FRAMES_MAX:
                                          at + 3 + FRAMES_MAX + theirs]]))

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
                f"{self.differing} differ, cut {self.cut_share:.3%} {cuts}")


def oracle_environment(folder, every):
    variables = {k: v for k, v in os.environ.items()
                 if not k.startswith("SEEP_")}
    variables.update(LD_PRELOAD=str(ORACLE), SEEP_ORACLE_EVERY=str(every),
                     SEEP_ORACLE_OUT=f"{folder}/counts",
                     OPENBLAS_NUM_THREADS="2")
    return variables


def judge(folder, name, at_least, cut_at_most):
    counts = Counts(folder)
    print(f"{name}: {counts}")
    assert counts.differing == 0, counts.examples[:2]
    assert counts.compared >= at_least
    assert counts.equal + counts.shorter == counts.compared
    assert counts.cut_share <= cut_at_most, counts.examples[:2]
    return counts


def compare(argv, at_least, cut_at_most, every=1, cwd=None):
    """Run a program to its end under the oracle, unchanged in its result."""
    with tempfile.TemporaryDirectory(prefix="seep-oracle-") as folder:
        plain = subprocess.run(argv, cwd=cwd, capture_output=True,
                               timeout=TIMEOUT_S, check=False)
        seen = subprocess.run(argv, cwd=cwd, capture_output=True,
                              env=oracle_environment(folder, every),
                              timeout=TIMEOUT_S, check=False)
        assert (seen.returncode, seen.stdout) == (plain.returncode,
                                                  plain.stdout), seen.stderr
        assert plain.returncode == 0, plain.stderr
        return judge(folder, pathlib.Path(argv[0]).name, at_least, cut_at_most)


@pytest.mark.parametrize("build", ["capture_shapes_o3", "capture_shapes_o1",
                                   "capture_shapes_fp",
                                   "capture_shapes_hole"])
@pytest.mark.parametrize("shape", SHAPES)
def test_compiled_shapes(shape, build):
    program = PROGRAMS / build
    if not program.exists():
        pytest.skip("no C++ compiler")
    # On a stack that is not the thread's own the walk ends at the page; an
    # interrupt may hit an instruction at which no rule can be told.
    bound = {"alternate_stack": 1, "coroutine": 1, "interrupts": 0.02}
    compare([str(program), shape], 1, bound.get(shape, 0))


def test_numpy_with_openblas_threads():
    code = """
import numpy
matrix = numpy.random.RandomState(1).rand(400, 400)
for _ in range(3):
    inverse = numpy.linalg.inv(matrix)
    product = matrix @ inverse
    numpy.linalg.svd(matrix[:100, :100])
print(round(product.trace()))
"""
    python = "/usr/bin/python3"
    probe = subprocess.run([python, "-c", "import numpy"], check=False,
                           capture_output=True)
    if probe.returncode != 0:
        pytest.skip("numpy is not installed")
    compare([python, "-c", code], 1000, 0.001)


def test_python_with_deep_recursion_and_exceptions():
    code = """
import json, re, sys
sys.setrecursionlimit(5000)
def deep(n):
    return [n] + deep(n - 1) if n else []
print(len(deep(900)), len(json.dumps([{"a": i} for i in range(3000)])))
for i in range(300):
    try:
        int("x" * (i + 1))
    except ValueError as error:
        re.compile(f"a{i}b*").match(str(error))
"""
    compare(["/usr/bin/python3", "-c", code], 1000, 0.001)


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
    # These two compile their code at run time, and it has no rules.
    (["node", "-e", "let a = []; for (let i = 0; i < 1e5; i++) {"
      " a.push({x: 's' + i}); if (i % 1000 == 0) a = []; }"
      " console.log(Buffer.alloc(1e6).length)"], 1000, 0.05),
    (["java", "-version"], 1000, 0.6),
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
