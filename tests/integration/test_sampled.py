# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sampled estimates are unbiased, and their intervals are honest."""
import concurrent.futures
import math
import os
import pathlib
import statistics
import tempfile

import pytest

from command_line import recordings, run
from conftest import LONG, dump, execute, program, read_truth, sums_by_site

RUNS = 200 if LONG else 40
# A site counts where the sampler kept enough for a normal interval to mean
# anything; which do is fixed by the program and the interval.
LIVE_SITES = ("site_tiny", "site_page", "site_mixed", "site_large",
              "site_halved", "site_regrown")


def one_run(sample, mebibytes, variables):
    with tempfile.TemporaryDirectory(prefix="seep-test-") as name:
        folder = pathlib.Path(name)
        run = execute([program("sampled"), mebibytes, folder / "truth.json"],
                      folder, sample=sample, **variables)
        assert run.seen == (0, b"", b"")
        document = dump(run.recordings[0])
        truth = read_truth(folder / "truth.json")
    return truth, document


def consistent(site):
    """allocated - freed = live, for the site and for each cohort."""
    problems = []
    if site["allocated_bytes"] - site["freed_bytes"] != site["live_bytes"]:
        problems.append("site")
    series = site["series"]
    for earlier, point in zip(series, series[1:]):
        if (earlier["live_bytes"] + point["allocated_bytes"]
                - point["freed_bytes"] != point["live_bytes"]):
            problems.append(("point", point))
    for point in series:
        if not 0 <= point["born_freed_bytes"] <= point["allocated_bytes"]:
            problems.append(("cohort", point))
    if series:
        if series[-1]["live_bytes"] != site["live_bytes"]:
            problems.append(("end", series[-1], site["live_bytes"]))
        survivors = sum(point["allocated_bytes"] - point["born_freed_bytes"]
                        for point in series)
        if survivors > site["live_bytes"]:
            problems.append(("survivors", survivors, site["live_bytes"]))
    return [(frame_path(site), problem) for problem in problems]


def frame_path(site):
    return "<".join(site["frames"][:4])


def estimates(sample, mebibytes, **variables):
    """{site: (truth, [(estimate, sigma)])} over all runs, and the runs."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = list(pool.map(
            lambda _: one_run(sample, mebibytes, variables), range(RUNS)))
    table = {}
    for truth, document in runs:
        assert document["losses"] == {}
        sums = sums_by_site(document["sites"], truth)
        for site in truth:
            seen = sums.get(site["name"], {"live_bytes": 0, "variance": 0})
            known, values = table.setdefault(
                site["name"], (site["live_bytes"], []))
            assert known == site["live_bytes"]
            values.append((seen["live_bytes"], math.sqrt(seen["variance"])))
    return table, [document for _, document in runs]


def judge(table):
    """Bias within its own error, intervals that cover as they promise."""
    covered, total = 0, 0
    for name in LIVE_SITES:
        truth, values = table[name]
        mean = statistics.mean(value for value, _ in values)
        spread = statistics.stdev(value for value, _ in values)
        hits = sum(abs(value - truth) <= 1.96 * sigma
                   for value, sigma in values)
        claimed = math.sqrt(statistics.mean(s * s for _, s in values))
        if spread < truth * 1e-4:
            # blocks so large that nearly each one is kept: nothing to cover
            assert abs(mean - truth) < truth * 1e-3
            continue
        print(f"{name:14} truth {truth} mean {mean:.0f} "
              f"bias {(mean - truth) / truth:+.4f} "
              f"z {(mean - truth) / (spread / math.sqrt(len(values))):+.2f} "
              f"sd {spread:.0f} claimed {claimed:.0f} "
              f"covered {hits}/{len(values)}")
        assert abs(mean - truth) < 4 * spread / math.sqrt(len(values))
        covered += hits
        total += len(values)
        if LONG:
            assert 0.91 <= hits / len(values) <= 0.99
    assert total > 0, "every site was kept whole: nothing was sampled"
    print(f"covered {covered}/{total} = {covered / total:.3f}")
    # four standard deviations where the runs are too few for 91 to 99 %
    slack = max(0.04, 4 * math.sqrt(0.95 * 0.05 / total))
    assert abs(covered / total - 0.95) <= slack
    gone, values = table["site_gone"]
    assert gone == 0
    assert all(value == 0 for value, _ in values)


@pytest.mark.parametrize("sample, mebibytes", [(512 << 10, 64), (64 << 10, 16)])
def test_estimates_are_unbiased_and_intervals_cover(sample, mebibytes):
    table, documents = estimates(sample, mebibytes)
    problems = [problem for document in documents
                for site in document["sites"] for problem in consistent(site)]
    assert problems == []
    assert all(document["sample_bytes"] == sample for document in documents)
    judge(table)


def test_estimates_stay_honest_after_four_thinnings():
    """A table far too small for the interval must thin and stay unbiased."""
    table, documents = estimates(512, 24, SEEP_SIZE=2 << 20)
    print("interval after thinning",
          sorted({document["sample_bytes"] for document in documents}))
    assert all(document["sample_bytes"] >= 16 * 512 for document in documents)
    assert all(document["counters"]["thinned_blocks"] > 0
               for document in documents)
    problems = [problem for document in documents
                for site in document["sites"] for problem in consistent(site)]
    assert problems == []
    judge(table)


def test_exact_mode_with_a_full_table_stays_honest():
    """Exact mode thins too, says so, and stays consistent."""
    _, document = one_run(1, 24, {"SEEP_SIZE": 4 << 20})
    assert document["began_exact"] and not document["exact"]
    assert document["sample_bytes"] > 1
    assert [problem for site in document["sites"]
            for problem in consistent(site)] == []


def blocks_at_least(sites, names, sample):
    """{site: so many blocks its live bytes take}, of the sites named.

    A block of so many bytes weighs them and the interval at most.
    """
    blocks = {}
    for site in sites:
        for name in sums_by_site([site], names):
            blocks[name] = (blocks.get(name, 0) + site["live_bytes"]
                            / (site["largest_bytes"] + sample))
    return {name: count for name, count in blocks.items() if count != 0}


@pytest.mark.parametrize("name", ["truth", "truth_new"])
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("sample", [64, 4096])
def test_what_was_freed_is_not_live_in_any_mode(folder, name, threads, sample):
    """No free of a sampled block is missed uncounted, whoever makes it."""
    run = execute([program(name), threads, 4000, folder / "truth.json"],
                  folder, sample=sample)
    assert run.seen == (0, b"", b"")
    document = dump(run.recordings[0])
    truth = read_truth(folder / "truth.json")
    missed = sum(document["losses"].get(name, 0) for name in (
        "dropped_frees", "torn", "nested"))
    live = blocks_at_least(
        document["sites"],
        [site for site in truth if site["live_bytes"] == 0],
        document["sample_bytes"])
    print("losses", document["losses"], "live", live)
    if threads == 1:
        assert missed == 0
    if missed == 0:
        assert live == {}
    assert sum(live.values()) <= missed
    sums = sums_by_site(document["sites"], truth)
    assert sum(entry["allocated_bytes"] for entry in sums.values()) > 0
    assert [problem for site in document["sites"]
            for problem in consistent(site)] == []


def test_a_command_that_allocates_little_is_recorded_or_that_is_said(tmp_path):
    """Whether a block of it is sampled is chance: a recording is of the command
    itself, and where there is none a sentence says why."""
    for i in range(8):
        folder = tmp_path / str(i)
        folder.mkdir()
        done = run(folder, "ls", "-lR", os.path.dirname(__file__), options=())
        names = [path.name for path in recordings(folder)]
        said = b"left no recording: it allocated too little" in done.stderr
        assert done.returncode == 0
        assert len(names) == (0 if said else 1), done.stderr
        assert all(name.startswith("seep.ls.") for name in names)
    folder = tmp_path / "exact"
    folder.mkdir()
    run(folder, "ls", os.path.dirname(__file__), options=("--exact",))

    assert len(recordings(folder)) == 1
