#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares the reader's verdicts with those of the reference implementation.

    growth_reference.py REPLAY SITES

SITES holds simulated allocation sites, clean and leaking, exact and sampled,
one JSON object a line, each with the verdict ("expected") that the Python
reference of the cohort-flow test gave on the very same figures. The class
must be equal, and every number within 1e-9. Nothing is needed but python3.
Prints one line a difference; exit 0 if there is none.
"""
import json
import math
import subprocess
import sys

TOLERANCE = 1e-9
# Down to 1/16! and below: only their ratio to the reference means something.
PROBABILITIES = (".p", ".immortal_p")


def differences(path, got, want):
    """Where two JSON values differ; what the reference does not say is free."""
    if isinstance(want, dict):
        for key, value in want.items():
            if not isinstance(got, dict) or key not in got:
                yield f"{path}.{key}: missing"
            else:
                yield from differences(f"{path}.{key}", got[key], value)
    elif isinstance(want, list):
        if len(got) != len(want):
            yield f"{path}: {len(got)} values instead of {len(want)}"
        for i, (one, other) in enumerate(zip(got, want)):
            yield from differences(f"{path}[{i}]", one, other)
    elif isinstance(want, (bool, str)) or want is None:
        if got != want:
            yield f"{path}: {got} instead of {want}"
    else:
        floor = 0 if path.endswith(PROBABILITIES) else TOLERANCE
        if not math.isclose(got, want, rel_tol=TOLERANCE, abs_tol=floor):
            yield f"{path}: {got!r} instead of {want!r}"


def main(replay, sites_path):
    with open(sites_path, encoding="utf-8") as file:
        text = file.read()
    sites = [json.loads(line) for line in text.splitlines()]
    run = subprocess.run([replay], input=text, capture_output=True, text=True,
                         check=True)
    verdicts = [json.loads(line) for line in run.stdout.splitlines()]
    wrong = 0
    if not sites or len(verdicts) != len(sites):
        print(f"{len(verdicts)} verdicts for {len(sites)} sites")
        wrong += 1
    for site, verdict in zip(sites, verdicts):
        if verdict["id"] != site["id"]:
            print(f"{verdict['id']} answers {site['id']}")
            wrong += 1
        for line in differences(site["id"], verdict, site["expected"]):
            print(line)
            wrong += 1
    print(f"{len(sites)} sites, {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
