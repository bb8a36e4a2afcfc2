# SPDX-License-Identifier: LGPL-2.1-or-later
"""Families: workers that leak at one line are one leak with one forecast, and
children that are each too short are compared with each other.

Everything runs at once, once; each program has a time limit.
"""
import json
import math
import os
import pathlib
import subprocess

import pytest

from command_line import seep
from conftest import SEEP, execute, report
from crowd import crowd

SOURCE = pathlib.Path(__file__).parent / "programs" / "family.py"
PYTHON = "/usr/bin/python3"
EXACT = 1
SIZE = 8 << 20
WORKERS = 3
WORKER_S = 40
CHILDREN = 12
CHILD_S = 3
LIMIT_S = 240
SLACK = 0.15  # of a rate: imports, and a machine that is busy
JOBS = {
    "workers-leak": ("workers", "leak", WORKER_S, WORKERS),
    "workers-clean": ("workers", "clean", WORKER_S, WORKERS),
    "children-leak": ("children", "leak", CHILD_S, CHILDREN),
    "children-clean": ("children", "clean", CHILD_S, CHILDREN),
}


@pytest.fixture(name="runs", scope="module")
def runs_fixture(tmp_path_factory):
    """{job: (what was kept, recordings, document)}"""
    if not SEEP.exists():
        pytest.skip("the tool is not built")
    folders = {name: tmp_path_factory.mktemp(name) for name in JOBS}

    def run(name):
        done = execute((PYTHON, SOURCE, *JOBS[name]), folders[name],
                       timeout=LIMIT_S, sample=EXACT, SEEP_SIZE=SIZE)
        assert done.status == 0, done.stderr
        return (json.loads(done.stdout), folders[name],
                report(folders[name]))

    with crowd(len(JOBS)) as threads:
        return dict(zip(JOBS, threads.map(run, JOBS)))


def family_of(document):
    """That of the program, and not of a shell script that starts it."""
    found = [each for each in document["families"]
             if each["name"].endswith("family.py")]
    assert len(found) == 1, document["families"]
    return found[0]


def site_at(family, function):
    """The first of its sites in that function."""
    return next(each for each in family["sites"]
                if each["where"].endswith(" " + function))


def test_workers_that_leak_at_one_line_are_one_leak(runs):
    kept, _, document = runs["workers-leak"]
    family = family_of(document)
    true = sum(each["bytes"] / each["seconds"] for each in kept)

    assert family["class"] == document["summary"]["class"] == "leak"
    assert family["growing"] == WORKERS
    rate = family["growth_bytes_per_s"]
    assert rate["estimate"] == pytest.approx(true, rel=SLACK)
    assert rate["low"] < rate["estimate"] < rate["high"]
    line = family["sites"][0]
    assert line["where"].endswith(" keep")
    assert line["leaks"] == line["processes"] == WORKERS
    assert "keep" in family["sentence"]


def test_the_sum_is_that_of_the_processes(runs):
    document = runs["workers-leak"][2]
    family = family_of(document)
    rates = [document["processes"][index]["verdict"]["growth_bytes_per_s"]
             for index in family["members"]]
    rates = [rate for rate in rates if rate is not None]
    half = math.hypot(*(rate["estimate"] - rate["low"] for rate in rates))

    assert len(rates) == WORKERS
    total = sum(rate["estimate"] for rate in rates)
    assert family["growth_bytes_per_s"]["estimate"] == pytest.approx(total)
    assert family["growth_bytes_per_s"]["low"] == pytest.approx(total - half)


def test_one_forecast_is_sooner_than_that_of_each(runs):
    document = runs["workers-leak"][2]
    family = family_of(document)
    each = [process["verdict"]["forecast"]["seconds"]["estimate"]
            for process in document["processes"]
            if process["verdict"]["class"] == "leak"]

    assert family["forecast"]["answer"] == "time"
    together = family["forecast"]["seconds"]["estimate"]
    # Three alike have about a third of the time.
    assert together < min(each) / 2
    assert together > min(each) / 4


def test_the_answer_for_the_family_stands_first(runs):
    text = seep("report", runs["workers-leak"][1]).stdout.decode()
    lines = text.splitlines()
    answers = [line for line in lines if line.startswith("LEAK  ")]
    assert f"{WORKERS} of {WORKERS + 1} processes of python3 family.py" in (
        answers[0])
    assert "(pid " not in answers[0] and "(pid " in answers[1]


def test_top_has_the_line_of_the_sum_and_its_forecast(runs):
    _, folder, document = runs["workers-leak"]
    family = family_of(document)
    texts = {verb: seep(*verb.split(), folder, COLUMNS="400").stdout.decode()
             for verb in ("report", "top --once")}
    answers = {verb: text[text.index(f"LEAK  {family['sentence']}"):]
               .splitlines()[:2] for verb, text in texts.items()}

    assert "together grow by" in answers["top --once"][0]
    assert "will be reached in" in answers["top --once"][1]
    assert answers["top --once"] == answers["report"]
    alone = seep("top", "--once", next(folder.glob("*.seep"))).stdout
    assert b"processes of" not in alone


def test_workers_that_do_not_leak_are_no_family_that_does(runs):
    family = family_of(runs["workers-clean"][2])
    assert family["class"] not in ("leak", "suspect")
    assert family["growing"] == 0
    assert family["growth_bytes_per_s"] is None


def test_what_short_children_keep_is_found_with_its_line(runs):
    kept, _, document = runs["children-leak"]
    family = family_of(document)
    line = site_at(family, "keep")
    true = sum(each["bytes"] for each in kept)
    slope = line["kept"]["slope"]

    assert all(process["verdict"]["class"] == "insufficient-data"
               for index, process in enumerate(document["processes"])
               if index in family["members"] and process["process"]["fork"])
    assert family["children"]["count"] == CHILDREN
    assert family["class"] == "leak"
    assert line["kept"]["age"]["trend"] == "grows"
    assert line["kept"]["children"] == CHILDREN
    assert line["kept"]["bytes"] == pytest.approx(true, rel=SLACK)
    assert slope["low"] > 0
    # As much of each second as they kept of all seconds.
    seconds = sum(each["seconds"] for each in kept)
    assert slope["estimate"] == pytest.approx(true / seconds, rel=0.5)


def test_a_working_set_of_short_children_is_none(runs):
    kept, _, document = runs["children-clean"]
    family = family_of(document)
    line = site_at(family, "fill")

    assert family["class"] not in ("leak", "suspect")
    assert family["children"]["count"] == CHILDREN
    assert line["kept"]["trend"] == "once-per-process"
    assert line["kept"]["bytes"] == pytest.approx(
        sum(each["bytes"] for each in kept), rel=SLACK)


def test_a_limit_on_the_total_is_broken_by_all_of_them(runs):
    kept, folder, _ = runs["workers-leak"]
    true = sum(each["bytes"] / each["seconds"] for each in kept)
    limit = f"{int(true * 0.6)}/s"

    done = seep("check", "--json", "--max-growth", limit,
                "--max-growth-total", limit, folder)
    assert done.returncode == 3, done.stdout
    limits = json.loads(done.stdout)["limits"]
    # Each is well below; all together are above.
    assert [each["outcome"] for each in limits
            if each["limit"] == "growth"].count("fail") == 0
    total = [each for each in limits if each["limit"] == "growth-total"
             and each["family"]["name"].endswith("family.py")]
    assert [each["outcome"] for each in total] == ["fail"]
    assert total[0]["process"] is None
    assert total[0]["family"]["together"] == WORKERS + 1
    assert seep("check", "--max-growth-total", f"{int(true * 1.5)}/s",
                folder).returncode in (0, 4)


def test_metrics_have_the_sum(runs):
    family = family_of(runs["workers-leak"][2])
    text = seep("metrics", "--once", runs["workers-leak"][1]).stdout.decode()
    found = [line for line in text.splitlines()
             if line.startswith("seep_family_growth_bytes_per_second{")
             and 'family="python3 family.py"' in line]
    assert len(found) == 1
    assert float(found[0].split()[-1]) == pytest.approx(
        family["growth_bytes_per_s"]["estimate"], rel=1e-6)
    assert f'id="{family["id"]}"' in found[0]


def lines_of(*words):
    """What `seep digest` prints."""
    return [json.loads(line)
            for line in seep("digest", *words).stdout.splitlines()]


def grows(site):
    """Is it one of those that a digest tells?"""
    return site["class"] in ("leak", "suspect", "warming", "aging", "minor")


@pytest.mark.parametrize("job", ("workers-leak", "workers-clean"))
def test_a_digest_has_the_figures_of_the_report(runs, job):
    _, folder, document = runs[job]
    lines = lines_of(folder)

    for process in document["processes"]:
        who = process["process"]
        found = [line for line in lines if line["pid"] == who["pid"]]
        told = [site for site in process["sites"] if grows(site)]
        assert {key: value for key, value in found[0].items() if key in who
                and key not in ("process", "units")}.items() <= who.items()
        assert found[0]["verdict"] == process["verdict"]["class"]
        assert found[0]["hidden_bytes_per_s"] == (
            process["verdict"]["hidden_bytes_per_s"])
        assert found[0]["rss_bytes"] == process["memory"]["rss"]["last_bytes"]
        assert found[0]["growing_sites"] == len(told)
        assert [line["site"] for line in found] == (
            [site["id"] for site in told] or [None])
        for line, site in zip(found, told):
            growth = dict(line["growth_bytes_per_s"])
            growth.pop("variance")
            assert growth == site["growth_bytes_per_s"]
            for key in ("space", "device", "where", "class", "live_bytes",
                        "live_count", "peak_bytes", "confidence",
                        "growth_bytes_per_unit"):
                assert line[key] == site[key], key


def test_all_lines_of_a_digest_have_one_shape(runs):
    lines = lines_of(*(runs[job][1] for job in JOBS))

    assert len({tuple(line) for line in lines}) == 1
    assert {line["schema"] for line in lines} == {"seep-digest/1"}
    assert {line["site"] is None for line in lines} == {True, False}


def test_the_variance_of_a_digest_is_that_of_the_interval(runs):
    line, *_ = [line for line in lines_of(runs["workers-leak"][1])
                if line["class"] == "leak"]
    growth = line["growth_bytes_per_s"]

    half = 1.96 * math.sqrt(growth["variance"])
    assert growth["estimate"] - half == pytest.approx(growth["low"], rel=1e-3)
    assert growth["estimate"] + half == pytest.approx(growth["high"], rel=1e-3)
    assert growth == line["process_growth_bytes_per_s"]


def test_a_digest_of_workers_is_of_one_site_and_many_processes(runs):
    leaks = [line for line in lines_of(runs["workers-leak"][1])
             if line["class"] == "leak"]

    assert len(leaks) == len({line["process"] for line in leaks}) == WORKERS
    assert len({(line["site"], line["function_id"]) for line in leaks}) == 1


def test_what_cannot_be_read_costs_a_digest_one_line_on_stderr(runs, tmp_path):
    (tmp_path / "0.seep").write_bytes(b"none" * 2000)
    recording = next(runs["workers-leak"][1].glob("*.seep"))
    done = seep("digest", tmp_path, recording)

    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1 and b"0.seep" in done.stderr
    assert done.stdout == seep("digest", recording).stdout


def peak_bytes(words):
    """Of the memory of a command."""
    with open(os.devnull, "wb") as nothing:
        process = subprocess.Popen(words, stdout=nothing)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    assert status == 0
    return usage.ru_maxrss * 1024


def test_a_digest_of_many_recordings_takes_no_more_memory(runs, tmp_path):
    recordings = sorted(runs["workers-leak"][1].glob("*.seep"))

    def folder(count):
        path = tmp_path / str(count)
        path.mkdir()
        for index in range(count):
            os.link(recordings[index % len(recordings)],
                    path / f"{index}.seep")
        return path

    few, many = (peak_bytes([SEEP, "digest", folder(count)])
                 for count in (20, 400))
    assert many < 1.25 * few
