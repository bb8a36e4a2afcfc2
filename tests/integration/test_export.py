# SPDX-License-Identifier: LGPL-2.1-or-later
"""`seep export`: each format is opened by what reads it, and says what the
report of the same recording says."""
import collections
import csv
import functools
import io
import json
import os
import re
import shutil
import subprocess

import pytest

from command_line import PYTHON, recordings, run, seep
from conftest import BUILD, LONG, SEEP, memory_folder
from figures import differences, fields, numbers, profile_of, samples_of

MAKE = BUILD / "tests/integration/page_recordings"
FLAMEGRAPH = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"
# The part of speedscope's format that is ours, by its documentation.
NUMBER = {"type": "number"}
SPEEDSCOPE = {
    "type": "object",
    "required": ["$schema", "shared", "profiles"],
    "properties": {
        "$schema": {
            "const": "https://www.speedscope.app/file-format-schema.json"},
        "exporter": {"type": "string"},
        "activeProfileIndex": NUMBER,
        "shared": {
            "type": "object",
            "required": ["frames"],
            "properties": {"frames": {"type": "array", "items": {
                "type": "object",
                "required": ["name"],
                "additionalProperties": False,
                "properties": {"name": {"type": "string"},
                               "file": {"type": "string"},
                               "line": NUMBER}}}}},
        "profiles": {"type": "array", "minItems": 1, "items": {
            "type": "object",
            "additionalProperties": False,
            "required": ["type", "name", "unit", "startValue", "endValue",
                         "samples", "weights"],
            "properties": {
                "type": {"const": "sampled"},
                "name": {"type": "string"},
                "unit": {"enum": ["none", "bytes"]},
                "startValue": NUMBER,
                "endValue": NUMBER,
                "samples": {"type": "array", "items": {
                    "type": "array", "items": NUMBER}},
                "weights": {"type": "array", "items": NUMBER}}}},
    },
    "additionalProperties": False,
}
# An interpreter that starts has 10,000 stacks, of which this leaves 900. What
# the child keeps, 11 KiB a time, is sampled whatever the chance.
SAMPLING = ("--exact",) if LONG else ("--sample", "4K")
PROGRAM = """
import json, os, time
kept = []
def handle(i):
    kept.append(json.loads('{"a": [%s]}' % ','.join(map(str, range(500)))))
    return bytearray(200000)
def main():
    for i in range(400):
        handle(i)
    if os.fork() == 0:
        time.sleep(0.2)  # one that ends sooner is not recorded
        for i in range(40):
            handle(i)
        os._exit(0)
    os.wait()
    os.kill(os.getpid(), 9)
main()
"""


@pytest.fixture(scope="module", name="folder")
def record(tmp_path_factory):
    """A process that leaks and is killed, and its child."""
    folder = tmp_path_factory.mktemp("export")
    run(folder, PYTHON, "-c", PROGRAM, options=("--quiet", *SAMPLING))
    assert len(recordings(folder)) == 2
    return folder


@pytest.fixture(scope="module", name="leak")
def choose(folder):
    """The larger of them: what had most to say."""
    return max(recordings(folder), key=lambda path: path.stat().st_blocks)


@functools.lru_cache
def export(name, *words):
    """What it writes to stdout."""
    done = seep("export", "--format", name, *words)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    return done.stdout


@functools.lru_cache
def processes(path):
    """Those of the report by stack."""
    done = seep("report", "--json", "--by", "stack", "--no-series", path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["processes"]


def totals(path, figure):
    """{space: sum over all sites} of the report."""
    sums = collections.Counter()
    for process in processes(path):
        for site in process["sites"]:
            sums[site["space"]] += site[figure]
    return {space: total for space, total in sums.items() if total}


def folded(path, *words):
    """[(frames, weight)]"""
    lines = export("folded", path, *words).decode().splitlines()
    return [(stack.split(";"), int(weight)) for stack, weight in
            (line.rsplit(" ", 1) for line in lines)]


def folded_totals(path, what):
    sums = collections.Counter()
    for frames, weight in folded(path, "--what", what):
        sums[frames[0][1:-1]] += weight
    return dict(sums)


@functools.lru_cache
def profile(path):
    """{number of a field: its values}, of the whole."""
    return profile_of(export("pprof", path))


def pprof_samples(path):
    """[({type: value}, {label: text}, [locations])]"""
    return samples_of(profile(path))


TYPES = {"live": "inuse_space", "count": "inuse_objects",
         "allocated": "alloc_space", "allocations": "alloc_objects"}


def pprof_totals(path, what):
    sums = collections.Counter()
    for values, labels, _ in pprof_samples(path):
        sums[labels["space"]] += values[TYPES[what]]
    return {space: total for space, total in sums.items() if total}


WORDS = {"live": "bytes that live", "count": "blocks that live",
         "allocated": "bytes that were allocated",
         "allocations": "blocks that were allocated"}


def speedscope_totals(path, what):
    found = json.loads(export("speedscope", path))
    chosen, = [one for one in found["profiles"]
               if one["name"].endswith(": " + WORDS[what])]
    assert sum(chosen["weights"]) == chosen["endValue"]
    sums = collections.Counter()
    for stack, weight in zip(chosen["samples"], chosen["weights"]):
        sums[found["shared"]["frames"][stack[0]]["name"][1:-1]] += weight
    return dict(sums)


# What each format says of a weight: {space: sum}.
SAYS = {
    "folded": folded_totals,
    "pprof": pprof_totals,
    "speedscope": speedscope_totals,
}


def last_of_csv(path):
    """{space: what its sites hold in the end}"""
    rows = csv.DictReader(io.StringIO(export("csv", path).decode(),
                                      newline=""))
    held = {(row["space"], row["series"]): int(row["live_bytes"])
            for row in rows if row["series"] != "rss"}
    return summed((space, live) for (space, _), live in held.items())


def last_of_jsonl(path):
    lines = map(json.loads, export("jsonl", path).splitlines())
    return summed((line["space"], line["live_bytes"]) for line in lines
                  if line["type"] == "site")


def last_of_perfetto(path):
    events = json.loads(export("perfetto", path))["traceEvents"]
    last = {event["name"]: event["args"]["bytes"] for event in
            sorted((event for event in events if event["ph"] == "C"),
                   key=lambda event: event["ts"])}
    return {space: last[space] for space in totals(path, "live_bytes")}


def summed(pairs):
    sums = collections.Counter()
    for key, value in pairs:
        sums[key] += value
    return {key: total for key, total in sums.items() if total}


@pytest.mark.parametrize("ends", [last_of_csv, last_of_jsonl,
                                  last_of_perfetto])
def test_a_series_ends_at_what_the_report_says(leak, ends):
    assert ends(leak) == totals(leak, "live_bytes") != {}


@pytest.mark.parametrize("what,figure", [
    ("live", "live_bytes"), ("count", "live_count"),
    ("allocated", "allocated_bytes"), ("allocations", "allocated_count")])
@pytest.mark.parametrize("name", SAYS)
def test_each_format_says_what_the_report_says(leak, name, what, figure):
    wanted = totals(leak, figure)
    # Blocks that were sampled stand for parts of blocks, which are rounded.
    slack = 0 if LONG or figure.endswith("_bytes") else sum(
        len(process["sites"]) for process in processes(leak)) / 2
    assert wanted
    assert SAYS[name](leak, what) == pytest.approx(wanted, abs=slack, rel=0)


def test_folded_stacks_lead_from_python_to_malloc(leak):
    stacks = [frames for frames, _ in folded(leak)]
    names = [[frame.split(" ")[0] for frame in frames] for frames in stacks]
    assert any("main" in frames and "handle" in frames[frames.index("main"):]
               for frames in names)


@pytest.mark.skipif(not os.path.exists(FLAMEGRAPH),
                    reason="libdevel-nytprof-perl is not installed")
def test_folded_stacks_become_a_flame_graph(leak):
    done = subprocess.run(["perl", FLAMEGRAPH], input=export("folded", leak),
                          capture_output=True, check=True, timeout=60)
    assert b"<title>handle ((string):" in done.stdout
    assert done.stderr == b""


def test_a_profile_names_nothing_that_it_has_not(leak):
    found = profile(leak)
    ids = {kind: [dict(fields(one))[1] for one in found[number]]
           for kind, number in (("mapping", 3), ("location", 4),
                                ("function", 5))}
    for some in ids.values():
        assert 0 not in some and len(set(some)) == len(some)
    for one in found[4]:
        place = dict(fields(one))
        assert place.get(2, 0) in {0, *ids["mapping"]}
        assert (2 in place) == (3 in place)  # Python has neither
        for line in (value for number, value in fields(one) if number == 4):
            assert dict(fields(line))[1] in ids["function"]
    for _, labels, locations in pprof_samples(leak):
        assert set(locations) <= set(ids["location"])
        assert len(labels["site"]) == 16
    texts = [text.decode() for text in found[6]]
    assert len(set(texts)) == len(texts)
    for one in found[3]:
        assert re.fullmatch("([0-9a-f]{8,})?", texts[dict(fields(one)).get(
            6, 0)])


@pytest.fixture(name="other_first", scope="module")
def of_another_module(tmp_path_factory):
    """What a program takes before any frame of its own: of two processes."""
    path = tmp_path_factory.mktemp("profile") / "leak.seep"
    subprocess.run([MAKE, "leak", path], check=True, timeout=60)
    return path


@pytest.mark.parametrize("which", ["leak", "folder", "other_first"])
def test_a_profile_is_one_that_parca_takes(which, request):
    """Parca looks an id up as a place, and refuses what its validation of a
    written profile lists: ids in sequence, indices in range, as many values as
    types, labels with keys."""
    found = profile(request.getfixturevalue(which))
    texts = len(found[6])
    for number, named in (3, (5, 6)), (4, ()), (5, (2, 3, 4)):
        for place, one in enumerate(found[number], 1):
            parts = dict(fields(one))
            assert parts[1] == place
            assert all(parts.get(key, 0) < texts for key in named)
    for one in found[1]:
        assert all(0 < value < texts for value in dict(fields(one)).values())
    for sample in found[2]:
        parts = collections.defaultdict(list)
        for number, value in fields(sample):
            parts[number].append(value)
        assert len(numbers(parts[2][0])) == len(found[1])
        assert all(0 < each <= len(found[4])
                   for each in numbers(b"".join(parts[1])))
        for label in map(dict, map(fields, parts[3])):
            assert 0 < label[1] < texts and label.get(2, 0) < texts


def test_a_profile_is_of_the_types_that_pyroscope_documents(leak):
    """Memory profiles by their types and units, when and for how long, what a
    period is; compressed by gzip, as it is pushed."""
    assert export("pprof", leak)[:2] == b"\x1f\x8b"
    found = profile(leak)
    texts = [text.decode() for text in found[6]]
    kinds = [tuple(texts[index] for _, index in fields(one))
             for one in found[1]]
    assert kinds[:4] == [("alloc_objects", "count"), ("alloc_space", "bytes"),
                         ("inuse_objects", "count"), ("inuse_space", "bytes")]
    period = dict(fields(found[11][0]))
    assert (texts[period[1]], texts[period[2]]) == ("space", "bytes")
    start_ns, = found[9]
    duration_ns, = found[10]
    process = processes(leak)[0]["process"]
    assert duration_ns / 1e9 == pytest.approx(process["duration_s"])
    assert start_ns > 1.6e18
    assert texts[found[14][0]] == "inuse_space"
    # What has no mapping has a name.
    for one in found[4]:
        parts = dict(fields(one))
        assert 2 in parts or 4 in parts


def test_a_trace_is_of_events_as_their_format_documents_them(folder):
    """The trace event format: PyPI's perfetto opens traces with a program that
    it fetches from a network, which a test has not."""
    trace = json.loads(export("perfetto", folder))
    assert trace["displayTimeUnit"] in ("ms", "ns")
    seen = collections.Counter()
    for event in trace["traceEvents"]:
        seen[event["ph"]] += 1
        assert {"ph", "name", "pid", "ts"} <= set(event)
        assert isinstance(event["pid"], int) and event["ts"] >= 0
        if event["ph"] == "C":  # a counter: its series, all of them numbers
            assert event["args"]
            assert all(isinstance(value, (int, float))
                       for value in event["args"].values())
        elif event["ph"] == "M":
            assert event["name"] in ("process_name", "process_labels",
                                     "process_sort_index", "thread_name")
            assert event["args"]
        else:
            assert event["ph"] == "i" and event["s"] in ("g", "p", "t")
    assert seen["M"] >= 2 and seen["C"] > 10
    # Perfetto sorts; the counters of one track must not go back.
    last = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "C":
            track = event["pid"], event["name"]
            assert event["ts"] >= last.get(track, 0)
            last[track] = event["ts"]


def test_a_profile_has_the_verdict_of_the_report(leak):
    done = seep("report", "--json", "--no-series", leak)
    verdict = json.loads(done.stdout)["processes"][0]["verdict"]
    texts = [text.decode() for text in profile(leak)[6]]
    said = [texts[index] for index in
            numbers(b"".join(profile(leak)[13]))]
    assert any(verdict["sentence"] in one for one in said), said


def test_speedscope_shows_first_what_is_asked_for(leak):
    shown = [json.loads(export("speedscope", "--what", what, leak))
             ["profiles"][0]["name"] for what in ("count", "allocated")]
    assert all(name.endswith(": " + WORDS[what]) for name, what in
               zip(shown, ("count", "allocated"), strict=True))


def test_speedscope_reads_what_it_documents(leak):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(json.loads(export("speedscope", leak)), SPEEDSCOPE)


@pytest.mark.skipif(shutil.which("go") is None,
                    reason="golang-go is not installed")
def test_go_opens_a_profile(folder, tmp_path):
    path = tmp_path / "heap.pb.gz"
    export("pprof", "-o", path, folder)
    env = os.environ | {"HOME": str(tmp_path), "PPROF_TMPDIR": str(tmp_path),
                        "PPROF_BINARY_PATH": str(tmp_path)}
    for words in ((), ("-sample_index=alloc_objects",),
                  ("-sample_index=growth_per_second",)):
        done = subprocess.run(
            ["go", "tool", "pprof", "-top", "-cum", *words, path], env=env,
            capture_output=True, text=True, timeout=120, check=True)
        assert "Duration: " in done.stdout
        assert words or " handle\n" in done.stdout
    raw = subprocess.run(["go", "tool", "pprof", "-raw", path], env=env,
                         capture_output=True, text=True, timeout=120,
                         check=True).stdout
    assert "inuse_space/bytes[dflt]" in raw
    assert len(set(re.findall(r"pid:\[(\d+)", raw))) == 2
    assert "[FN]" in raw.split("Mappings\n")[1]


def test_processes_of_a_folder_are_told_apart(folder):
    roots = {frames[0] for frames, _ in folded(folder)}
    assert len(roots) == 2
    assert all(root.startswith("python3") for root in roots)


def test_a_recording_is_not_written_over(leak, tmp_path):
    copy = tmp_path / "x.seep"
    shutil.copy(leak, copy)
    done = seep("export", "--format", "folded", "-o", copy, leak)
    assert done.returncode == 2
    assert b"is a recording" in done.stderr
    assert copy.read_bytes() == leak.read_bytes()


def test_what_cannot_be_written_is_said(leak, tmp_path):
    for path in (tmp_path / "no/such/file", "/dev/full"):
        done = seep("export", "--format", "folded", "-o", path, leak)
        assert done.returncode == 1
        assert done.stderr.decode().startswith(f"seep: {path}: ")
        assert len(done.stderr.splitlines()) == 1


def test_a_file_that_was_written_is_whole(leak, tmp_path):
    path = tmp_path / "out"
    assert export("folded", "-o", path, leak) == b""
    assert path.read_bytes() == export("folded", leak)


def test_without_a_format_it_says_so(leak):
    done = seep("export", leak)
    assert done.returncode == 2
    assert b"--format" in done.stderr


def test_what_cannot_be_read_costs_the_exit_code_only(leak, tmp_path):
    done = seep("export", "--format", "folded", leak, tmp_path / "none")
    assert done.returncode == 1
    assert b"none" in done.stderr
    assert len(done.stdout.splitlines()) > 5


@pytest.mark.parametrize("part", ["peak", "middle"])
def test_a_part_of_a_run_has_the_figures_of_the_report(leak, part):
    end = processes(leak)[0]["process"]["duration_s"]
    words = ("--at", "peak") if part == "peak" else (
        "--since", f"{0.2 * end:.3f}s", "--until", f"{0.6 * end:.3f}s")
    done = seep("report", "--json", "--by", "stack", "--no-series", *words,
                leak)
    process, = json.loads(done.stdout)["processes"]
    for what, figure in ("live", "live_bytes"), ("allocated",
                                                 "allocated_bytes"):
        wanted = summed((site["space"], site["window"][figure])
                        for site in process["sites"])
        assert wanted, words
        said = summed((frames[0][1:-1], weight) for frames, weight in
                      folded(leak, "--what", what, *words))
        assert said == pytest.approx(wanted, abs=len(process["sites"]))


@pytest.mark.parametrize("kind", ["leak", "sample"])
def test_what_grows_grows_by_the_same_wherever_it_is_told(tmp_path, kind):
    path = tmp_path / f"{kind}.seep"
    subprocess.run([MAKE, kind, path], check=True, timeout=60)
    assert differences(path) == []


def most_of(command):
    """The most memory that it took, in bytes."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss * 1024


def test_the_largest_recording_takes_less_than_400_mb():
    formats = ("pprof", "folded", "speedscope", "perfetto", "csv", "jsonl")
    cases = [("--format", "pprof", "--at", "peak")]
    if LONG:
        cases += [("--format", name) for name in formats] + [
            ("--format", name, "--since", "20s", "--until", "60s")
            for name in formats[:3]]
    with memory_folder(1 << 28) as folder:
        path = folder / "large.seep"
        subprocess.run([MAKE, "large", path], check=True, timeout=120)
        for words in cases:
            most = most_of([SEEP, "export", *words, path])
            assert most < 400e6, words


def test_a_dash_is_stdout(leak, tmp_path):
    plain, dash = (seep("export", "--format", "folded", *words, leak,
                        cwd=tmp_path) for words in ((), ("-o", "-")))

    assert plain.stdout and dash.stdout == plain.stdout
    assert not list(tmp_path.iterdir())


def test_the_end_is_the_whole_run(leak):
    assert sorted(folded(leak, "--at", "end")) == sorted(folded(leak))


def test_a_part_that_is_not_there_is_said(leak):
    done = seep("export", "--format", "folded", "--at", "99h", leak)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"ended before" in done.stderr
    done = seep("export", "--format", "csv", "--at", "1s", leak)
    assert done.returncode == 2
    assert b"cannot be combined" in done.stderr
