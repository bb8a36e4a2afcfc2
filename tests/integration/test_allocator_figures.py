# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the allocator says of itself, asked from inside the process.

All but the first test run with a build of the preload that asks at every
moment of the timeline and not every 10 s: some sixty times in a run, so that
a question at a wrong place is a deadlock, and no luck. SEEP_TEST_LONG=1 forks
three times as often.
"""
import os
import shutil
import struct

import pytest

from conftest import (LONG, PRELOAD, PROGRAMS, allocator_path, dump, execute,
                      frame_functions, need, program)

OFTEN = PRELOAD.parent / "libseep_often.so"
TELLING = ["glibc", "jemalloc", "tcmalloc"]
# strict_allocator.c, as jemalloc and as libc
STRICT = {name: PROGRAMS / f"{name}.so"
          for name in ("libjemalloc_strict", "libc-strict")}
STRICT_TCMALLOC = PROGRAMS / "libtcmalloc_strict.so"
SMALL = {"SEEP_SIZE": "16MiB"}
SECTIONS_AT = 48  # in the header; three fields of 24 bytes a section
TIMELINE = 2
MOMENT = ("tick", "rss", "shared", "cgroup", "cgroup_limit", "allocated",
          "active", "resident", "retained", "progress", "low_rss",
          "sample_log2", "swap", "chunks", "own", "_")


def moments(path):
    """The moments of a recording, in order."""
    data = path.read_bytes()
    offset, _, size, count = struct.unpack_from(
        "<QQII", data, SECTIONS_AT + 24 * TIMELINE)
    taken = [dict(zip(MOMENT, struct.unpack_from("<16Q", data,
                                                 offset + i * size)))
             for i in range(count)]
    return [moment for moment in taken if moment["tick"]]


def run_often(folder, case, allocator="glibc", sample=256, argv=None,
              path=None, **more):
    """Run one case, asked at every moment."""
    if not OFTEN.exists():
        pytest.skip(f"no {OFTEN}")
    path = path or STRICT.get(allocator) or allocator_path(allocator)
    return execute(argv or [program("allocator_cases"), case], folder,
                   sample=sample, timeout=120,
                   LD_PRELOAD=":".join(str(p) for p in (OFTEN, path) if p),
                   **SMALL, **more)


def run_quietly(folder, case, allocator="glibc", sample=256):
    """The same, with nothing to tell and all well."""
    run = run_often(folder, case, allocator, sample)
    assert run.seen == (0, b"", b"")
    return [dump(path, "--no-symbols")["counters"] for path in run.recordings]


@pytest.mark.parametrize("allocator", TELLING)
def test_it_is_asked_once_and_then_every_10_s(folder, allocator):
    run = execute([program("allocator_cases"), "figures"], folder,
                  allocator=allocator, sample=4096, **SMALL)
    path, = run.recordings
    counters = dump(path)["counters"]
    assert counters["allocator_asked"] + counters["allocator_given_up"] == 1
    assert len([m for m in moments(path) if m["resident"]]) <= 1


@pytest.mark.parametrize("allocator", TELLING)
def test_the_figures_are_those_that_the_program_gets(folder, allocator):
    run = run_often(folder, "figures", allocator, 4096)
    assert run.status == 0 and run.stderr == b""
    allocated, resident, retained, chunks = map(int, run.stdout.split())
    path, = run.recordings
    last = [m for m in moments(path) if m["resident"]][-1]
    assert allocated > 40 << 20
    # What the program does meanwhile is 64 blocks of 10 KB at the most.
    assert abs(last["allocated"] - allocated) < 1 << 20
    assert abs(last["resident"] - resident) < 2 << 20
    assert abs(last["retained"] - retained) < 2 << 20
    assert last["resident"] >= last["allocated"]
    if allocator == "glibc":
        assert abs(last["chunks"] - chunks) < 100 and chunks > 900
    if allocator == "jemalloc":
        assert last["allocated"] <= last["active"] <= last["resident"]


@pytest.mark.parametrize("sample", [1, 65536])
@pytest.mark.parametrize("allocator", ["glibc", *STRICT])
def test_a_block_of_no_bytes_is_not_looked_at(folder, allocator, sample):
    """Hardened allocators have it in a page that nobody may read."""
    run = run_often(folder, "empty_block", allocator, sample)
    assert run.seen == (0, b"", b"")


def test_mimalloc_is_not_asked(folder):
    run = run_often(folder, "figures", "mimalloc", 4096)
    path, = run.recordings
    assert dump(path)["counters"]["allocator_asked"] == 0
    assert not [m for m in moments(path) if m["resident"] or m["allocated"]]


@pytest.mark.parametrize("fails", [0, 1, 2, 3, 9])
def test_figures_of_tcmalloc_are_all_there_or_none_is(folder, fails):
    """Also where one contradicts another."""
    run = run_often(folder, "many_threads", path=STRICT_TCMALLOC,
                    STRICT_FAILS=fails)
    assert run.seen == (0, b"", b"")
    path, = run.recordings
    assert dump(path, "--no-symbols")["counters"]["allocator_asked"] > 0
    told = [tuple(bool(m[name]) for name in ("allocated", "resident",
                                             "retained"))
            for m in moments(path)]
    assert set(told) - {(False,) * 3} == ({(True,) * 3} if fails == 0
                                          else set())


def test_a_figure_that_jemalloc_does_not_know_is_none(folder):
    """Built without statistics it knows none of them."""
    run = run_often(folder, "many_threads", "libjemalloc_strict",
                    STRICT_FAILS=1)
    assert run.seen == (0, b"", b"")
    path, = run.recordings
    last = [m for m in moments(path) if m["resident"]][-1]
    assert last["allocated"] == 0


@pytest.mark.parametrize("name", ["libjemalloc.so.2", "libtcmalloc.so.4"])
def test_an_allocator_with_the_name_alone_is_not_asked(folder, name):
    """As one that has its functions by another name."""
    shutil.copy(program("strict_nameless.so"), folder / name)
    run = run_often(folder, "many_threads", path=folder / name)
    assert run.seen == (0, b"", b"")
    path, = run.recordings
    assert dump(path, "--no-symbols")["counters"]["allocator_asked"] == 0
    assert not [m for m in moments(path) if m["resident"] or m["allocated"]]


def test_what_the_allocator_maps_and_moves_is_not_the_programs(folder):
    run = run_often(folder, "allocator_moves", "libjemalloc_strict", 1)
    assert run.seen == (0, b"", b"")
    document = dump(*run.recordings)
    mapped = [site for site in document["sites"] if site["space"] == "mapped"
              and "allocator_moves" in frame_functions(site)]
    assert [(site["allocated_count"], site["live_bytes"])
            for site in mapped] == [(1, 65536)]
    assert document["counters"]["allocator_maps"] == 100


def test_swap_is_read_once_and_kept(folder):
    run = run_often(folder, "figures", sample=4096)
    path, = run.recordings
    assert all(m["swap"] < 1 << 40 for m in moments(path))


@pytest.mark.parametrize("allocator", TELLING)
@pytest.mark.parametrize("case", ["many_threads", "thread_in_dlopen"])
def test_busy_threads_notice_nothing(folder, case, allocator):
    counters, = run_quietly(folder, case, allocator)
    assert counters["allocator_asked"] > 0


@pytest.mark.parametrize("sample", [1, 256])
@pytest.mark.parametrize("allocator", TELLING)
def test_handlers_anywhere_in_the_allocator_notice_nothing(folder, allocator,
                                                           sample):
    counters, = run_quietly(folder, "handlers_map", allocator, sample)
    assert counters["allocator_asked"] > 0


@pytest.mark.parametrize("sample", [1, 256])
@pytest.mark.parametrize("allocator", STRICT)
def test_a_handler_inside_the_allocator_is_not_asked(folder, allocator,
                                                     sample):
    counters, = run_quietly(folder, "handler_inside", allocator, sample)
    assert counters["allocator_asked"] > 0


@pytest.mark.parametrize("sample", [1, 256])
def test_who_is_called_by_the_allocator_is_not_asked(folder, sample):
    counters, = run_quietly(folder, "call_inside", "libjemalloc_strict",
                            sample)
    assert counters["allocator_asked"] > 0


@pytest.mark.parametrize("allocator", STRICT)
def test_no_handler_runs_inside_a_question(folder, allocator):
    counters, = run_quietly(folder, "handler_in_question", allocator, 1)
    assert counters["allocator_asked"] > 0


def recorded_beside_stopped_threads(folder, sample):
    """How many of 50,500 blocks are recorded beside threads that stopped."""
    run = run_often(folder, "stopped_threads", "libjemalloc_strict", sample)
    assert run.seen == (0, b"ends\n", b"")
    path, = run.recordings
    sites = dump(path)["sites"]
    path.unlink()
    return sum(site["allocated_count"] for site in sites
               if "stopped_threads" in frame_functions(site))


def test_threads_that_never_go_on_are_not_waited_for(folder):
    recorded_beside_stopped_threads(folder, 256)
    counts = [recorded_beside_stopped_threads(folder, 1)]
    # They must stop with in hand what the main thread needs, or this proves
    # nothing; in 15 of 15 runs they did.
    while counts[-1] >= 50500 and len(counts) < 5:
        counts.append(recorded_beside_stopped_threads(folder, 1))
    assert counts[-1] < 50500


@pytest.mark.parametrize("case, allocator", [
    *(("forks", allocator) for allocator in (*TELLING, *STRICT)),
    *(("fork_storm", allocator) for allocator in TELLING)])
def test_a_fork_is_not_asked_in_its_middle(folder, case, allocator):
    for turn in range(3 if LONG else 1):
        own = folder / str(turn)
        own.mkdir()
        run = run_often(own, case, allocator, 1)
        assert run.seen == (0, b"", b"")
        # One of each child, and a look into some of them.
        assert len(run.recordings) == 81
        for path in run.recordings[::10]:
            dump(path, "--no-symbols")


def test_a_raw_child_is_not_asked(folder):
    run = run_often(folder, "sound_and_raw_children")
    assert run.status == 0 and run.stderr == b""
    sound, raw = map(int, run.stdout.split())
    counters = {document["pid"]: document["counters"] for document in
                (dump(path, "--no-symbols") for path in run.recordings)}
    assert counters[sound]["allocator_asked"] > 0
    assert counters[sound]["allocator_given_up"] == 0
    assert counters[raw]["allocator_asked"] == 0
    assert counters[raw]["allocator_given_up"] == 1


def test_a_raw_child_with_its_parents_number_is_not_asked(folder):
    need("unshare")
    alone = ["unshare", "--pid", "--fork"]
    if execute(alone + ["true"]).status != 0:
        pytest.skip("no namespace of processes to be had")
    run = run_often(folder, None,
                    argv=alone + [program("allocator_cases"),
                                  "sound_and_raw_children"])
    assert run.status == 0 and run.stderr == b""
    raw, = (document for document in
            (dump(path, "--no-symbols") for path in run.recordings)
            if document["pid"] == 1 and document["is_fork"])
    assert raw["counters"]["allocator_asked"] == 0
    assert raw["counters"]["allocator_given_up"] == 1


def test_a_slow_answer_is_the_last(folder):
    counters, = run_quietly(folder, "many_chunks", sample=65536)
    assert counters["allocator_asked"] > 0
    assert counters["allocator_given_up"] == 1


@pytest.mark.parametrize("allocator", TELLING)
def test_a_restricted_process_is_not_asked(folder, allocator):
    counters, = run_quietly(folder, "restrict_itself", allocator)
    assert counters["allocator_asked"] > 0
    assert counters["restricted"] == 1


def test_python_is_asked(folder):
    need("python3")
    script = "a = []\nfor i in range(300000): a.append('x' * (i % 1000))\n"
    run = run_often(folder, None, argv=["/usr/bin/python3", "-c", script],
                    sample=4096)
    assert run.seen == (0, b"", b"")
    path, = run.recordings
    assert dump(path, "--no-symbols")["counters"]["allocator_asked"] > 0
    assert os.path.exists(path)
