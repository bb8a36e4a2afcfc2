#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a process feels of being asked who holds what, at nice 19.

Two workers do the same work turn by turn; of every two turns the first is asked
in one ("asked"). The second works alone meanwhile ("alone"), or beside a
question to the first, which waits ("beside"): what any program at nice 19 does
to it on this machine. Printed: latencies of an operation, and the median of the
ratios of such turns to the turns before.
Invariant: both print the same sums, and a worker that waits has the same pages
after it was asked as before.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

NAMES = ("p50", "p99", "p99.9")
BOUND = 3.0  # of the larger ratio of the other worker, whom nobody asks
OURS = ("LD_PRELOAD", "SEEP_OUT", "SEEP_SAMPLE", "SEEP_SIZE")


class Worker:
    def __init__(self, options, folder):
        variables = {k: v for k, v in os.environ.items() if k not in OURS}
        variables |= {"LD_PRELOAD": options.preload, "SEEP_SAMPLE": "4K",
                      "SEEP_OUT": f"{folder}/%p.seep", "SEEP_SIZE": "64M"}
        self.seep = options.seep
        self.process = subprocess.Popen(
            [options.worker, str(options.mib)], env=variables, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n"
        self.recording = pathlib.Path(folder, f"{self.process.pid}.seep")
        self.sums = []

    def find_site(self):
        text = subprocess.run(
            [self.seep, "report", "--json", "--sites", "0", "--no-series",
             "--no-held", self.recording], check=True,
            stdout=subprocess.PIPE).stdout
        return next(site["id"] for site in
                    json.loads(text)["processes"][0]["sites"]
                    if " keep_one" in (site["where"] or ""))

    def ask(self, site):
        return subprocess.Popen(
            ["nice", "-n", "19", self.seep, "held", "--json", "--site", site,
             self.recording], stdout=subprocess.PIPE)

    def begin(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def end(self):
        *figures, work = self.process.stdout.readline().split()
        self.sums.append(work)
        return [int(figure) for figure in figures]

    def pages(self):
        """What it has: /proc/PID/statm, and each page that is there."""
        folder = pathlib.Path(f"/proc/{self.process.pid}")
        there = {}
        with open(folder / "pagemap", "rb") as pagemap:
            for line in (folder / "maps").read_text().splitlines():
                start, end = (int(part, 16) for part in
                              line.split()[0].split("-"))
                if start < 1 << 47:
                    pagemap.seek(start // 4096 * 8)
                    entries = pagemap.read((end - start) // 4096 * 8)
                    there[start] = sum(byte >> 7 for byte in entries[7::8])
        return (folder / "statm").read_text(), there

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def holder_of(asker):
    text, _ = asker.communicate()
    assert asker.returncode == 0
    held, = json.loads(text)["sites"]
    return held["held"]["groups"][0]["holder"], held["held"]["cpu_s"]


def turn(worker, site=None, other=None):
    """One turn; with a site, of the worker that is asked, that is asked from
    before the turn to behind it: the worker itself, or the other."""
    asker = (other or worker).ask(site) if site else None
    worker.begin()
    figures = worker.end()
    if asker:
        holder, _ = holder_of(asker)
        assert holder == "kept", holder
    return figures


def compare(asked, alone, site, turns):
    ratios = {"asked": [], "beside": [], "alone": []}
    plain = []
    for _ in range(turns):
        for name, worker, how in (("asked", asked, (site,)),
                                  ("beside", alone, (site, asked)),
                                  ("alone", alone, ())):
            before = turn(worker)
            now = turn(worker, *how)
            ratios[name].append([b / a for a, b in zip(before, now)])
            plain.append(before)
        for _ in range(2):
            turn(asked)  # as often as the other
    print(f"{'':8}" + "".join(f"{name:>9}" for name in NAMES))
    print(f"{'us':8}" + "".join(f"{statistics.median(column) / 1000:9.1f}"
                                for column in zip(*plain)))
    medians = {}
    for name, rows in ratios.items():
        medians[name] = [statistics.median(column) for column in zip(*rows)]
        print(f"{name:8}" + "".join(f"{x:9.2f}" for x in medians[name]),
              flush=True)
    return all(a <= BOUND * max(noises) for a, *noises in
               zip(medians["asked"], medians["beside"], medians["alone"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seep", required=True)
    parser.add_argument("--preload", required=True)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("worker")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="seep-bench-") as folder:
        asked, alone = Worker(options, folder), Worker(options, folder)
        site = asked.find_site()
        before = asked.pages()
        holder, cpu_s = holder_of(asked.ask(site))
        print(f"{options.mib} MiB: {holder}, {cpu_s:.2f} s of a processor")
        assert asked.pages() == before, "it was given pages"
        is_fine = compare(asked, alone, site, options.turns)
        assert asked.sums == alone.sums, "it did something else"
        asked.close()
        alone.close()
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
