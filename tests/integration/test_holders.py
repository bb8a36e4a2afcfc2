# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who holds what, asked of programs that say themselves who does.

Of some kinds of holders; of all that there are, and of every CPython,
test_held_zoo.
"""
import json
import mmap
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time

import pytest

from command_line import PYTHON, allocate, recordings, run, seep, start
from conftest import PRELOAD, SEEP, allocator_path, environment, program
from zoo import MOVING, WAIT_S, is_or_has, native_zoo, python_zoo

SOME = ("list_attribute", "deque_attribute", "set_attribute", "module_dict",
        "class_dict", "slots", "closure", "unbounded_cache",
        "kept_exceptions", "uncollected_cycle", "suspended_generator",
        "pending_tasks", "tasks_that_leave_a_set", "local_of_a_thread",
        "calls_that_wait",
        "weakly_and_strongly", "default_argument", "logging_handler",
        "thread_local", "finalizers_of_objects", "far_below",
        "lost_reference", "lost_exception")
# What is asked may move on meanwhile: a list is made larger, and has left its
# place by the time that its place is looked for.
AGREE = 0.6
CLEAR = 0.5  # what has less is told as not clear
TRIES = 5


# A word of what usually mends it.
REMEDIES = {
    "list_attribute": "bound it", "dict_attribute": "the dict only grows",
    "deque_attribute": "no maxlen", "set_attribute": "the set only grows",
    "closure": "bound it", "default_argument": "default argument",
    "keyword_default": "default argument", "unbounded_cache": "a maxsize",
    "logging_handler": "removeHandler()",
    "kept_exceptions": "with_traceback(None)",
    "uncollected_cycle": "break the cycle", "thread_queue": "a maxsize",
    "asyncio_queue": "a maxsize", "pending_tasks": "await or cancel",
    "suspended_generator": "bound it",
    "tasks_that_leave_a_set": "await or cancel",
    "calls_that_wait": "until it returns",
    "lost_reference": "Py_DECREF", "lost_exception": "Py_DECREF",
}


def held_at_last(kept, line, end, *options):
    """The first group, asked again where what holds them had moved meanwhile:
    that is told as no answer, never as a wrong one."""
    for _ in range(TRIES):
        group = kept.held(line, *options)
        if group["end"] == end and group["share"] >= AGREE:
            break
        assert group["end"] != "held" or group["share"] < AGREE, group
    return group


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return tmp_path_factory.mktemp("zoo")


@pytest.fixture(scope="module")
def pythons(folders):
    folder = folders / "python"
    folder.mkdir()
    with python_zoo(folder, PYTHON) as kept:
        yield kept


@pytest.fixture(scope="module")
def natives(folders):
    folder = folders / "native"
    folder.mkdir()
    with native_zoo(folder, program("holders_cc")) as kept:
        yield kept


@pytest.mark.parametrize("kind", SOME)
def test_the_holder_is_who_the_program_says(pythons, kind):
    line, end, holder, _ = pythons.truth[kind]

    group = held_at_last(pythons, line, end, *MOVING.get(kind, ()))

    assert group["end"] == end
    if end == "cycle":
        assert "following of Node" in group["chain"]
    elif end == "lost":
        assert group["steps"][-1]["kind"] == "object", group["chain"]
    else:
        assert is_or_has(group["holder"], holder), group["chain"]
    assert group["share"] >= AGREE, group
    assert REMEDIES.get(kind, "") in (group["remedy"] or ""), group["chain"]


NATIVE = ("in_a_table", "in_a_list", "in_a_vector", "in_an_unordered_map",
          "in_a_deque", "behind_shared_pointers", "by_nobody",
          "in_a_freed_table", "by_each_other",
          "in_a_local", "in_a_chain")


@pytest.mark.parametrize("kind", NATIVE)
def test_the_holder_in_cxx_is_who_the_program_says(natives, kind):
    line, end, holder, _ = natives.truth[kind]

    group = held_at_last(natives, line, end, *MOVING.get(kind, ()))

    assert group["end"] == end, group
    assert (group["holder"] or "").startswith(holder), group
    assert group["share"] >= AGREE, group


@pytest.fixture(scope="module", params=("jemalloc", "tcmalloc", "mimalloc"))
def others(folders, request):
    """The same, of an allocator that puts no head before a block."""
    allocator_path(request.param)
    folder = folders / request.param
    folder.mkdir()
    with native_zoo(folder, program("holders_cc"),
                    allocator=request.param) as kept:
        yield kept


def test_what_an_allocator_has_freed_holds_nothing(others):
    """Which of its blocks are free no rule knows; that its own tables lead to
    them is known. Then it may be said that it is not clear."""
    line, *_ = others.truth["in_a_freed_table"]

    group = others.held(line, "--freeze", "10000")

    assert group["end"] != "held" or group["share"] < CLEAR, group


@pytest.mark.parametrize("kind", (
    "behind_unique_pointers", "by_an_object", "in_a_local", "in_a_vector",
    "by_nobody", "in_a_chain"))
def test_no_end_of_a_vector_and_no_free_list_is_a_holder(others, kind):
    """The end of one's room is where the next begins, and what is freed is in
    lists. Stopped: an array that is replaced meanwhile leaves its words behind
    a block of another's."""
    line, end, holder, _ = others.truth[kind]

    group = held_at_last(others, line, end, "--freeze", "10000")

    assert group["end"] == end, group
    assert (group["holder"] or "").startswith(holder), group
    # without heads, some of a local's blocks are seen by stale words first
    assert group["share"] >= CLEAR, group


@pytest.fixture(scope="module")
def unknown_blocks(folders):
    """Objects of CPython in blocks of which nobody knows where they begin."""
    allocator_path("jemalloc")
    folder = folders / "unknown"
    folder.mkdir()
    with python_zoo(folder, PYTHON, allocator="jemalloc") as kept:
        yield kept


@pytest.mark.parametrize("kind", (
    "class_dict", "class_with_metaclass", "member_of_an_enum", "thread_local"))
def test_a_class_is_found_where_nobody_knows_its_block(unknown_blocks, kind):
    line, end, holder, _ = unknown_blocks.truth[kind]

    group = held_at_last(unknown_blocks, line, end)

    assert group["end"] == end, group
    assert is_or_has(group["holder"], holder), group["chain"]
    assert group["share"] >= AGREE, group


@pytest.mark.parametrize("kind, words", [
    ("behind_a_graph", "detach()"), ("by_nobody", "missing free()")])
def test_what_mends_it_in_cxx_is_said(natives, kind, words):
    line, end, *_ = natives.truth[kind]

    group = held_at_last(natives, line, end)

    assert words in group["remedy"], group["chain"]


def test_a_class_is_named_by_its_type_information(natives):
    group = natives.held(natives.truth["by_an_object"][0])

    assert "Replies" in group["chain"]


def test_how_many_calls_have_not_returned_is_said(pythons):
    """None of them alone has more than its own block."""
    line, end, *_ = pythons.truth["calls_that_wait"]

    group = held_at_last(pythons, line, end)

    assert group["calls"] == group["blocks"] >= 8, group
    assert f", in {group['calls']} calls or more that have not returned" \
        in group["sentence"]
    line, end, *_ = pythons.truth["local_of_a_thread"]
    assert held_at_last(pythons, line, end)["calls"] is None


def test_keys_of_data_are_told_to_nobody(pythons):
    line, *_ = pythons.truth["dict_attribute"]

    done = seep("held", "--json", "--site", pythons.sites[line],
                pythons.recording)
    text = seep("held", "--site", pythons.sites[line], pythons.recording)

    assert b"holders.model.cache" in done.stdout
    assert b"key 1" not in done.stdout + text.stdout
    assert text.returncode == 0


def test_the_process_is_not_stopped(pythons):
    line, *_ = pythons.truth["module_list"]
    group = pythons.held(line)
    status = pathlib.Path(
        f"/proc/{pythons.process.pid}/status").read_text()

    assert group["end"] == "held"
    assert "T (stopped)" not in status
    assert pythons.process.poll() is None


def test_a_copy_of_the_recording_asks_as_well(pythons, tmp_path):
    """The recording that the process has mapped names all blocks: by its
    contents it is known to hold none, wherever the file that is read lies."""
    line, end, holder, _ = pythons.truth["module_list"]
    copy = tmp_path / "copy.seep"
    shutil.copy(pythons.recording, copy)

    done = seep("held", "--json", "--site", pythons.sites[line], copy)

    group = json.loads(done.stdout)["sites"][0]["held"]["groups"][0]
    assert group["end"] == end
    assert is_or_has(group["holder"], holder), group["chain"]


def test_a_version_of_python_that_is_not_known_is_said(pythons, tmp_path):
    """Its objects have no names then."""
    line, *_ = pythons.truth["module_list"]
    copy = tmp_path / "copy.seep"
    version = subprocess.run(
        [PYTHON, "-c", "import sys; print(sys.hexversion)"],
        capture_output=True, check=True).stdout
    recorded = bytearray(pathlib.Path(pythons.recording).read_bytes())
    at = recorded.index(struct.pack("<I", int(version)), 0, mmap.PAGESIZE)

    for newer in (int(version), 0x031000f0):
        struct.pack_into("<I", recorded, at, newer)
        copy.write_bytes(recorded)
        done = seep("held", "--site", pythons.sites[line], copy,
                    COLUMNS="200").stdout.decode()
        assert ("python   objects of Python 3.16.0 are not known, those of "
                "3.8 to 3.15 are: its blocks have no names" in done) == \
            (newer == 0x031000f0), done
        assert ("holders.store" in done) == (newer != 0x031000f0), done
        document = json.loads(seep("held", "--json", "--site",
                                   pythons.sites[line], copy).stdout)
        assert document["python_known"] == (newer != 0x031000f0)
        assert document["python_version"].startswith(
            "3.16.0" if newer == 0x031000f0 else "3.")


UNTOUCHED = """if True:
    import ctypes, mmap, sys, threading, time
    file = open(sys.argv[1], "w+b")
    file.truncate(1 << 20)
    shared = mmap.mmap(file.fileno(), 1 << 20)
    private = mmap.mmap(file.fileno(), 1 << 20, flags=mmap.MAP_PRIVATE)
    anonymous = mmap.mmap(-1, 1 << 24, flags=mmap.MAP_PRIVATE)
    zeros = bytearray(1 << 24)
    for _ in range(4):
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    kept = [bytearray(100000) for _ in range(400)]
    print("waits", flush=True)
    time.sleep(600)
"""


def pages_of(pid):
    """What the kernel counts as its, and in each mapping what is there."""
    there = {}
    with open(f"/proc/{pid}/pagemap", "rb") as pagemap:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            if start < 1 << 47:
                pagemap.seek(start // mmap.PAGESIZE * 8)
                entries = pagemap.read((end - start) // mmap.PAGESIZE * 8)
                there[line] = sum(byte >> 7 for byte in entries[7::8])
    return pathlib.Path(f"/proc/{pid}/statm").read_text(), there


def test_who_is_asked_is_given_no_page(tmp_path):
    """Not one that it never touched, of a file or of none; also by a copy of
    the recording, for which all that is mapped is looked at."""
    with start(tmp_path, PYTHON, "-c", UNTOUCHED, tmp_path / "file") as process:
        try:
            assert process.stdout.readline() == b"waits\n"
            recording, = recordings(tmp_path)
            copy = tmp_path / "copy"
            shutil.copy(recording, copy)
            pid = json.loads(seep("report", "--json", copy).stdout)[
                "processes"][0]["process"]["pid"]
            before = pages_of(pid)

            for path in recording, copy:
                done = seep("held", path)

                assert b"kept, a list of 400 items" in done.stdout, done
                assert pages_of(pid) == before
        finally:
            os.kill(pid, signal.SIGKILL)


def test_a_process_that_was_frozen_goes_on(pythons):
    line, _, holder, _ = pythons.truth["linked_list"]

    done = seep("held", "--json", "--freeze", "10000", "--site",
                pythons.sites[line], pythons.recording)

    held = json.loads(done.stdout)["sites"][0]["held"]
    assert held["frozen_s"] > 0
    assert held["groups"][0]["holder"].startswith(holder)
    status = pathlib.Path(f"/proc/{pythons.process.pid}/status").read_text()
    assert "State:\tT" not in status


def test_who_only_is_named_by_a_recording_is_not_stopped(pythons, tmp_path):
    copy = tmp_path / "copy.seep"
    shutil.copy(pythons.recording, copy)

    done = seep("held", "--freeze", "10000", copy)

    assert done.returncode == 1 and done.stdout == b""
    assert b"names a process that does not write it" in done.stderr


def test_who_was_stopped_by_another_stays_stopped(pythons):
    path = pathlib.Path(f"/proc/{pythons.process.pid}/status")
    os.kill(pythons.process.pid, signal.SIGSTOP)
    try:
        end = time.monotonic() + WAIT_S
        while "State:\tT" not in path.read_text():
            assert time.monotonic() < end
            time.sleep(0.05)
        pythons.held(pythons.truth["module_list"][0], "--freeze", "1000")
        assert "State:\tT" in path.read_text()
    finally:
        os.kill(pythons.process.pid, signal.SIGCONT)


def test_who_asks_may_be_killed_while_it_is_frozen(pythons):
    asker = subprocess.Popen(
        ["timeout", "-s", "KILL", "0.2", *map(str, (
            pathlib.Path(os.environ.get("SEEP", "build/tools/seep/seep")),
            "held", "--freeze", "1000", pythons.recording))],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=environment())
    asker.wait(timeout=WAIT_S)

    path = pathlib.Path(f"/proc/{pythons.process.pid}/status")
    end = time.monotonic() + WAIT_S
    while "State:\tT" in path.read_text():
        assert time.monotonic() < end, "it was left stopped"
        time.sleep(0.05)


def test_the_answer_stands_first(pythons):
    line, *_ = pythons.truth["list_attribute"]

    done = seep("held", "--site", pythons.sites[line], pythons.recording)

    words = done.stdout.decode()
    assert "held by  holders.model.history, a list of " in words
    assert "item of list <- history of Model <- model of module" in words
    assert "the process was not stopped" in words


def test_a_process_that_is_gone_is_said(tmp_path):
    run(tmp_path, *allocate())
    path, = recordings(tmp_path)

    done = seep("held", path)

    assert done.returncode == 4
    words = b" ".join(done.stdout.split())
    assert b"not known: the process is not running here" in words
    assert b"--core" in words


@pytest.mark.parametrize("moment", range(6))
def test_who_is_killed_while_it_is_asked_is_not_told_to_have_lost(tmp_path,
                                                                  moment):
    """Whatever was read of it till then: who holds it, or that it has gone."""
    with native_zoo(tmp_path, program("holders")) as kept:
        site = kept.sites[kept.truth["in_chains_of_a_table"][0]]
        with subprocess.Popen(
                [SEEP, "held", "--site", site, kept.recording],
                env=environment(), stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True) as asker:
            time.sleep(0.01 * 2 ** moment)
            os.killpg(kept.process.pid, signal.SIGKILL)
            out, err = asker.communicate(timeout=WAIT_S)
        assert asker.returncode in (0, 1, 4), (out, err)

    words = b" ".join(out.split())
    if asker.returncode == 0:
        assert b"held by table_of_items" in words, words
    elif asker.returncode == 4:
        assert b"the process is not running here" in words, words
    else:
        assert b"the process has ended meanwhile" in err, err


def test_what_is_no_core_is_said(tmp_path):
    run(tmp_path, *allocate())
    path, = recordings(tmp_path)

    done = seep("held", "--core", path, path)

    assert done.returncode == 1
    assert b"is not a core file" in done.stderr


def test_too_few_blocks_tell_nothing(tmp_path):
    """Of four blocks nothing is said, and it is no fault."""
    command = allocate("print(flush=True); time.sleep(600)", count=4)
    with start(tmp_path, *command) as child:
        try:
            child.stdout.readline()
            path, = recordings(tmp_path)
            done = seep("held", path)
        finally:
            os.killpg(child.pid, signal.SIGKILL)

    assert done.returncode == 4
    assert b"8 are needed to tell" in done.stdout


DEQUE = """
import collections, sys, time
kept = collections.deque()
def keep():
    kept.append(bytearray(4096))
for _ in range(200):
    keep()
print(flush=True)
time.sleep(600)
"""


def test_blocks_of_a_deque_that_are_asked_for_are_held_by_it_as_well(tmp_path):
    """The line of append() allocates the blocks of the deque, too."""
    with subprocess.Popen(
            [PYTHON, "-c", DEQUE], stdout=subprocess.PIPE,
            start_new_session=True, env=environment() | {
                "LD_PRELOAD": str(PRELOAD), "SEEP_OUT": f"{tmp_path}/",
                "SEEP_SAMPLE": "1"}) as child:
        try:
            child.stdout.readline()
            path, = recordings(tmp_path)
            text = seep("report", "--json", "--sites", "0", path).stdout
            site, = [site["id"] for site in
                     json.loads(text)["processes"][0]["sites"]
                     if (site["where"] or "").endswith(":5 keep")
                     and site["space"] == "heap"]
            done = seep("held", "--json", "--blocks", "300", "--site", site,
                        path)
        finally:
            os.killpg(child.pid, signal.SIGKILL)

    held = json.loads(done.stdout)["sites"][0]["held"]
    assert held["asked"] > 150
    assert held["groups"][0]["holder"] == "__main__.kept"
    assert held["groups"][0]["share"] >= 0.98, held["groups"]


def test_what_a_forked_child_has_added_to_its_heap_is_known(tmp_path):
    """Its heap is two mappings, and the blocks of both are found."""
    with subprocess.Popen(
            [program("held_forked")], stdout=subprocess.PIPE,
            start_new_session=True, env=environment() | {
                "LD_PRELOAD": str(PRELOAD), "SEEP_OUT": f"{tmp_path}/",
                "SEEP_SAMPLE": "65536"}) as parent:
        try:
            child = parent.stdout.readline().decode().strip()
            maps = pathlib.Path(f"/proc/{child}/maps").read_text()
            done = seep("held", "--json", child)
        finally:
            os.killpg(parent.pid, signal.SIGKILL)

    assert maps.count("[heap]") > 1, "this kernel joins them"
    assert done.returncode == 0, done.stderr
    site, = json.loads(done.stdout)["sites"]
    group = site["held"]["groups"][0]
    assert (group["end"], group["holder"]) == ("held", "room"), group
    assert "[...] of block of 96 B <- global room" in group["chain"]
    assert group["share"] >= AGREE, group
