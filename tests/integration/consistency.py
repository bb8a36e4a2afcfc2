# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a report says in one place and denies in another.

Invariant: a rule here knows nothing of how a verdict is made; it compares what
was printed: headline, rows, memory table, forecast, and what a check says.
"""
import json
import re
import subprocess

from built import SEEP

FLOOR_BYTES = 1 << 20
LIMIT_S = 120
LIMIT = 2**20 / 60  # bytes a second: that of the check
CHECK = ("--max-growth", "1MiB/min")
PASS, FAIL = 0, 3
QUIET = ("steady", "bounded", "allocator-retention", "fragmentation")
OPEN = ("suspect", "insufficient-data")
STOPPED = ("plateau", "step")
UNTOLD = ("registered", "reserved", "imported")  # no memory of its own
ROUNDED_BYTES = 1 << 16  # what a row and its series may differ by
KEPT_BYTES = 32 << 20  # of before the first sample, and by its error
NAME_LEAST = 6  # characters of a name that is cut off
SANE_BYTES = 1 << 50  # of a damaged file sums may go round


def short(where):
    """A place as sentences name it: of C++ without what its arguments add."""
    place, _, name = where.partition(" ")
    name, found = re.sub(r"\((?!anonymous namespace\)).*", "", name), True
    while found:
        name, found = re.subn(r"<[^<>]*>", "", name)
    return f"{place} {name}" if name else where


def is_named(where, sentence):
    """Does @sentence have that place?"""
    return where in sentence or short(where) in sentence


def low(interval):
    """Its lower end; what is not told is 0."""
    return interval["low"] if interval else 0


def least_slope(extent):
    """What it grows by at least, in bytes a second."""
    if extent is None:
        return 0
    return extent["slope_bytes_per_s"] - extent["slope_error_bytes_per_s"]


def is_quiet(verdict):
    """Does the class say that nothing grows?"""
    return (verdict["class"] in QUIET and not verdict["filling"]
            and verdict["growth_bytes_per_s"] is None)


def of_words(verdict):
    """Reassurance that was not tested, and doubt that is not said."""
    sentence = verdict["sentence"]
    found = []
    for words in ("no leak", "nothing grows", "would have shown by now"):
        if words in sentence and not verdict["reassures"]:
            found.append(f"{words!r} is said and was not tested")
    if verdict["reassures"] and not is_quiet(verdict):
        found.append(f"{verdict['class']} reassures")
    if verdict["reassures"] and "no leak" not in sentence:
        found.append("it reassures and does not say so")
    if verdict["open"] and verdict["reassures"]:
        found.append("it reassures, and something cannot be told")
    if verdict["open"] and "cannot tell yet" not in sentence:
        found.append("something cannot be told, and is not in the sentence")
    if (verdict["stopped"] and verdict["private_grows"]
            and verdict["class"] not in QUIET):
        found.append("something has stopped, and private memory grows")
    if verdict["private_grows"] and "stopped" in sentence:
        found.append("the sentence denies that private memory grows")
    return found


def of_memory(verdict, memory, duration_s):
    """The headline against the memory table."""
    found = []
    if verdict["private_grows"] and is_quiet(verdict):
        found.append(f"{verdict['class']}, and private memory grows")
    least = least_slope(memory["anonymous"]) * 0.8 * duration_s
    floor = max(FLOOR_BYTES, 0.01 * (memory["rss"] or {"last_bytes": 0})[
        "last_bytes"])
    told = (verdict["suppressed_bytes_per_s"]
            + verdict["minor_bytes_per_s"]) * duration_s
    # what is bounded may have grown for most of the run
    if (is_quiet(verdict) and verdict["class"] != "bounded"
            and least - told > 2 * floor):
        found.append(f"{verdict['class']} above +{least:.0f} bytes for sure")
    if verdict["reassures"] and not verdict["hidden_bytes_per_s"]:
        found.append("it reassures and does not say what could hide")
    forked = memory["forked"]
    if (forked and "nothing grows" in verdict["sentence"]
            and -forked["slope_bytes_per_s"] * duration_s > 2 * floor
            and -forked["slope_bytes_per_s"]
            > 1.5 * forked["slope_error_bytes_per_s"]):
        found.append("nothing grows, and what was there at the fork is copied")
    held = memory["cgroup_held"]
    if (held and memory["cgroup_limit_bytes"] and not forked
            and "nothing grows;" in verdict["sentence"]
            and (least_slope(held) - 2 * max(0, memory["rss"][
                "slope_bytes_per_s"])) * duration_s > 32 * FLOOR_BYTES
            and least_slope(held) > held["slope_error_bytes_per_s"]):
        found.append("nothing grows, and its cgroup grows beside it")
    if (verdict["beside_bytes_per_s"] and verdict["forecast"]
            and verdict["forecast"]["answer"] == "never"):
        found.append("its cgroup grows beside it, and is never full")
    growth = verdict["growth_bytes_per_s"]
    if (verdict["class"] == "leak" and verdict["device"] is None and growth
            and not (memory["swap"] or {"last_bytes": 0})["last_bytes"]
            and (least_slope(memory["anonymous"]) - growth["high"])
            * 0.8 * duration_s > 2 * floor
            and "; private memory gr" not in verdict["sentence"]):
        found.append("private memory grows by more, and where is not said")
    if ("no hook saw" in verdict["sentence"] and growth and memory["surplus"]
            and -memory["surplus"]["slope_bytes_per_s"]
            > 0.8 * growth["estimate"]):
        found.append("no hook saw it, and what was not touched shrinks so")
    place = re.search(r"largest part in .* at (0x[0-9a-f]+)",
                      verdict["sentence"])
    if place and growth and not any(
            mapping["start"] == place[1] and mapping["slope_bytes_per_s"]
            > 0.1 * growth["estimate"]
            for mapping in memory["unexplained"]["mappings"]):
        found.append(f"the largest part of it is not at {place[1]}")
    return found


def of_retention(verdict, process):
    """What an allocator keeps of what was freed is no more than that."""
    memory = process["memory"]
    freed = sum(memory["spaces"].get(name, {"freed_bytes": 0})["freed_bytes"]
                for name in ("heap", "python"))
    kept = memory["allocator_overhead"]
    if (verdict["class"] == "allocator-retention" and kept
            and not process["process"]["fork"]
            and not any(process["losses"].values())
            and kept["last_bytes"] > 3 * freed + KEPT_BYTES):
        return [f"{kept['last_bytes']:.0f} bytes are kept of {freed} freed"]
    return []


def of_rows(verdict, sites):
    """The headline against the rows below it."""
    found = []
    counted = [site for site in sites if site["suppressed_by"] is None
               and not site["known_bound_bytes"]
               and not site["backs_tensors"]]
    rising = [site["where"] for site in counted
              if low(site["growth_bytes_per_s"]) > 0]
    said = [*verdict["reasons"], verdict["sentence"]]
    for words in ("no call site grows", "all growth is suppressed",
                  "nothing grows", "nothing was seen to grow"):
        if rising and any(words in each for each in said):
            found.append(f"{words}, but {rising}")
    named = [site["where"] for site in sites
             if is_named(site["where"], verdict["sentence"])]
    if named and sites[0]["where"] not in named:
        found.append(f"{named[0]} is named, and {sites[0]['where']} is first")
    leaks = [site["where"] for site in counted if site["class"] == "leak"]
    if leaks and verdict["class"] not in ("leak", "suspect"):
        found.append(f"{verdict['class']} above leaks: {leaks}")
    for site in counted:
        if any("freeing old blocks" in reason
               for reason in verdict["reasons"]) and not rising:
            found.append(f"grows all the same, but {site['where']} does not")
            break
    return found


def table_of(text):
    """The rows of the call sites, between the first two empty lines."""
    return text.partition("\n\n")[2].partition("\n\n")[0]


def is_shown(where, table):
    """Is @where in a row, or as much of it as a row has room for?"""
    names = {where, short(where)}
    for line in map(str.rstrip, table.splitlines()):
        cut = line.removesuffix("\u2026")
        if any(name.split()[-1] in line for name in names) or (
                cut != line and any(cut.endswith(name[:length])
                                    for name in names
                                    for length in range(NAME_LEAST,
                                                        len(name)))):
            return True
    return False


def of_holders(verdict, sites, text):
    """What holds the most, and what is called bounded, against the table."""
    found = []
    counted = [site for site in sites if site["suppressed_by"] is None
               and not site["start_up"] and not site["backs_tensors"]
               and site["space"] not in UNTOLD]
    most = max(counted, key=lambda site: site["live_bytes"], default=None)
    live, peak = (sum(site[key] for site in sites)
                  for key in ("live_bytes", "peak_bytes"))
    # of what was freed at the end the peaks tell, and those of rows not well
    if (most and most["live_bytes"] > FLOOR_BYTES and live * 2 >= peak
            and re.match(r".*:\d+ ", most["where"])  # a line has one name
            and not is_shown(most["where"], table_of(text))):
        found.append(f"{most['where']} holds the most and is not in the table")
    risen = [site for site in counted if site["class"] in STOPPED
             and not site["known_bound_bytes"]]
    riser = max(risen, key=rise_of, default=None)
    if (verdict["class"] == "bounded" and not verdict["filling"]
            and "growth stopped" in verdict["sentence"]
            and riser and rise_of(riser) > FLOOR_BYTES
            and not is_named(riser["where"], verdict["sentence"])
            # what is replaced rose, too, and is of later tenths
            and not any(is_named(site["where"], verdict["sentence"])
                        and site["live_bytes"] >= rise_of(riser)
                        for site in counted)):
        found.append(f"{riser['where']} rose most, and is not named")
    return found


def rise_of(site):
    """What of it was born since its work began, and lives."""
    return sum(site["born_alive_by_tenth_bytes"][1:])


def of_forecast(verdict, text):
    """The rate against when memory will be full."""
    found = []
    growth = verdict["growth_bytes_per_s"]
    headline = text.partition("\n\n")[0]
    if verdict["class"] == "leak":
        if growth is not None and growth["low"] <= 0:
            found.append(f"a leak of at least {growth['low']}")
        if "or never" in headline:
            found.append("a leak that may fill memory never")
    forecast = verdict["forecast"]
    if (forecast is not None and forecast["answer"] == "never"
            and verdict["private_grows"]
            and verdict["class"] in ("leak", *OPEN)
            and verdict["device"] is None):
        found.append("memory is never full, and grows")
    if growth is not None and not (growth["low"] <= growth["estimate"]
                                   <= growth["high"]):
        found.append(f"no interval: {growth}")
    return found


def of_lists(text):
    """A list that begins with a comma lacks its first item."""
    return [line.strip() for line in text.splitlines() if "  , " in line]


def of_advice(verdict):
    """A variable that two lines tell to set is the same advice twice."""
    told = [name for line in verdict["advice"]
            for name in set(re.findall(r"\b[A-Z][A-Z0-9_]{5,}(?==)", line))]
    return [f"two lines of advice set {name}"
            for name in sorted({n for n in told if told.count(n) > 1})]


def of_check(verdict, code):
    """What the verdict says against what a limit on growth comes to."""
    found = []
    growth = verdict["growth_bytes_per_s"]
    if code == PASS and (verdict["class"] in OPEN or verdict["filling"]):
        found.append(f"a check passes what is {verdict['class']}")
    if code == PASS and low(growth) > LIMIT:
        found.append(f"a check passes what grows {growth}")
    if code == PASS and verdict["private_grows"] and low(growth) <= 0:
        found.append("a check passes while private memory grows")
    if code == FAIL and verdict["reassures"]:
        found.append("a check fails what reassures")
    return found


def of_series(sites):
    """Each row against its own series: both are of one moment."""
    found = []
    for site in sites:
        if site["untold"] or "series" not in site:  # --no-series
            continue
        series = site["series"]
        live = site["live_bytes"]
        last = series[-1]["live_bytes"] if series else 0
        if abs(last - live) > ROUNDED_BYTES + 0.01 * max(last, live):
            found.append(f"{site['where']} holds {live}, its series {last}")
    return found


def of_points(sites):
    """Each series by itself: no low is above what is live."""
    found = []
    for site in sites:
        for point in site.get("series") or ():
            if point["low_bytes"] > point["live_bytes"]:
                found.append(f"{site['where']}: low above live, {point}")
                break
    return found


def of_spaces(sites, site_total, spaces):
    """The rows of a space against its sums, where no row is left out."""
    found = []
    if len(sites) != site_total:
        return found
    for name, space in spaces.items():
        for key, told in (("live_bytes", space["last_bytes"]),
                          ("allocated_bytes", space["allocated_bytes"]),
                          ("freed_bytes", space["freed_bytes"])):
            rows = sum(site[key] for site in sites if site["space"] == name)
            if (rows < SANE_BYTES and abs(rows - told)
                    > ROUNDED_BYTES + 0.01 * max(rows, told)):
                found.append(f"{name}: {key} of rows {rows}, in all {told}")
    return found


def of_process(process):
    """What one process of a document says against itself."""
    verdict = process["verdict"]
    return (of_words(verdict)
            + of_advice(verdict)
            + of_memory(verdict, process["memory"],
                        process["process"]["duration_s"])
            + of_retention(verdict, process)
            + of_rows(verdict, process["sites"])
            + of_series(process["sites"])
            + of_points(process["sites"])
            + of_spaces(process["sites"], process["site_total"],
                        process["memory"]["spaces"]))


def of_document(document):
    """What `seep report --json` of any recordings says against itself."""
    return [f"pid {process['process']['pid']}: {found}"
            for process in document["processes"]
            for found in of_process(process)]


def contradictions(process, text, code):
    """All that one process's report says against itself."""
    verdict = process["verdict"]
    found = (of_process(process)
             + of_holders(verdict, process["sites"], text)
             + of_forecast(verdict, text)
             + of_lists(text)
             + of_check(verdict, code))
    label = verdict["class"].replace("-", " ").upper()
    if not text.startswith(label):
        found.append(f"{label} is not the headline")
    return found


def start(*words):
    """One verb of the command, to its end."""
    return subprocess.run([SEEP, *words], capture_output=True,
                          timeout=LIMIT_S, check=False, text=True)


def contradictions_in(recording):
    """Of one recording, read anew."""
    process, = json.loads(start("report", "--json", recording).stdout)[
        "processes"]
    return contradictions(process, start("report", recording).stdout,
                          start("check", *CHECK, recording).returncode)
