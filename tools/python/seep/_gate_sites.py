# SPDX-License-Identifier: LGPL-2.1-or-later
"""What lives at each call site, at two moments: a program of its own, so that
a document of megabytes is not read in the process that is measured.

    _gate_sites.py SEEP RECORDING SAVED            keep the figures in SAVED
    _gate_sites.py SEEP RECORDING SAVED OWN...     print what came since

OWN are the folders of the test runner, whose own memory is no test's.

Invariant: figures are those of `seep report --json`, by line, of all sites.
"""
import json
import os
import re
import subprocess
import sys

CALLER = "call_repeatedly"  # calls the test: below it is no test runner's
_WHERE = re.compile(r"(.*):([0-9]+) (.*)")
_FIGURES = ("live_bytes", "live_count", "allocated_bytes", "peak_bytes")
_DEVICE = ("device", "managed")
_NOT_HOST = _DEVICE + ("tensor", "registered", "reserved", "imported",
                         "file")
# What makes a figure differ from the truth.
_LOSSES = ("dropped_allocs", "dropped_frees", "nested", "torn", "live_full",
           "ranges_full", "sites_full", "stacks_full", "lost_frees_closed",
           "restore_lost", "start_missed", "thinned_blocks", "room_refused",
           "cuda_full", "cuda_replaced", "cuda_busy", "cuda_saturated",
           "cuda_nest_full")
_BLOCKS_LEAST, _CLEAR = 8, 0.5  # of who is told to hold them
_READS = 5  # while events are half written: of threads that go on


def _process_of(tool, recording):
    done = subprocess.run([tool, "report", "--json", "--no-symbols",
                           "--no-series", "--no-patterns", "--no-held",
                           recording],
                          stdout=subprocess.PIPE, check=False)
    processes = json.loads(done.stdout)["processes"]
    if not processes:
        raise SystemExit("nothing could be read")
    return processes[0]


def _place(site):
    """The row's frame: file, line, function; what it is called without."""
    found = _WHERE.fullmatch(site["where"])
    for frame in site["frames"] if found else ():
        if frame["file"] and frame["line"] == int(found.group(2)) and \
                frame["file"].endswith(found.group(1)):
            return frame["file"], frame["line"], frame["function"]
    return None, None, site["where"]


def _settled(tool, recording):
    """Who waits for us stands still, but its other threads may not."""
    for _ in range(_READS):
        process = _process_of(tool, recording)
        if not process["losses"]["torn_sites"]:
            break
    return process


def read(tool, recording):
    """{"sites": {id: figures}, "losses": {name: N}, "torn_sites": N}."""
    process = _settled(tool, recording)
    counts = {**process["facts"], **process["losses"]}
    sites = {}
    for site in process["sites"]:
        figures = {name: site[name] for name in _FIGURES}
        figures.update(space=site["space"], device=site["device"],
                       stacks=site["stacks"], place=_place(site))
        sites[site["id"]] = figures
    return {"sites": sites, "torn_sites": counts["torn_sites"],
            "losses": {name: counts.get(name, 0) for name in _LOSSES}}


def lost(before, after):
    """{name: N}, of what was lost between two moments."""
    new = {name: count - before["losses"][name]
           for name, count in after["losses"].items()}
    new["torn_sites"] = max(before["torn_sites"], after["torn_sites"])
    return {name: count for name, count in new.items() if count > 0}


_NONE = dict.fromkeys(_FIGURES, 0)


def grown(before, after, own):
    """[rows that changed, most growth first], the test runner's left out."""
    rows = []
    for key, site in after["sites"].items():
        old = before["sites"].get(key, _NONE)
        path, line, function = site["place"]
        is_own = path is not None and path.startswith(tuple(own)) and \
            not str(function).endswith(CALLER)
        growth = site["live_bytes"] - old["live_bytes"]
        if growth != 0 and not is_own and site["space"] not in _NOT_HOST:
            rows.append({"id": key, "file": path, "line": line,
                         "function": function,
                         "space": site["space"], "bytes": growth,
                         "count": site["live_count"] - old["live_count"]})
    return sorted(rows, key=lambda row: -row["bytes"])


def holder(tool, recording, row):
    """Who holds what a row keeps, in words; None where it is not clear, or the
    process that waits for us may not be asked."""
    done = subprocess.run([tool, "held", "--json", "--site", row["id"],
                           recording], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    try:
        held = json.loads(done.stdout)["sites"][0]["held"]
        first = held["groups"][0]
    except (ValueError, LookupError, TypeError):
        return None
    if held["asked"] < _BLOCKS_LEAST or first["share"] < _CLEAR:
        return None
    return f"{first['sentence']} ({100 * first['share']:.0f} %)"


def _peak(site, old):
    """The most that a row held between two moments: at least, at most."""
    low = max(site["live_bytes"], old["live_bytes"])
    high = old["live_bytes"] + site["allocated_bytes"] - \
        old["allocated_bytes"]
    if site["peak_bytes"] > old["peak_bytes"]:
        low = max(low, site["peak_bytes"])
    if site["stacks"] == 1:
        high = min(high, site["peak_bytes"])
    return low, max(low, high)


def peaks(before, after):
    """{device: {"low", "high", "rows"}}: the most held on it at one time."""
    devices = {}
    for key, site in after["sites"].items():
        if site["space"] not in _DEVICE:
            continue
        old = before["sites"].get(key, _NONE)
        low, high = _peak(site, old)
        held = devices.setdefault(
            str(site["device"] or 0),
            {"low": 0, "high": 0, "before": 0, "after": 0, "rows": []})
        held["before"] += old["live_bytes"]
        held["after"] += site["live_bytes"]
        held["low"] = max(held["low"], low, held["before"], held["after"])
        held["high"] += high
        path, line, function = site["place"]
        held["rows"].append({"file": path, "line": line, "function": function,
                             "space": site["space"], "bytes": low})
    for held in devices.values():
        held["rows"].sort(key=lambda row: -row["bytes"])
    return devices


def main(tool, recording, saved, *own):
    now = read(tool, recording)
    if not own:
        with open(saved, "w", encoding="utf-8") as file:
            json.dump(now, file)
        return
    with open(saved, encoding="utf-8") as file:
        before = json.load(file)
    os.unlink(saved)
    rows = grown(before, now, own)
    if rows and rows[0]["bytes"] > 0:
        rows[0]["held"] = holder(tool, recording, rows[0])
    json.dump({"grown": rows,
               "devices": peaks(before, now), "lost": lost(before, now)},
              sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
