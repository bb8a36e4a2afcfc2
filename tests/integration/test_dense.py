# SPDX-License-Identifier: LGPL-2.1-or-later
"""A recording that nobody gave a mean begins dense and thins as it costs; what
it costs is told, and it does not count as the program's.

Invariant: what is true comes of the program: the bytes it kept, by its word.
"""
import concurrent.futures
import pathlib
import re
import subprocess
import tempfile

import pytest

from conftest import (PRELOAD, SEEP, environment, execute, program,
                      report)

KIB = 1 << 10
MIB = 1 << 20
FIRST = 16 * KIB
SETTLED = 512 * KIB


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    return tmp_path


def only(document):
    """The report of the only process."""
    [one] = document["processes"]
    return one


def paced(folder, seconds, kept, turned, held, seed=1, **variables):
    """The report, and bytes a second that were kept."""
    run = execute([program("paced"), seconds, kept, turned, held, seed],
                  folder, timeout=seconds + 60, **variables)
    assert run.status == 0 and run.stderr == b""
    kept_bytes, passed_ns = map(int, run.stdout.split())
    [path] = run.recordings
    return only(report(path)), kept_bytes / (passed_ns / 1e9), path


def words(verb, path):
    done = subprocess.run([SEEP, verb, path], capture_output=True, check=False,
                          timeout=60)
    assert done.returncode in (0, 3, 4), done.stderr
    return done.stdout.decode()


def test_a_quiet_program_is_sampled_every_16_kib_to_its_end(folder):
    one, _, path = paced(folder, 3, 0, MIB, MIB)
    assert one["process"]["first_sample_bytes"] == FIRST
    assert one["process"]["sample_bytes"] == FIRST
    assert one["facts"]["thinnings"] == 0
    assert "sampled every 16 KiB; " in words("report", path)
    # Enough of it is seen to tell how much there is, to a tenth or so.
    live = sum(site["live_bytes"] for site in one["sites"])
    assert live == pytest.approx(MIB, rel=0.5)


def test_what_costs_much_is_thinned_to_512_kib_at_the_most(folder):
    one, _, path = paced(folder, 8, 0, 8 << 30, MIB)
    mean = one["process"]["sample_bytes"]
    assert FIRST < mean <= SETTLED
    assert 2 ** one["facts"]["thinnings"] * FIRST == mean
    rose_s = one["process"]["sample_rose_s"]
    assert 0 <= rose_s
    when = r" from \d[^(]*s on" if rose_s > 0 else ""
    said = rf"sampled every {mean // KIB} KiB{when} \(16 KiB at first\)"
    for verb in ("report", "info"):
        assert re.search(said, words(verb, path))


def test_a_mean_that_was_asked_for_keeps_to_a_budget(folder):
    one, _, path = paced(folder, 5, 0, 8 << 30, MIB, sample="16KiB",
                         SEEP_BUDGET="0.1")
    assert one["process"]["first_sample_bytes"] == 16 * KIB
    assert one["process"]["sample_bytes"] > 16 * KIB
    assert one["cost"]["budget"] == pytest.approx(0.001)
    assert " of the run (budget 0.1 %)" in words("report", path)


def test_an_exact_recording_has_no_budget(folder):
    one, _, path = paced(folder, 1, 0, MIB, MIB, sample=1, SEEP_BUDGET="0.01")
    assert one["process"]["sample_bytes"] == 1
    assert one["cost"]["budget"] is None
    assert "budget" not in words("report", path)
    done = subprocess.run(
        [SEEP, "run", "--exact", "--budget", "1", "--", "true"],
        capture_output=True, timeout=60, check=False)
    assert done.returncode == 2 and b"--budget" in done.stderr


@pytest.mark.parametrize("given, mean", [
    ("16KiB", 16 * KIB), ("64KiB", 64 * KIB), ("524288", 512 * KIB)])
def test_a_mean_that_was_asked_for_stays(folder, given, mean):
    one, _, path = paced(folder, 3, 0, 8 << 30, MIB, sample=given)
    assert one["process"]["first_sample_bytes"] == mean
    assert one["process"]["sample_bytes"] == mean
    assert one["facts"]["thinnings"] == 0
    assert "at first" not in words("report", path)


def test_seep_run_begins_dense_and_takes_a_mean(folder):
    for options, mean in [([], FIRST), (["--sample", "512KiB"], SETTLED)]:
        below = folder / str(mean)
        below.mkdir()
        done = subprocess.run(
            [SEEP, "run", "--no-report", "-o", f"{below}/", *options, "--",
             program("paced"), "1", "0", str(16 * MIB), str(16 * MIB), "1"],
            env={**environment(), "SEEP_PRELOAD": str(PRELOAD)},
            capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        [path] = below.glob("*.seep")
        assert (only(report(path))["process"]["first_sample_bytes"]) == mean


def test_who_records_a_little_is_left_out_as_before(folder):
    """Only what is recorded is dense: the first sample, which makes the
    recording, comes as seldom as with 512 KiB."""
    counts = {}
    for sample in (None, "16KiB"):
        runs = 12
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            def one(_, sample=sample):
                with tempfile.TemporaryDirectory(dir=folder) as name:
                    return len(execute([program("paced"), 0, 0, 0, 48 * KIB,
                                        1], pathlib.Path(name),
                                       sample=sample).recordings)
            counts[sample] = sum(pool.map(one, range(runs)))
    assert counts["16KiB"] > 6 > counts[None]


def test_the_cost_of_the_shortest_run_is_told(folder):
    for sample in (None, 1, SETTLED):
        below = folder / str(sample)
        below.mkdir()
        run = execute([program("paced"), 0, 0, 0, 4 * MIB, 1], below,
                      sample=sample)
        [path] = run.recordings
        cost = only(report(path))["cost"]
        assert 0 <= cost["seep_s"] < 10
        assert isinstance(cost["seep_s_at_most"], bool)
        for verb in ("report", "info"):
            said = [line for line in words(verb, path).splitlines()
                    if "cost" in line]
            assert said and "?" not in said[-1], said


def own_pages(path, pid):
    """Resident bytes of the mapping of @path, as the kernel says. It was made
    before it had its name."""
    inode = str(path.stat().st_ino)
    inside = False
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text(
            "utf-8").splitlines():
        fields = line.split()
        if not fields[0].endswith(":"):
            inside = fields[4] == inode
        elif inside and fields[0] == "Rss:":
            return int(fields[1]) * KIB
    raise AssertionError("it is not mapped")


@pytest.mark.parametrize("sample", [None, 1])
def test_the_recording_is_not_the_programs_shared_memory(folder, sample):
    """Its size is what smaps says of its mapping; `shared` is what is left."""
    process = subprocess.Popen(
        [program("paced"), "30", str(MIB), str(64 * MIB), str(16 * MIB), "1"],
        env=environment(folder, sample=sample), stdout=subprocess.DEVNULL)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(8)
        [path] = folder.glob("*.seep")
        true = own_pages(path, process.pid)
        rollup = pathlib.Path(f"/proc/{process.pid}/statm").read_text("ascii")
        one = only(report(path))
    finally:
        process.kill()
        process.wait()
    page = 4 * KIB
    shared = int(rollup.split()[2]) * page - true
    memory = one["memory"]
    assert true > 256 * KIB
    assert memory["own"]["last_bytes"] == pytest.approx(true, rel=0.3)
    assert memory["shared"]["last_bytes"] == pytest.approx(
        shared, abs=0.3 * true + 256 * KIB)
    total = sum(memory[part]["last_bytes"]
                for part in ("anonymous", "shared", "own"))
    assert total == pytest.approx(memory["rss"]["last_bytes"], abs=page)
    assert "its recording, mapped" in words("report", path)
    assert not one["verdict"]["shared_grows"]
