# SPDX-License-Identifier: LGPL-2.1-or-later
"""Work in Python that profilers of memory are compared by.

    workloads.py json|numpy|import-torch AMOUNT OUT

Writes to OUT what it took, as workloads.c does: nanoseconds by the clock,
nanoseconds of the process, the most KiB that it had.
Invariant: nothing but what is compared is timed.
"""
import importlib
import json
import sys
import time


def run_json(amount):
    """Documents of 60 records, read and written."""
    text = json.dumps([{"id": i, "name": f"name {i}", "score": i / 7,
                        "tags": ["a", "b", str(i)]} for i in range(60)])
    for _ in range(amount):
        rows = json.loads(text)
        rows[0]["seen"] = True
        json.dumps(rows)


def run_numpy(amount):
    """Batches of a tenth of a megabyte, by small steps."""
    numpy = importlib.import_module("numpy")
    weights = numpy.ones((64, 32))
    for i in range(amount):
        batch = numpy.full((200, 64), float(i))
        scores = numpy.maximum(batch @ weights, 0)
        [row.sum() for row in scores]


def run_import(name):
    def run(_amount):
        importlib.import_module(name)
    return run


KINDS = {"json": run_json, "numpy": run_numpy,
         "import-torch": run_import("torch")}


def most_kib():
    """Of this program: getrusage() tells also of who started it."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file
                    if line.startswith("VmHWM:"))


def main():
    kind, amount, out = sys.argv[1:]
    wall, cpu = time.perf_counter_ns(), time.process_time_ns()
    KINDS[kind](int(amount))
    wall = time.perf_counter_ns() - wall
    cpu = time.process_time_ns() - cpu
    with open(out, "w", encoding="ascii") as file:
        print(wall, cpu, most_kib(), file=file)


if __name__ == "__main__":
    main()
