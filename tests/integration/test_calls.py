# SPDX-License-Identifier: LGPL-2.1-or-later
"""What programs say of themselves by seep.h is in the recording."""
import json

import pytest

from conftest import PRELOAD, execute, program, report

BLOCKS_BYTES = 100 * 10000
FORMS = ["calls", "calls_fixed"]


def only(run):
    path, = run.recordings
    return report(path)["processes"][0]


@pytest.mark.parametrize("form", FORMS)
def test_marks_units_and_labels_are_told(tmp_path, form):
    run = execute([program(form), "all"], tmp_path, sample=1,
                  SEEP_LABELS="model=bert,version=13,canary")

    assert run.status == 0, run.stderr
    process = only(run)
    assert [m["name"] for m in process["marks"]] == ["start", "warm-up done"]
    first, second = process["marks"]
    assert first["units"] == 0 and second["units"] == 100
    assert 0 <= first["t_s"] < second["t_s"] < process["process"]["duration_s"]
    assert process["process"]["units"] == 200
    assert process["process"]["labels"] == {
        "model": "bert-13", "version": "14", "canary": ""}


def test_labels_of_both_kinds_are_rows(tmp_path):
    for model in ("bert", "t5"):
        run = execute([program("calls"), "all"], tmp_path, sample=1,
                      SEEP_LABELS=f"given={model},version=13")

    rows = report("--by", "label", *run.recordings)["labels"]
    assert [(r["label"], r["value"], r["processes"]) for r in rows
            if r["label"] != "given"] == [("model", "bert-13", 2),
                                          ("version", "14", 2)]
    assert {r["value"] for r in rows if r["label"] == "given"} == {"bert",
                                                                   "t5"}


@pytest.mark.parametrize("form", FORMS)
def test_without_the_preload_nothing_happens(form):
    run = execute([program(form), "all"])

    assert run.seen == (0, b"nothing is recorded\n", b"")


@pytest.mark.parametrize("form", FORMS)
def test_who_may_not_be_recorded_may_speak(tmp_path, form):
    """Where it is not even known which process this is: with the rights of
    another, and behind a filter that nobody tried."""
    secure = execute([program(form), "all"], tmp_path, FAKED_AUXV="23=1",
                     LD_PRELOAD=f"{PRELOAD}:{program('faked_auxv.so')}")
    filtered = execute([program("filtered"), "100000=1", program(form), "all"],
                       tmp_path, preload=False, FILTERED_PRELOAD=PRELOAD)

    assert secure.seen == (0, b"nothing is recorded\n", b"")
    assert filtered.seen == secure.seen or filtered.status == 77
    assert filtered.recordings == []


def test_a_process_knows_what_it_holds(tmp_path):
    run = execute([program("calls"), "all"], tmp_path, sample=1)

    stats = json.loads(run.stdout)
    heap = sum(site["live_bytes"] for site in only(run)["sites"]
               if site["space"] in ("heap", "mapped"))
    assert stats["units"] == 200
    assert stats["live_bytes"] >= BLOCKS_BYTES
    assert abs(stats["live_bytes"] - heap) < 10000
    # 200 blocks a second of a program that sleeps: at most so fast.
    assert 0 < stats["growth"] < 2.5 * 200 * 10000


def test_what_threads_tell_adds_up(tmp_path):
    run = execute([program("calls"), "threads"], tmp_path, sample=1)

    assert only(run)["process"]["units"] == 4 * 25000


def test_what_threads_tell_while_the_recording_begins_counts(tmp_path):
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        run = execute([program("calls"), "beginning"], folder)

        assert run.status == 0, run.stderr
        child, = (p for p in (report(path)["processes"][0]
                              for path in run.recordings)
                  if p["process"]["fork"])
        assert child["process"]["units"] == 40


def test_a_signal_handler_may_speak(tmp_path):
    run = execute([program("calls"), "handler"], tmp_path, sample=1)

    assert run.status == 0, run.stderr
    process = only(run)
    assert process["process"]["units"] == int(run.stdout)
    assert process["process"]["labels"] == {"alarm": "yes"}
    told = sum(m["name"] == "alarm" for m in process["marks"])
    assert told > 0
    assert told + process["losses"]["marks_full"] <= int(run.stdout)


def test_a_child_speaks_of_itself(tmp_path):
    run = execute([program("calls"), "forked"], tmp_path, sample=1)

    processes = [report(path)["processes"][0] for path in run.recordings]
    child, = (p for p in processes if p["process"]["fork"])
    parent, = (p for p in processes if not p["process"]["fork"])
    assert [m["name"] for m in child["marks"]] == ["child"]
    assert [m["name"] for m in parent["marks"]] == ["parent"]
    assert child["process"]["units"] == 3
    assert parent["process"]["units"] == 11
    assert child["process"]["labels"] == {"role": "child"}
    assert parent["process"]["labels"] == {}


def test_who_speaks_for_ever_is_bounded_and_counted(tmp_path):
    run = execute([program("calls"), "many"], tmp_path, sample=1)

    assert run.status == 0
    process = only(run)
    marks = process["marks"]
    refused = process["losses"]["marks_full"]
    assert 64 <= len(marks) <= 1024
    # The label of the last entry that there was room for holds.
    labels = int(process["process"]["labels"]["id"]) + 1
    assert len(marks) + labels + refused == 2 * 5000


def test_a_call_changes_nothing_of_the_program(tmp_path):
    run = execute([program("calls"), "quiet"], tmp_path, sample=1)

    assert run.seen == (0, b"", b"")
    assert execute([program("calls"), "quiet"]).seen == run.seen
    assert [m["name"] for m in only(run)["marks"]] == ["x"]


@pytest.mark.parametrize("form", FORMS)
def test_what_the_loader_has_to_say_is_still_there(tmp_path, form):
    assert execute([program(form), "linker"]).seen == (0, b"", b"")
    assert execute([program(form), "linker"], tmp_path,
                   sample=1).seen == (0, b"", b"")


def test_a_program_with_another_struct_gets_what_it_has_room_for(tmp_path):
    run = execute([program("calls"), "old"], tmp_path, sample=1)

    assert run.status == 0


def test_who_is_in_a_sandbox_may_speak(tmp_path):
    run = execute([program("calls"), "strict"], tmp_path, sample=1)

    assert run.status == 0
    process = only(run)
    assert [m["name"] for m in process["marks"]] == ["before", "inside"]
    assert process["process"]["units"] == 7
    assert process["process"]["labels"] == {"box": "strict"}


def test_who_speaks_is_recorded_though_nothing_was_sampled(tmp_path):
    run = execute([program("calls"), "forked"], tmp_path)

    assert len(run.recordings) == 2


def test_programs_in_cxx_speak_too(tmp_path):
    run = execute([program("calls_cxx")], tmp_path, sample=1)

    assert run.stdout == b"recorded\n"
    process = only(run)
    assert [m["name"] for m in process["marks"]] == ["from C++"]
    assert process["process"]["units"] == 5
    assert execute([program("calls_cxx")]).stdout == b"nothing\n"
