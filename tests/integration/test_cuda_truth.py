# SPDX-License-Identifier: LGPL-2.1-or-later
"""Live bytes of the driver's memory by call site, through every door: what a
recording says is what the program and the fake driver keep books of, to the
byte, whether the heap beside it is recorded whole or sampled."""
import json

import pytest

from conftest import BUILD, PROGRAMS, dump, execute, frame_functions, program

DRIVER = BUILD / "tests/fake"
DOORS = ["link", "dlsym", "noload", "default", "twins", "address1", "address2",
         "address2twins", "runtime"]
FIGURES = ("live_bytes", "live_count", "allocated_bytes", "allocated_count")
FREED_TWICE = 2
EXACT, SAMPLED = 1, None
# What makes a figure wrong; frees of what is not known are the program's own.
NEVER = ("cuda_full", "cuda_replaced", "cuda_saturated", "cuda_nested",
         "cuda_nest_full", "cuda_other_driver", "cuda_unknown_variant")
# What several threads may lose on a busy machine, where one lost its processor
# with a lock in its hand: the others wait 20 ms at the most, and what was given
# up is counted.
GIVEN_UP = ("cuda_busy",)
DROPPED = ("dropped_allocs", "dropped_frees", "lost_frees_closed")
MOST_LOST = 0.02


def record(folder, name, *arguments, sample=EXACT, **more):
    """Run a program on the fake driver: what it knows, what was recorded."""
    more.setdefault("LD_LIBRARY_PATH", DRIVER)
    done = execute([program(name), *arguments], folder, cwd=folder,
                   sample=sample, timeout=120, **more)
    assert (done.status, done.stderr) == (0, b""), done.stdout
    return json.loads(done.stdout), dump(done.recordings[0])


def figures_of(sites, names, by):
    """{(function, and what by says): figures} of sites with such a frame."""
    sums = {}
    for site in sites:
        named = [frame for frame in frame_functions(site) if frame in names]
        if not named:
            continue
        entry = sums.setdefault((named[0], *(site[key] for key in by)),
                                dict.fromkeys(FIGURES, 0))
        for figure in FIGURES:
            entry[figure] += site[figure]
    return sums


def truth_of(told, by):
    """The same, as the program has it; what it never made has no site."""
    return figures_of([{**site, "frames": [site["function"]]}
                       for site in told["sites"] if site["allocated_count"]],
                      {site["function"] for site in told["sites"]}, by)


def may_lose(threads, sample):
    """Which losses are no fault of a run."""
    return () if threads == 1 else \
        GIVEN_UP if sample == EXACT else GIVEN_UP + DROPPED


def are_no_more_off(found, true, lost):
    """What is not as it should be is no more than what was counted."""
    nothing = dict.fromkeys(FIGURES, 0)
    off = {figure: [true[site][figure] - found.get(site, nothing)[figure]
                    for site in true] for figure in FIGURES}
    assert found.keys() <= true.keys()
    assert min(off["allocated_count"]) >= 0
    assert sum(off["allocated_count"]) <= lost
    assert sum(map(abs, off["live_count"])) <= lost
    assert lost <= MOST_LOST * sum(site["allocated_count"]
                                   for site in true.values())


def compare(told, recorded, by=("space",), allowed=()):
    """Figure by figure, and nothing was lost on the way but what is allowed."""
    names = {site["function"] for site in told["sites"]}
    found, true = figures_of(recorded["sites"], names, by), truth_of(told, by)
    losses = recorded["losses"]
    # Of several who free the same at once one may give up its change: the
    # figures are right all the same.
    if losses.get("cuda_busy", 0) <= told.get("raced", 0):
        losses.pop("cuda_busy", None)
    lost = sum(losses.pop(loss, 0) for loss in allowed)
    if lost > 0:
        are_no_more_off(found, true, lost)
    else:
        assert found == true, losses
    assert losses == {}
    assert {name: recorded["counters"][name] for name in NEVER} == \
        dict.fromkeys(NEVER, 0)


@pytest.mark.parametrize("sample", [EXACT, SAMPLED], ids=["exact", "sampled"])
@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("distinct", [0, 1])
@pytest.mark.parametrize("door", DOORS)
def test_live_bytes_by_call_site_are_the_truth(door, distinct, threads, sample,
                                               folder):
    name = "cuda_doors_linked" if door == "link" else "cuda_doors"
    told, recorded = record(folder, name, door, threads, sample=sample,
                            SEEP_FAKE_CUDA_DISTINCT=distinct)
    assert told["agrees"] and told["out_of_memory"] > 0
    assert all(site["live_bytes"] > 0 for site in told["sites"])
    compare(told, recorded, allowed=may_lose(threads, sample))
    assert recorded["counters"]["cuda_unknown"] == \
        told["unknown"] + FREED_TWICE


def entries(folder, threads, sample, *arguments, latency_ns=0):
    """All entry points that are no door's matter, on five devices."""
    return record(folder, "cuda_entries", threads, *arguments, sample=sample,
                  SEEP_FAKE_CUDA_DEVICES=5,
                  SEEP_FAKE_CUDA_LATENCY_NS=latency_ns)


@pytest.mark.parametrize("sample", [EXACT, SAMPLED], ids=["exact", "sampled"])
@pytest.mark.parametrize("threads, latency_ns",
                         [(1, 0), (8, 0), (8, 20000)])
def test_every_entry_point_is_charged_to_its_call_site(
        threads, latency_ns, sample, folder):
    """A driver that is slow lets others in between a call and its result."""
    told, recorded = entries(folder, threads, sample, latency_ns=latency_ns)
    assert told["agrees"] and told["unexpected"] == 0
    compare(told, recorded, allowed=may_lose(threads, sample))
    assert 0 < told["unknown"] <= recorded["counters"]["cuda_unknown"] <= \
        told["unknown"] + told["raced"]
    assert (told["raced"] > 0) == (threads > 1)


def test_each_device_has_its_own_call_sites(folder):
    told, recorded = entries(folder, 2, EXACT)
    assert {site["device"] for site in told["sites"]} == {-1, *range(5)}
    compare(told, recorded, ("space", "device"), may_lose(2, EXACT))


@pytest.mark.parametrize("when", ["after", "before"])
@pytest.mark.parametrize("sample", [EXACT, SAMPLED], ids=["exact", "sampled"])
def test_a_child_is_recorded_if_the_driver_was_not_used_before(when, sample,
                                                              folder):
    done = execute([program("cuda_fork"), when], folder, cwd=folder,
                   sample=sample,
                   LD_LIBRARY_PATH=f"{DRIVER}:{PROGRAMS / 'fake_torch'}")
    assert (done.status, done.stderr) == (0, b""), done.stdout
    told = json.loads(done.stdout)
    recorded = {document["pid"] == told["child"]: document
                for document in map(dump, done.recordings)}
    assert set(recorded) == {False, True}
    compare(told, recorded[when == "before"])
    other = recorded[when != "before"]
    assert {site["space"] for site in other["sites"]} <= {"heap", "mapped"}
    assert other["losses"] == {} and other["counters"]["cuda_unknown"] == 0
