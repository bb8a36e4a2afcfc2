# SPDX-License-Identifier: LGPL-2.1-or-later
"""A folder of very many recordings costs each reader little.

Invariant: what is asserted is what one more recording costs, in memory and in
pages that are touched, which no other work on the machine changes.

The full length (SEEP_TEST_LONG=1) is 10,000 recordings, which take less than
300 MB, and 5 s of a processor that nobody else uses.
"""
import dataclasses
import json
import os
import subprocess

import pytest

from command_line import PYTHON
from conftest import LONG, SEEP, environment, execute, need

FEW = 50
MANY = 10000 if LONG else 1500
MEMORY_BYTES = 300e6
CPU_S = 5
MORE_BYTES = MEMORY_BYTES / 10000
MORE_FAULTS = 100  # of 150 a hundred were of copies that were made anew
PROGRAM = """
#include <stdlib.h>
void *kept[100];
int main(void) { for (int i = 0; i < 100; i++) kept[i] = malloc(5000); }
"""
VERBS = [("report",), ("report", "--json", "--no-series"),
         ("report", "--json"), ("top", "--once"),
         ("check", "--max-growth", "1MiB/min"), ("metrics", "--once"),
         ("probe", "--max-growth", "1MiB/min")]


@pytest.fixture(name="folders", scope="module")
def folders_fixture(tmp_path_factory):
    """(few, many) recordings, each of them the same file."""
    recorded = tmp_path_factory.mktemp("recorded")
    source, main = recorded / "main.c", recorded / "main"
    need("cc")
    source.write_text(PROGRAM)
    subprocess.run(["cc", "-g", "-o", main, source], check=True)
    done = execute([main], recorded, sample=1)
    path, = done.recordings
    folders = []
    for count in (FEW, MANY):
        folder = tmp_path_factory.mktemp("many")
        folders.append(folder)
        for i in range(count):
            os.link(path, folder / f"{i}.seep")
    return folders


# A process begins with the most memory that whoever forked it had: here that of
# this small one.
MEASURE = """
import json, os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ,
                     file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull,
                                    os.O_WRONLY, 0)])
_, status, usage = os.wait4(pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), usage.ru_maxrss,
                  usage.ru_minflt, usage.ru_utime + usage.ru_stime]))
"""


@dataclasses.dataclass
class Cost:
    """Of a process and its children, as the system counted it."""
    code: int
    memory_kib: int
    faults: int
    cpu_s: float


def cost_of(*words):
    """What `seep` with these words takes."""
    done = subprocess.run([PYTHON, "-SEc", MEASURE, SEEP, *map(str, words)],
                          env=environment(), capture_output=True, check=True)
    cost = Cost(*json.loads(done.stdout))
    assert cost.code in (0, 1, 3, 4, 5, 6), done.stderr
    assert len(done.stderr.splitlines()) < 12, done.stderr
    return cost


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_one_more_recording_costs_little(folders, verb):
    few, many = (cost_of(*verb, folder) for folder in folders)
    more = MANY - FEW

    assert (many.memory_kib - few.memory_kib) * 1024 / more < MORE_BYTES
    assert (many.faults - few.faults) / more < MORE_FAULTS
    if LONG:
        assert many.memory_kib * 1024 < MEMORY_BYTES
        assert many.cpu_s < CPU_S


PYTHON_PROGRAM = """
import json, re
kept = [json.dumps({"a": i}) * 50 for i in range(2000)]
kept += [re.compile("a%d" % i) for i in range(300)]
"""
@pytest.fixture(name="pythons", scope="module")
def pythons_fixture(tmp_path_factory):
    """(few, many) recordings of a Python, each of them the same file; few is
    what is kept whole."""
    recorded = tmp_path_factory.mktemp("recorded")
    path, = execute([PYTHON, "-c", PYTHON_PROGRAM], recorded,
                    sample=65536).recordings
    folders = []
    for count in (60, 360):
        folder = tmp_path_factory.mktemp("pythons")
        folders.append(folder)
        for i in range(count):
            os.link(path, folder / f"{i:03}.seep")
    return folders


# Names are not asked for, since the child that knows them is the largest.
PYTHON_VERBS = [("report", "--no-symbols"),
                ("report", "--json", "--no-symbols"),
                ("check", "--max-growth", "1MiB/min", "--no-symbols"),
                ("top", "--once", "--no-symbols")]
PYTHON_MOST_BYTES = 24e3  # JSON, where all call sites were kept: 45e3
PYTHON_MOST_FAULTS = 60  # of 270 half were of series that were made anew


@pytest.mark.parametrize("verb", PYTHON_VERBS, ids=" ".join)
def test_one_more_python_costs_little(pythons, verb):
    few, many = (cost_of(*verb, folder) for folder in pythons)

    assert (many.memory_kib - few.memory_kib) * 1024 / 300 < PYTHON_MOST_BYTES
    assert (many.faults - few.faults) / 300 < PYTHON_MOST_FAULTS


def test_a_hole_that_is_packed_is_not_read(pythons, tmp_path):
    """Of 64 MiB a page at a time: 16,500 for each recording."""
    few, many = (cost_of("pack", "-o", tmp_path / folder.name, folder)
                 for folder in pythons)

    assert (many.faults - few.faults) / 300 < 1000


def test_of_many_is_told_what_is_told_of_few(pythons):
    """Of more than 64 not all is kept till the end."""
    def processes(folder):
        done = subprocess.run([SEEP, "report", "--json", folder],
                              env=environment(), capture_output=True,
                              check=True)
        found = json.loads(done.stdout)["processes"]
        for process in found:
            assert process["process"].pop("recording").startswith(str(folder))
        return [json.dumps(process) for process in found]

    few, many = map(processes, pythons)

    assert (len(few), len(many)) == (60, 360)
    assert len(set(few + many)) == 1


def test_limits_are_held_against_what_was_let_go(pythons):
    """A check of many measures each before it lets go of what tells it."""
    def results(folder):
        done = subprocess.run([SEEP, "check", "--json", "--max-drift", "1B",
                               "--cap", "heap=1B", "--max-growth", "1B/min",
                               folder], env=environment(),
                              capture_output=True, check=False)
        assert done.returncode == 3, done.stderr
        found = json.loads(done.stdout)["limits"]
        for result in found:
            assert result["process"].pop("path").startswith(str(folder))
        return [json.dumps(result) for result in found]

    few, many = map(results, pythons)

    assert (len(few), len(many)) == (180, 1080)
    assert len(set(few + many)) == 3


def test_families_are_those_of_whole_reports(pythons):
    """Of a process that was let go a family has a row for each call site; who
    asks for a part of the run keeps all of it."""
    def families(*words):
        done = subprocess.run([SEEP, "report", "--json", *words, pythons[1]],
                              env=environment(), capture_output=True,
                              check=True)
        document = json.loads(done.stdout)
        return document["summary"], document["families"]

    assert families() == families("--peak")
    assert len(families()[1][0]["members"]) == 360
