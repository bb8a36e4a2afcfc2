#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What look-ups cost under the preload where no CUDA driver is loaded.

Without and with take turns. Judged is the lower quartile of their ratios, for
what is no name of the driver's: a machine that changes its pace between two
turns moves some ratios up and some down, a dearer look-up moves all of them up.
Invariant: no time is judged, they belong to a machine.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

KINDS = ("dlsym, found", "dlsym, not found", "dlsym, a driver's name",
         "dlopen and dlclose")
RATIO_MAX = {"dlsym, found": 1.25, "dlsym, not found": 1.25}


def run_once(program, preload):
    with tempfile.TemporaryDirectory(prefix="seep-bench-") as folder:
        variables = {name: value for name, value in os.environ.items()
                     if name not in ("LD_PRELOAD", "SEEP_OUT", "SEEP_SAMPLE")}
        if preload:
            variables["LD_PRELOAD"] = preload
            variables["SEEP_OUT"] = f"{folder}/%p.%n.seep"
        done = subprocess.run([program], env=variables, check=True,
                              stdout=subprocess.PIPE, timeout=300)
    return [float(word) for word in done.stdout.split()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("preload")
    parser.add_argument("--rounds", type=int, default=16)
    options = parser.parse_args()
    rounds = [(run_once(options.program, None),
               run_once(options.program, options.preload))
              for _ in range(options.rounds)]
    failed = False
    for i, kind in enumerate(KINDS):
        ratio = statistics.quantiles((with_us[i] / without[i]
                                      for without, with_us in rounds),
                                     n=4)[0]
        print(f"{kind:24} {min(r[0][i] for r in rounds):9.1f} ns "
              f"{min(r[1][i] for r in rounds):9.1f} ns   {ratio:.2f}")
        failed = failed or ratio > RATIO_MAX.get(kind, ratio)
    return failed


if __name__ == "__main__":
    sys.exit(main())
