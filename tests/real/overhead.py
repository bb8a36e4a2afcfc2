# SPDX-License-Identifier: LGPL-2.1-or-later
"""What recording costs the encode loop: with and without, by turns.

    overhead.py --python PYTHON [--turns 5] [--batches 60] [--also memray]

Invariant: one run at a time; the same batches in each; medians are compared.
"""
import argparse
import pathlib
import statistics
import sys
import tempfile

import run

PROGRAM = run.HERE / "programs" / "encode.py"
LAYERS = ["--dtype", "float32", "--layers"]
WALL, RSS = "work_s", "rss_last_bytes"


def ways(folder, python):
    """{name: what goes before the program}."""
    return {
        "plain": [python],
        "seep": [run.SEEP, "run", "--quiet", "--no-report", "-o",
                 f"{folder}/%p.seep", "--", python],
        "exact": [run.SEEP, "run", "--quiet", "--no-report", "--exact", "-o",
                  f"{folder}/%p.seep", "--", python],
        "memray": [python, "-m", "memray", "run", "-q", "-f", "-o",
                   f"{folder}/memray"],
        "memray-native": [python, "-m", "memray", "run", "--native", "-q",
                          "-f", "-o", f"{folder}/memray"],
        "tracemalloc": [python, "-X", "tracemalloc=25"],
    }


def measure(words, batches):
    """What the program itself says of its loop."""
    done = run.run([*words, PROGRAM, *LAYERS, "--batches", batches],
                   run.LIMIT_S, env=run.variables({}))
    return run.truth_in(done)


def parse():
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--also", default="",
                        help="of exact, memray, memray-native, tracemalloc")
    return parser.parse_args()


def main():
    """The table. @return an exit status: 0 within 5 % of time, 3 % of RSS"""
    options = parse()
    names = ["plain", "seep", *filter(None, options.also.split(","))]
    taken = {name: [] for name in names}
    for _ in range(options.turns):
        for name in names:
            with tempfile.TemporaryDirectory(prefix="seep-real-") as folder:
                taken[name].append(measure(
                    ways(pathlib.Path(folder), options.python)[name],
                    options.batches))
    ratios = {}
    print("| | loop | RSS at its end | a request, median |\n"
          "| --- | --- | --- | --- |")
    for name in names:
        middle = {key: statistics.median(each[key] for each in taken[name])
                  for key in (WALL, RSS, "median_s")}
        plain = {key: statistics.median(each[key] for each in taken["plain"])
                 for key in middle}
        ratios[name] = [middle[key] / plain[key] - 1 for key in (WALL, RSS)]
        print(f"| {name} | {middle[WALL]:.1f} s ({ratios[name][0]:+.1%}) | "
              f"{middle[RSS] / 2**20:.0f} MiB ({ratios[name][1]:+.1%}) | "
              f"{1000 * middle['median_s']:.0f} ms |")
    return 0 if ratios["seep"][0] <= 0.05 and ratios["seep"][1] <= 0.03 else 1


if __name__ == "__main__":
    sys.exit(main())
