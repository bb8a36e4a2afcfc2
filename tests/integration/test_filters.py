# SPDX-License-Identifier: LGPL-2.1-or-later
"""A filter that kills for a system call, inherited by a program that never
makes it: recorded without it, or not recorded and told, never dead.
"""
import pathlib
import re

import pytest

from conftest import PRELOAD, SEEP, dump, execute, program

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TABLE = (SOURCE / "src/base/syscall.h").read_text(encoding="ascii")
NEED = dict(re.findall(r"^ +X\((\w+), (NEEDED|WANTED),", TABLE, re.M))
WORKER = [program("filtered_worker")]
SIGSYS = -31
OWN = re.findall(r"SEEP_CALL_BIT\((\w+)\)", re.search(
    r"#define OWN_CALLS(.*?)\n\n", (SOURCE / "tools/seep/cmd_run.c").read_text(
        encoding="ascii"), re.S)[1])


def numbers_of_calls():
    """{name: number} of this machine."""
    for path in pathlib.Path("/usr/include").glob("**/asm/unistd_64.h"):
        return {name: number for name, number in re.findall(
            r"#define __NR_(\w+) (\d+)", path.read_text(encoding="ascii"))}
    return {}


NUMBERS = numbers_of_calls()


def behind(names, argv, folder=None, **variables):
    """Run argv behind a filter that kills for these calls."""
    run = execute([program("filtered"), ",".join(NUMBERS[n] for n in names),
                   *argv], folder, preload=False, **variables)
    if run.status == 77:
        pytest.skip("no seccomp here")
    return run


def test_every_call_of_the_recorder_is_in_the_table():
    made = set()
    for layer in ("base", "record", "capture", "preload", "cuda"):
        for path in (SOURCE / "src" / layer).rglob("*.[ch]"):
            made |= set(re.findall(r"\bSYS_([a-z]\w*)",
                                   path.read_text(encoding="utf-8")))
    # Forwarded, or made by the program's own order.
    assert made - {"vfork", "exit_group", "seccomp", "shmat",
                   "shmdt"} <= set(NEED)


def test_the_list_in_docs_is_the_table():
    text = (SOURCE / "docs/recording.md").read_text(encoding="utf-8")
    lists = [set(re.findall(r"\w+", text.split(f"{before}: ")[1].split(".")[0]))
             for before in ("no recording", "if need be")]
    assert lists == [{name for name, need in NEED.items() if need == which}
                     for which in ("NEEDED", "WANTED")]


@pytest.mark.parametrize("name", sorted(NEED))
def test_the_preload_alone_makes_no_call_that_kills(name, folder):
    plain = behind([name], WORKER)
    if plain.status == SIGSYS:
        pytest.skip("the program itself makes it")
    run = behind([name], WORKER, folder, FILTERED_PRELOAD=PRELOAD)
    assert run.seen == plain.seen
    assert run.recordings == []


@pytest.mark.parametrize("name", sorted(NEED))
def test_seep_run_records_without_what_would_kill(name, folder):
    plain = behind([name], WORKER)
    if plain.status == SIGSYS:
        pytest.skip("the program itself makes it")
    run = behind([name], [SEEP, "run", "--no-report", "-o", f"{folder}/",
                          "--exact", "--", *WORKER], folder,
                 SEEP_PRELOAD=PRELOAD)
    if run.status == SIGSYS and name == "futex":
        pytest.xfail("the tool's libraries make it as they are loaded")
    assert (run.status, run.stdout) == (plain.status, plain.stdout)
    told = run.stderr.decode()
    if name == "write":  # there is no way to say it
        assert told == "" and run.recordings == []
        return
    assert f"seccomp filter: kills for {name}: " in told
    assert ("nothing will be recorded" in told) == (run.recordings == []), told
    assert (NEED[name] == "NEEDED" or name in OWN) == (run.recordings == [])
    assert "too little" not in told
    for path in run.recordings:
        assert dump(path)["sites"]


def test_limits_are_not_kept_by_a_command_that_nothing_records(folder):
    run = behind(["statfs"], [SEEP, "run", "-o", f"{folder}/", "--check",
                              "--max-growth 1GiB/min", "--", "true"], folder,
                 SEEP_PRELOAD=PRELOAD)
    assert run.status not in (0, SIGSYS)
    assert b"kills for statfs: nothing will be recorded" in run.stderr


def test_a_filter_that_kills_for_nothing_of_ours_costs_nothing(folder):
    run = behind(["swapon"], [SEEP, "run", "--no-report", "-o", f"{folder}/",
                              "--exact", "--", *WORKER], folder,
                 SEEP_PRELOAD=PRELOAD)
    assert b"seccomp" not in run.stderr
    assert dump(run.recordings[0])["losses"] == {}


def test_a_wrong_word_about_filters_is_not_believed(folder):
    for word in ("0:0", "99:0", "1:zz", "1", ":"):
        run = behind(["linkat"], WORKER, folder, FILTERED_PRELOAD=PRELOAD,
                     SEEP_FILTER=word)
        assert run.status == 3 and run.recordings == [], word


def test_a_filter_that_is_the_first_process_s_too_is_a_containers(folder):
    """Which refuses, and kills for nothing: recorded without a word."""
    run = execute(["unshare", "-pf", "--mount-proc", program("filtered"),
                   NUMBERS["swapon"], *WORKER], folder, preload=False,
                  sample=1, FILTERED_PRELOAD=PRELOAD)
    if run.status in (1, 77, 127):
        pytest.skip("no namespace of processes, or no seccomp, here")
    assert run.seen == (3, b"", b"")
    assert len(run.recordings) == 1
