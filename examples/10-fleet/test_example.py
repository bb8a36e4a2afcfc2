# SPDX-License-Identifier: LGPL-2.1-or-later
"""The example does what its README says: of real workers and of a simulated
fleet the queries find what was planted, since when, and how much, and no more.
"""
import contextlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import SEEP

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
WORKER_S = 40
LOADS = (15, 20, 25)
VERSIONS = ("1.4.1", "1.4.2")
PROCESSES = 100000 if os.environ.get("SEEP_TEST_LONG") else 10000
PLANTED = "1.4.2"
LEAK_BYTES = 850
SLACK = 0.02  # bytearray's own 57 bytes
sys.path[:0] = [str(HERE), str(SOURCE / "build-wheels")]

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not to be had")
fleet = __import__("fleet")


@pytest.fixture(name="digests", scope="module")
def digests_fixture(tmp_path_factory):
    """(folder of digests, what the workers told)"""
    folder = tmp_path_factory.mktemp("fleet")
    with contextlib.ExitStack() as stack:
        runs = [stack.enter_context(subprocess.Popen(
            [SEEP, "run", "--no-report", "--exact", "-o",
             folder / "%e.%p.seep", "--", sys.executable, HERE / "worker.py",
             version, str(WORKER_S), str(load)],
            stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(SOURCE / "tools/python")}))
            for version in VERSIONS for load in LOADS]
        with open(folder / "simulated.jsonl", "wb") as file:
            subprocess.run([sys.executable, HERE / "simulate.py",
                            str(PROCESSES), "1"], check=True, stdout=file)
        told = [json.loads(run.communicate(timeout=600)[0]) for run in runs]
    assert all(run.returncode == 0 for run in runs)
    with open(folder / "real.jsonl", "wb") as file:
        subprocess.run([SEEP, "digest", folder], check=True, stdout=file)
    return folder, told


@pytest.fixture(name="database", scope="module")
def database_fixture(digests):
    """With what the queries make."""
    return fleet.load(str(digests[0] / "*.jsonl"))


def rows(database, query):
    """As dictionaries."""
    found = database.sql(query)
    return [dict(zip(found.columns, row)) for row in found.fetchall()]


def of(database, program, place, clock):
    """{version: its row}"""
    return {row["version"]: row for row in rows(database, f"""
        from sites where program = 'python3 {program}' and clock = '{clock}'
        and "where" like '%{place}'""")}


def test_the_leak_of_real_workers_is_found_with_its_version(digests, database):
    told = [each for each in digests[1] if each["version"] == PLANTED]
    true = (sum(each["kept_bytes"] for each in told)
            / sum(each["requests"] for each in told))

    found = of(database, "worker.py", " handle", "unit")
    assert list(found) == [PLANTED]
    row = found[PLANTED]
    assert row["having_it"] == row["workers"] == row["leaks"] == len(LOADS)
    assert row["low"] <= true * (1 + SLACK) and true <= row["high"]
    assert row["growth"] == pytest.approx(true, rel=0.1)


def test_real_workers_agree_by_work_and_differ_by_time(database):
    by_work, = of(database, "worker.py", " handle", "unit").values()
    by_time, = of(database, "worker.py", " handle", "s").values()

    assert by_work["i2"] < 0.3 and by_time["i2"] > 0.75


def test_the_planted_rate_is_in_the_interval_of_each_version(database):
    found = of(database, "serve.py", " handle", "unit")

    assert sorted(found) == ["1.4.2", "1.5.0", "1.5.1"]
    for row in found.values():
        assert row["low"] <= LEAK_BYTES <= row["high"]
        assert row["high"] - row["low"] < 0.01 * LEAK_BYTES
        assert row["share"] > 0.99 and row["leaks"] == row["having_it"]
        assert row["i2"] < 0.1


def test_the_first_version_that_has_a_leak_is_the_one_it_was_planted_in(
        database):
    found = {(row["program"], row["first_version"], row["versions"])
             for row in rows(database, "from first_versions")}

    assert found == {("python3 serve.py", PLANTED, 3),
                     ("python3 worker.py", PLANTED, 1)}


def test_workers_do_not_agree_on_a_cache_by_either_clock(database):
    for clock in ("s", "unit"):
        found = of(database, "serve.py", " put", clock)
        assert len(found) == 6
        assert all(row["i2"] > 0.4 and row["leaks"] == 0
                   for row in found.values())


def test_what_one_in_a_hundred_has_by_chance_is_seen_as_such(database):
    found = of(database, "serve.py", " decode", "s")

    assert found and all(0 < row["share"] < 0.03 for row in found.values())


def test_workers_without_a_site_are_counted(database):
    counted = {row["program"]: row for row in rows(database, """select program,
        count(distinct process) as processes,
        count(distinct process) filter (site is null) as quiet
        from digests group by program""")}

    assert counted["python3 serve.py"]["processes"] == PROCESSES
    assert counted["python3 worker.py"]["processes"] == 2 * len(LOADS)
    assert counted["python3 worker.py"]["quiet"] == len(LOADS)


def test_simulated_lines_have_the_keys_of_real_ones(digests):
    with contextlib.ExitStack() as stack:
        real, simulated = (
            json.loads(stack.enter_context(
                open(digests[0] / f"{name}.jsonl", encoding="utf-8"))
                .readline()) for name in ("real", "simulated"))
    assert set(real) == set(simulated)


def test_clickhouse_says_the_same(digests, database):
    chdb = pytest.importorskip("chdb", reason="ClickHouse is not to be had")
    query = (HERE / "sites.clickhouse.sql").read_text(encoding="utf-8")
    answer = chdb.query(query, "JSONEachRow", params={
        "digests": str(digests[0] / "*.jsonl")})
    other = {(row["program"], row["version"], row["clock"], row["function_id"]):
             row for row in map(json.loads, str(answer).splitlines())}
    ours = rows(database, "from sites")

    assert len(ours) == len(other)
    for row in ours:
        same = other[row["program"], row["version"], row["clock"],
                     row["function_id"]]
        assert same["where"] == row["where"]
        for key in ("having_it", "workers", "leaks"):
            assert int(same[key]) == row[key], key
        for key in ("growth", "low", "high", "pooled", "q", "i2"):
            assert same[key] == pytest.approx(row[key], rel=1e-6, abs=1e-6)
    for row in rows(database, "from first_versions"):
        assert {each["first_version"] for key, each in other.items()
                if key[3] == row["function_id"]} == {row["first_version"]}
