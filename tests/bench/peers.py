#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What profilers of memory cost on the same work, in one run.

Who is installed takes part: heaptrack, LeakSanitizer's allocator, the heap
profilers of jemalloc and tcmalloc, valgrind's dhat, and memray of the
interpreter that runs the work in Python. Each is compared with its own plain
run (a profiler inside an allocator with that allocator), by turns, whose order
is turned around each time; turns go on until each ratio is known to a tenth, or
for as many as are allowed. Who samples does more of the work, so that what is
measured is not how it begins (seep samples densely then).

Columns: wall is of the work, cpu of the process while it works, and what is
added to a unit of it; all is processor time of every process of the command,
from its start to its end; RSS is the most of the process, above the plain one;
disk is what it left.
Invariant: it judges nothing but that what runs under seep ends well; what does
not differ from 1 by more than its interval is said to be within noise.
"""
import argparse
import dataclasses
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")
FOREIGN = ("LD_PRELOAD", "MALLOC_CONF", "HEAPPROFILE", "LSAN_OPTIONS")
# of Student's t, 95 %, by degrees of freedom; a normal one beyond
STUDENT = (math.inf, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26,
           2.23, 2.20, 2.18, 2.16, 2.14)
NORMAL = 1.96
SETTLED = 0.10  # the interval of a ratio, from its middle
LIMIT_S = 300  # a run


@dataclasses.dataclass
class Work:
    """What is done: so much of it by who records all, and by who samples."""
    name: str
    amount: int
    long: int
    module: str = None  # of Python, without which there is none
    python: bool = False


WORKS = [
    Work("pair", 2_000_000, 200_000_000),
    Work("deep", 400_000, 20_000_000),
    Work("churn", 800_000, 40_000_000),
    Work("server", 20_000, 1_000_000),
    Work("json", 1_000, 20_000, python=True),
    Work("numpy", 1_000, 10_000, "numpy", True),
    Work("import-torch", 1, 1, "torch", True),
    Work("redis", 100_000, 500_000),
]


def library(name):
    """A shared object that a package has brought, or None."""
    for folder in LIBRARIES:
        path = pathlib.Path(folder) / name
        if path.exists():
            return str(path)
    return None


def preload(name, **variables):
    """A way to run under a library, if it is there."""
    path = library(name)
    if path is None:
        return None
    return lambda argv, folder: (argv, {
        "LD_PRELOAD": path,
        **{key: value.format(folder=folder)
           for key, value in variables.items()}})


def seep(path, **variables):
    return lambda argv, folder: (argv, {
        "LD_PRELOAD": path, "SEEP_OUT": f"{folder}/%p.%n.seep", **variables})


def behind(program, *options):
    """A way to run behind a program, if it is there."""
    if shutil.which(program) is None:
        return None
    return lambda argv, folder: (
        [program, *(option.format(folder=folder) for option in options),
         *argv], {})


def memray(argv, folder):
    """Of a script alone: python SCRIPT ARGUMENTS."""
    return ([argv[0], "-m", "memray", "run", "-q", "-o", f"{folder}/memray",
             *argv[1:]], {})


def nothing(argv, _folder):
    return argv, {}


LONG = ("plain", "seep", "jemalloc", "jemalloc prof")


def peers_of(ours, work, interpreter):
    """{name: (how to run, whom it is compared with)}, of those that are here.
    """
    found = {
        "plain": (nothing, None),
        "seep": (seep(ours), "plain"),
        "plain, less": (nothing, None),
        "seep exact": (seep(ours, SEEP_SAMPLE="1"), "plain, less"),
        "heaptrack": (behind("heaptrack", "-o", "{folder}/heaptrack"),
                      "plain, less"),
        "LSan": (preload("liblsan.so.0", LSAN_OPTIONS="exitcode=0"),
                 "plain, less"),
        "jemalloc": (preload("libjemalloc.so.2"), None),
        "jemalloc prof": (preload(
            "libjemalloc.so.2",
            MALLOC_CONF="prof:true,prof_final:true,prof_prefix:{folder}/je"),
            "jemalloc"),
        "tcmalloc": (preload("libtcmalloc.so.4"), None),
        "tcmalloc heap": (preload("libtcmalloc.so.4",
                                  HEAPPROFILE="{folder}/tc"), "tcmalloc"),
        "dhat": (behind("valgrind", "--tool=dhat",
                        "--dhat-out-file={folder}/dhat"), "plain, less"),
    }
    if work.python and has_module(interpreter, "memray"):
        found["memray"] = (memray, "plain, less")
    return {name: peer for name, peer in found.items() if peer[0] is not None}


def has_module(interpreter, name):
    return subprocess.run(
        [interpreter, "-c", "import sys, importlib.util as u; "
         f"sys.exit(u.find_spec({name!r}) is None)"],
        check=False).returncode == 0


def environment(variables):
    kept = {key: value for key, value in os.environ.items()
            if key not in FOREIGN and not key.startswith("SEEP_")}
    return kept | variables


def disk_bytes(folder):
    return sum(path.stat().st_blocks * 512
               for path in pathlib.Path(folder).rglob("*") if path.is_file())


def wait(process):
    """@return processor seconds of the command and all that it waited for"""
    end = time.monotonic() + LIMIT_S
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid != 0:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime
        if time.monotonic() > end:
            process.kill()
        time.sleep(0.005)


def start(argv, variables):
    return subprocess.Popen(argv, env=environment(variables),
                            stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def run_program(how, argv, folder):
    """A program that writes what it took into OUT."""
    out = pathlib.Path(folder) / "out"
    command, variables = how([*argv, str(out)], folder)
    process = start(command, variables)
    all_s = wait(process)
    if process.returncode != 0 or not out.exists():
        return None
    wall, cpu, rss = map(float, out.read_text(encoding="ascii").split())
    return {"wall_s": wall / 1e9, "cpu_s": cpu / 1e9, "all_s": all_s,
            "rss_bytes": rss * 1024}


def ask_redis(socket, *words):
    return subprocess.run(["redis-cli", "-s", socket, *words], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True).stdout


def info_of(socket):
    return dict(line.split(":", 1)
                for line in ask_redis(socket, "info").splitlines()
                if ":" in line)


def cpu_of(info):
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def run_redis(how, argv, folder):
    """A server on a socket of its own, and redis-benchmark against it."""
    socket = f"{folder}/socket"
    command, variables = how(
        ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "",
         "--dir", folder], folder)
    process = start(command, variables)
    end = time.monotonic() + LIMIT_S
    while (not os.path.exists(socket)
           or "PONG" not in ask_redis(socket, "ping")):
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            wait(process)
            return None
        time.sleep(0.05)
    before = cpu_of(info_of(socket))
    begin = time.monotonic()
    subprocess.run(["redis-benchmark", "-s", socket, "-t", "set,lpush,hset",
                    "-n", str(int(argv[1]) // 3), "-r", "10000", "-d", "200",
                    "-q"], check=True, stdout=subprocess.DEVNULL,
                   timeout=LIMIT_S)
    wall = time.monotonic() - begin
    info = info_of(socket)
    ask_redis(socket, "shutdown", "nosave")
    return {"wall_s": wall, "cpu_s": cpu_of(info) - before,
            "all_s": wait(process),
            "rss_bytes": float(info["used_memory_rss"])}


def run_once(work, how, argv, amount):
    runner = run_redis if work.name == "redis" else run_program
    with tempfile.TemporaryDirectory(prefix="seep-bench-") as folder:
        seen = runner(how, [*argv, str(amount)], folder)
        if seen is not None:
            seen["disk_bytes"] = disk_bytes(folder)
        return seen


def ratio_of(pairs):
    """(mean, low, high) of with / without, by their logarithms."""
    logs = [math.log(with_it / without) for with_it, without in pairs]
    mean = statistics.mean(logs)
    if len(logs) < 2:
        return math.exp(mean), 0, math.inf
    student = STUDENT[len(logs) - 1] if len(logs) <= len(STUDENT) else NORMAL
    half = student * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def is_settled(ratio):
    mean, low, high = ratio
    return high - mean <= SETTLED * mean and mean - low <= SETTLED * mean


def ratios_of(peers, taken, name):
    """{column: ratio} of a peer, by the turns in which both ran."""
    with_whom = peers[name][1]
    return {column: ratio_of([
        (max(one[column], 1e-9), max(other[column], 1e-9))
        for one, other in zip(taken[name], taken[with_whom])])
        for column in ("wall_s", "cpu_s", "all_s")}


def amount_of(work, name, scale):
    return max(1, int((work.long if name in LONG else work.amount) * scale))


def take_turns(work, peers, argv, options):
    """{name: [what a turn took, ...]}; who fails once takes no more part."""
    taken = {name: [] for name in peers}
    left = list(peers)
    for turn in range(options.turns):
        for name in left if turn % 2 == 0 else left[::-1]:
            seen = run_once(work, peers[name][0], argv,
                            amount_of(work, name, options.scale))
            if seen is None:
                taken[name] = []
            else:
                taken[name].append(seen)
        left = [name for name in left if taken[name]
                and (peers[name][1] is None or taken[peers[name][1]])]
        compared = [name for name in left if peers[name][1] is not None]
        if turn > 0 and all(
                is_settled(ratio) for name in compared
                for ratio in ratios_of(peers, taken, name).values()):
            break
    return {name: taken[name] for name in left}


def figures(work, peers, taken, name, scale):
    """One row: what a peer took, and more than whom it is compared with."""
    amount = amount_of(work, name, scale)

    def least(of, column):
        return min(seen[column] for seen in taken[of])

    row = {"work": work.name, "peer": name, "turns": len(taken[name]),
           "ns_a_unit": least(name, "cpu_s") / amount * 1e9,
           "all_s": least(name, "all_s")}
    other = peers[name][1]
    if other is None:
        return row
    row["compared_with"] = other
    row["added_ns_a_unit"] = row["ns_a_unit"] - least(
        other, "cpu_s") / amount * 1e9
    row["rss_added_bytes"] = statistics.median(
        seen["rss_bytes"] for seen in taken[name]) - statistics.median(
        seen["rss_bytes"] for seen in taken[other])
    row["disk_bytes"] = max(seen["disk_bytes"] for seen in taken[name])
    for column, ratio in ratios_of(peers, taken, name).items():
        row[column.replace("_s", "_ratio")] = dict(
            zip(("mean", "low", "high"), ratio))
    return row


def number(value):
    return (f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100
            else f"{min(value, 9999):.0f}")


def show_ratio(ratio):
    mean, low, high = ratio["mean"], ratio["low"], ratio["high"]
    if low <= 1 <= high:
        return "within noise"
    if is_settled((mean, low, high)):
        return number(mean)
    return f"{number(low)} to {number(high)}"


def show(rows):
    for row in rows:
        cells = ["", "", "", "", "", ""]
        if "compared_with" in row:
            cells = [f"{row['added_ns_a_unit']:+.0f}",
                     *(show_ratio(row[f"{column}_ratio"])
                       for column in ("wall", "cpu", "all")),
                     f"{row['rss_added_bytes'] / 2**20:+.1f}",
                     f"{row['disk_bytes'] / 2**20:.1f}"]
        print(f"{row['work']:>12} {row['peer']:14} {row['ns_a_unit']:11.0f} "
              f"{cells[0]:>9} {cells[1]:>14} {cells[2]:>14} {cells[3]:>14} "
              f"{cells[4]:>8} {cells[5]:>7}", flush=True)


def command_of(work, options):
    """Without AMOUNT and OUT; None: what it needs is not here."""
    if work.module and not has_module(options.python, work.module):
        return None
    if work.name == "redis":
        return ["redis"] if shutil.which("redis-server") else None
    program = ([options.python, str(HERE / "workloads.py")] if work.python
               else [str(options.build / "tests/bench/workloads")])
    return [*program, work.name]


def measure(work, options):
    argv = command_of(work, options)
    if argv is None:
        print(f"{work.name:>12} is left out: {work.module or 'redis-server'} "
              "is not installed", flush=True)
        return []
    ours = options.build.resolve() / "src/preload/libseep.so"
    peers = peers_of(str(ours), work, options.python)
    if options.peers:
        peers = {name: peer for name, peer in peers.items()
                 if name in options.peers or name.startswith("plain")}
    taken = take_turns(work, peers, argv, options)
    for name in sorted(set(peers) - set(taken)):
        print(f"{work.name:>12} {name:14} did not end well", flush=True)
        options.failed = options.failed or name.startswith("seep")
    rows = [figures(work, peers, taken, name, options.scale)
            for name in taken]
    show(rows)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path,
                        help="of libseep.so and workloads.c")
    parser.add_argument("--works", type=lambda text: text.split(","),
                        default=[work.name for work in WORKS])
    parser.add_argument("--peers", type=lambda text: text.split(","),
                        help="and plain")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--turns", type=int, default=9,
                        help="at most, of each")
    parser.add_argument("--scale", type=float, default=1,
                        help="so much of the work")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    options.failed = False
    print(f"{'work':>12} {'':14} {'cpu ns/unit':>11} {'added':>9} "
          f"{'wall':>14} {'cpu':>14} {'all cpu':>14} {'RSS MiB':>8} "
          f"{'disk':>7}", flush=True)
    rows = []
    for work in WORKS:
        if work.name in options.works:
            rows += measure(work, options)
    if options.json:
        pathlib.Path(options.json).write_text(
            json.dumps({"schema": "seep-bench/1", "rows": rows}, indent=1),
            encoding="ascii")
    return options.failed


if __name__ == "__main__":
    sys.exit(main())
