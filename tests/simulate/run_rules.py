# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the reader makes of a whole run, a second time; see cohort_flow.py.

A run is as replay_run.h has it. What is a site's in a recording becomes the
input of the test; what only all sites and the load together can tell is then
said of them: evidence, Holm, wall clock, rising load, floor, order.
"""
import math

import numpy

import cohort_flow
import proof
import second_look

BUCKETS = 128
FLOOR_BYTES, FLOOR_SHARE = 2 ** 20, 0.002
RANKS = {"leak": 0, "suspect": 1, "warming": 2, "aging": 2,
         "minor": 3, "insufficient-data": 4, "turnover": 5, "plateau": 5,
         "step": 5, "sawtooth": 6, "steady": 6}


def series(site, width):
    """(live, low): allocated less freed so far; a bucket without either is
    flat, and none is lower than its end."""
    live, lows, total = [], [], 0
    for k in range(BUCKETS):
        total += site["allocated"][k] - site["freed"][k]
        live.append(max(0, total) if k >= site["first_tick"] // width else 0)
        is_quiet = k > 0 and not site["allocated"][k] and not site["freed"][k]
        lows.append(live[k] if is_quiet else min(site["low"][k], live[k]))
    return live, lows


def died_old(site, old, width):
    """Blocks seen to die at an age of @old or more. Of sampled ones their
    bytes over what a survivor stands for, but not more than died."""
    first = old // width
    count = sum(site["died_count"][first:])
    if site["birth"] and not sum(site["variance"]) > 0:
        return count
    mean = (sum(site["weight"]) / len(site["weight"]) if site["birth"] else
            sum(site["allocated"]) / max(1, site["allocated_count"]))
    if not mean > 0:
        return 0
    return int(min(count, math.floor(sum(site["died"][first:]) / mean + 0.5)))


def died_seen(site):
    """Blocks seen to die, by age; sampled ones by their bytes, too."""
    count = numpy.array(site["died_count"], float)
    if site["birth"] and not sum(site["variance"]) > 0:
        return count
    mean = (sum(site["weight"]) / len(site["weight"]) if site["birth"] else
            sum(site["allocated"]) / max(1, site["allocated_count"]))
    if not mean > 0:
        return 0 * count
    return numpy.minimum(count, numpy.array(site["died"]) / mean)


def input_of(site, told, clock):
    live, low = series(site, clock.width)
    fifth = math.ceil(clock.end / 5)
    old = math.ceil(fifth / clock.width) * clock.width
    return {
        "birth": site["birth"], "weight": site["weight"],
        "variance": site["variance"], "live": live, "low": low,
        "bucket_end": [(k + 1) * clock.width for k in range(BUCKETS)],
        "died_old": died_old(site, old, clock.width),
        "live_old": sum(tick + old <= clock.end for tick in site["birth"]),
        "live_count": len(site["birth"]),
        "allocations": site["allocated_count"], "clock": told["clock"],
    }


def want_evidence(row, site, clock):
    """A leak rests on 12 effective survivors, or on 8 exact ones."""
    if not row["tested"] or row["growing_block"]:
        return
    mature = [i for i, tick in enumerate(site["birth"])
              if row["onset"] <= int(clock.at(tick) * 10) < 8]
    sampled = sum(site["variance"][i] for i in mature) > 0.05 * sum(
        site["weight"][i] ** 2 for i in mature)
    if not sampled and row["mature_count"] < 8:
        row.update({"class": "insufficient-data", "tested": False})
    elif row["class"] == "leak" and row["effective_count"] < (
            12 if sampled else 8):
        row["class"] = "suspect"


def want_survivors(row, site):
    """A few sampled survivors of which hardly any died, without a chain,
    spread by chance; not so if all came at the start, or at one moment."""
    count = len(site["birth"])
    if (row["onset"] <= 5 or row["growing_block"] or not 0 < count < 12
            or not sum(site["variance"]) * count
            > 0.05 * int(sum(site["weight"])) ** 2
            or site["freed_count"] > site["allocated_count"] / 2):
        return
    if row["window_count"][0] < count and (
            max(row["window_count"]) < count or count < 3):
        row["class"] = "insufficient-data"


def correct_for_many(rows):
    """Holm: of m sites with evidence the i-th smallest p has to be at most
    0.01 / (m - i); the first that is not ends it."""
    tested = sorted((row for row in rows if row["tested"]),
                    key=lambda row: row["p"])
    holds = True
    for i, row in enumerate(tested):
        holds = holds and row["p"] <= 0.01 / (len(tested) - i)
        if not holds and row["class"] == "leak" and not (
                row["growing_block"] or row.get("by_life")):
            row["class"] = "suspect"


def restrain(row, clock, floor):
    if (row["class"] == "suspect" and row.get("in_steps")
            and row["low"] < floor):
        row["class"] = "minor"
    if row["class"] != "leak":
        return
    if clock.kind == "wall" or (clock.is_rising() and row["zs"] < 5
                                and not row["growing_block"]
                                and not row.get("by_life")):
        row["class"] = "suspect"
    elif row["rate"] < floor:
        row["class"] = "minor"


def judge(told):
    """(rows in the order of the report, whether a decision was close)"""
    clock = cohort_flow.Clock(told["clock"])
    rows, is_close = [], False
    for i, site in enumerate(told["sites"]):
        given = input_of(site, told, clock)
        row, close = cohort_flow.judge(given)
        want_evidence(row, site, clock)
        want_survivors(row, site)
        proof.look_again(second_look.Life(site, clock, given, died_seen(site),
                                          clock.is_rising()), row)
        row.update(index=i, live=int(sum(site["weight"])))
        rows.append(row)
        is_close = is_close or close
    correct_for_many(rows)
    floor = max(FLOOR_BYTES, FLOOR_SHARE * sum(row["live"] for row in rows))
    for row in rows:
        restrain(row, clock, floor)
    rows.sort(key=lambda row: (
        RANKS[row["class"]],
        -row["low"] / row.get("kept_time", 1)
        if row["high"] > row["low"] and not row.get("flat") else 0,
        -row["live"], row["index"]))
    return rows, is_close
