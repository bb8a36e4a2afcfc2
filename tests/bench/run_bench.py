#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a malloc/free pair costs under the preload, against the plain program.

Plain, sampled, exact and heaptrack take turns in one run, several times; the
least disturbed run of each is printed, in processor time, what it adds to the
plain one, and the median of what it adds turn by turn.
Invariant: it measures and judges nothing.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

OURS = ("LD_PRELOAD", "SEEP_OUT", "SEEP_SAMPLE", "SEEP_SIZE")
PAIRS = {"plain": 2000000, "sampled": 2000000, "exact": 100000,
         "heaptrack": 100000}


def run_once(how, program, preload, depth, threads):
    """(wall ns a pair, cpu ns a pair, longest single malloc in ns)"""
    with tempfile.TemporaryDirectory(prefix="seep-bench-") as folder:
        out = pathlib.Path(folder) / "out"
        argv = [program, str(depth), str(threads), str(PAIRS[how]), str(out)]
        variables = {k: v for k, v in os.environ.items() if k not in OURS}
        if how in ("sampled", "exact"):
            variables["LD_PRELOAD"] = preload
            variables["SEEP_OUT"] = f"{folder}/%p.%n.seep"
            if how == "exact":
                variables["SEEP_SAMPLE"] = "1"
        elif how == "heaptrack":
            argv = ["heaptrack", "-o", f"{folder}/heaptrack", *argv]
        subprocess.run(argv, env=variables, check=True, timeout=300,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return [float(word) for word in
                out.read_text(encoding="ascii").split()]


def row(plain, taken):
    """The figures of one kind of run, against the plain one's."""
    wall = min(run[0] for run in taken)
    cpu = min(run[1] for run in taken)
    added = cpu - min(run[1] for run in plain)
    median = statistics.median(with_us[1] - without[1] for with_us, without
                               in zip(taken, plain))
    worst = max(run[2] for run in taken) / 1000
    return (f"{cpu:12.1f} {added:+9.1f} {median:+9.1f} {wall:13.1f} "
            f"{worst:16.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("preload")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    hows = ["plain", "sampled", "exact"]
    if shutil.which("heaptrack"):
        hows.append("heaptrack")
    print(f"{'depth':>5} {'threads':>7} {'how':>10} {'cpu ns/pair':>12} "
          f"{'added':>9} {'median':>9} {'wall ns/pair':>13} "
          f"{'worst malloc us':>16}")
    for depth in (5, 40):
        for threads in (1, 4):
            taken = {how: [] for how in hows}
            for _ in range(options.rounds):
                for how in hows:
                    taken[how].append(run_once(
                        how, options.program, options.preload, depth,
                        threads))
            for how in hows:
                print(f"{depth:5} {threads:7} {how:>10} "
                      + row(taken["plain"], taken[how]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
