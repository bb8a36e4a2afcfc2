# SPDX-License-Identifier: LGPL-2.1-or-later
"""`seep report` and `seep info`: what they say, and what they refuse.

Invariant: every process that is started here is waited for, with a limit.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from conftest import SEEP, environment
from command_line import (LIMIT_S, PYTHON, allocate, document, recordings, run,
                          seep)


# refusals

@pytest.fixture(name="recording", scope="module")
def recording_fixture(tmp_path_factory):
    """One good recording."""
    folder = tmp_path_factory.mktemp("good")
    run(folder, *allocate())
    return recordings(folder)[0]


def newer(data):
    """The same with a format version of the future."""
    changed = bytearray(data)
    changed[8:12] = (99).to_bytes(4, "little")
    return bytes(changed)


def older(data):
    """The same with the first format there was, whose hash is another."""
    changed = bytearray(data)
    changed[8:12] = (1).to_bytes(4, "little")
    return bytes(changed)


def damaged(data):
    """The same with a wrong section offset."""
    changed = bytearray(data)
    changed[60] ^= 0xFF
    return bytes(changed)


@pytest.mark.parametrize("make, reason", [
    (lambda data: b"", "is empty"),
    (lambda data: b"hello\n", "is not a seep recording"),
    (lambda data: os.urandom(100000), "is not a seep recording"),
    (lambda data: data[:5000], "is truncated"),
    (lambda data: data[:100], "is "),
    (newer, "has the newer format 99, of seep 0."),
    (older, "has the older format 1, of seep 0."),
    (damaged, "is damaged"),
])
def test_what_is_no_recording_is_one_line_and_the_rest_is_reported(
        tmp_path, recording, make, reason):
    bad = tmp_path / "bad.seep"
    bad.write_bytes(make(recording.read_bytes()))
    before = bad.read_bytes()

    done = seep("report", bad, recording)

    assert done.returncode == 1
    assert re.fullmatch(rf"seep: {bad}: {reason}.*; .+\n",
                        done.stderr.decode())
    assert b"seep: python3 -c" in done.stdout
    assert bad.read_bytes() == before


def one_refusal(path, *words):
    """`seep report` of one path that cannot be read; its line."""
    done = seep("report", path)
    assert done.returncode == 1
    assert done.stdout == b""
    line = done.stderr.decode()
    assert re.fullmatch(rf"seep: {path}: .+; .+\n", line), line
    for word in words:
        assert word in line
    return line


def test_a_fifo_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "fifo.seep")
    one_refusal(tmp_path / "fifo.seep", "FIFO")


def test_a_folder_without_recordings_is_refused(tmp_path):
    one_refusal(tmp_path, "contains no recordings")


def test_what_is_missing_is_refused(tmp_path):
    one_refusal(tmp_path / "nothing.seep", "does not exist")


def test_what_may_not_be_read_is_refused(tmp_path):
    if os.geteuid() != 0:
        closed = tmp_path / "closed.seep"
        closed.write_bytes(b"x")
        closed.chmod(0)
        one_refusal(closed)
        return
    # root may read all: as another user, in a folder that is open to it
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        closed = pathlib.Path(folder) / "closed.seep"
        closed.write_bytes(b"x")
        closed.chmod(0o600)
        tool = shutil.copy(SEEP, folder)
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534",
                               "--clear-groups", tool, "report", closed],
                              capture_output=True, timeout=LIMIT_S,
                              check=False)
    assert done.returncode == 1
    assert re.fullmatch(rf"seep: {closed}: .+; .+\n", done.stderr.decode())


def test_json_is_one_document_also_when_all_was_refused(tmp_path):
    done = seep("report", "--json", tmp_path)
    assert done.returncode == 1
    parsed = json.loads(done.stdout)
    assert parsed["schema"] == "seep-report/1"
    assert parsed["summary"]["refused"] == 1 and parsed["processes"] == []


def test_info_tells_of_a_recording(recording):
    done = seep("info", recording)
    assert done.returncode == 0
    assert b"call sites" in done.stdout
    parsed = json.loads(seep("info", "--json", recording).stdout)
    assert parsed["schema"] == "seep-info/1"
    assert parsed["recordings"][0]["tables"]["sites"]["used"] > 0


# Python

def write(path, text):
    """A file for an option."""
    path.write_text(text, encoding="utf-8")
    return path


def sites(*words, **variables):
    """Call sites of `seep report --json`."""
    done = seep("report", "--json", *words, **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["processes"][0]["sites"]


KEEP = '''\
def keep(kept):
    kept.append(bytearray(1 << 20))


def outer():
    kept = []
    for _ in range(64):
        keep(kept)
    return kept


held = outer()
'''


@pytest.fixture(name="kept", scope="module")
def kept_fixture(tmp_path_factory):
    """A recording of a Python program that holds 64 MiB at one line."""
    folder = tmp_path_factory.mktemp("kept")
    program = write(folder / "keep.py", KEEP)
    done = run(folder, PYTHON, program)
    assert done.returncode == 0, done.stderr
    return recordings(folder)[0]


def test_json_without_series_has_the_same_sites(kept):
    whole = json.loads(seep("report", "--json", kept).stdout)
    bare = json.loads(seep("report", "--json", "--no-series", kept).stdout)
    sites = whole["processes"][0]["sites"]

    assert any([site.pop("series") for site in sites])
    assert bare["processes"][0]["sites"] == sites


def kept_site(found):
    """The row that holds the 64 MiB."""
    return max(found, key=lambda site: site["live_bytes"])


def test_a_row_is_named_by_its_python_line(kept):
    site = kept_site(sites(kept))
    assert site["where"] == "keep.py:2 keep"
    python = [f for f in site["frames"] if f["kind"] == "python"]
    assert [(pathlib.Path(f["file"]).name, f["line"], f["function"])
            for f in python] == [("keep.py", 2, "keep"),
                                 ("keep.py", 8, "outer"),
                                 ("keep.py", 12, "<module>")]
    assert "native" in {frame["kind"] for frame in site["frames"]}
    text = seep("report", kept, COLUMNS="200").stdout.decode()
    assert re.search(r" keep\.py:2 keep( > \S+)+ < outer < <module>\n", text)


def test_the_interpreters_frames_are_folded_unless_asked_for(kept):
    site = kept_site(sites(kept))
    words = ("--site", site["id"], kept)
    text = seep("report", "--stack", *words).stdout.decode()
    assert re.search(r"\n    \S*/keep\.py:12 <module>\n"
                     r"    … \d+ frames in \S+.* …\n", text)
    whole = seep("report", "--whole-stack", *words).stdout.decode()
    assert "…" not in whole[whole.index("\nsite "):]
    assert whole.count("\n    ") >= len(site["frames"]) - 1


@pytest.mark.parametrize("by", ["line", "function", "module", "stack",
                                "thread", "label"])
def test_rows_are_what_was_asked_for(kept, by):
    done = seep("report", "--json", "--by", by, kept)
    assert done.returncode == 0, done.stderr
    process = json.loads(done.stdout)["processes"][0]
    assert process["by"] == by
    # sampled: 64 MiB, give or take 3
    assert kept_site(process["sites"])["live_bytes"] >= 40 << 20
    assert seep("report", "--by", by, kept).returncode == 0


def test_the_stacks_of_a_line_are_found_by_its_id(kept):
    line = kept_site(sites(kept))
    found = sites("--by", "stack", "--site", line["id"], kept)
    assert len(found) == line["stacks"]
    assert {site["line_id"] for site in found} == {line["id"]}
    assert line["line_id"] is None


def test_a_python_function_can_be_suppressed(kept, tmp_path):
    rules = write(tmp_path / "rules", "leak:^keep$\n")
    site = kept_site(sites("--suppressions", rules, kept))
    assert site["suppressed_by"] == "leak:^keep$"


def test_what_became_of_python_is_told(kept, tmp_path):
    told = document(kept)["processes"][0]["process"]["python"]
    assert re.fullmatch(r"3\.\d+(\.\d+\S*)?", told["version"])
    assert told["state"].startswith("on") and told["objects"] == "recorded"
    text = seep("info", kept).stdout.decode()
    assert f"\npython     {told['version']}; frames {told['state']}; " \
        f"objects {told['objects']}\n" in text
    run(tmp_path, *allocate(), options=["--python", "frames"])
    told = document(tmp_path)["processes"][0]["process"]["python"]
    assert told["objects"].startswith("not recorded: SEEP_PYTHON=objects")


# the verdict, and what the user knows beforehand

def test_the_verdict_alone_is_one_line_a_process(recording, tmp_path):
    copy = shutil.copy(recording, tmp_path / "copy.seep")
    done = seep("report", "--verdict", recording, copy, COLUMNS="40")
    assert done.returncode == 0
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 2
    for line in lines:
        assert re.fullmatch(r"INSUFFICIENT DATA  python3 \(pid \d+\): cannot "
                            r"tell yet .*\.", line)


def test_the_first_line_is_the_verdict_and_the_same_for_machines(recording):
    done = seep("report", recording, COLUMNS="1000")
    first = done.stdout.decode().splitlines()[0]
    verdict = document(recording)["processes"][0]["verdict"]
    assert first == f"INSUFFICIENT DATA  {verdict['sentence']}"
    text = done.stdout.decode()
    for advice in verdict["advice"]:
        assert advice in text


@pytest.mark.parametrize("columns", ["40", "80", "120", "1000"])
def test_no_line_is_wider_than_asked(recording, columns):
    text = seep("report", recording, COLUMNS=columns).stdout.decode()
    for line in text.splitlines():
        assert len(line) <= int(columns) or " " not in line.strip()


def test_colours_are_for_terminals_and_whoever_asks(recording):
    assert b"\033" not in seep("report", recording).stdout
    coloured = seep("report", "--color", "always", recording, NO_COLOR="1")
    assert coloured.stdout.startswith(b"\033[1m")
    plain = re.sub(rb"\033\[[0-9;]*m", b"", coloured.stdout)
    assert plain == seep("report", recording).stdout


def test_a_terminal_of_ascii_gets_ascii(kept):
    assert "…".encode() in seep("report", "--stack", kept, LC_ALL="C.UTF-8",
                                COLUMNS="60").stdout
    text = seep("report", "--stack", kept, LC_ALL="C", COLUMNS="60").stdout
    assert text.isascii() and b"..." in text


def test_the_text_has_its_parts_in_their_order(recording):
    text = seep("report", recording).stdout.decode()
    parts = ["INSUFFICIENT DATA", "\nseep: ", "\n class ", "\n memory ",
             "\n RSS ", "\nnext ", "\nseep  "]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_suppressions_are_told_counted_and_left_out(recording, tmp_path):
    rules = write(tmp_path / "rules", "# ours\nleak:*\nrace:other\n")
    for options, variables in (
            (("--suppressions", rules), {}),
            ((), {"SEEP_SUPPRESSIONS": f"{rules}:{rules}"})):
        found = sites(*options, recording, **variables)
        assert {site["suppressed_by"] for site in found} == {"leak:*"}
        text = seep("report", *options, recording, **variables).stdout
        assert b"suppressed (leak:*)" in text
        assert b"\n unclear" not in text
    shown = seep("report", "--suppressions", rules, "--show-suppressed",
                 recording).stdout
    assert b"suppressed by leak:*" in shown
    assert all(site["suppressed_by"] is None for site in sites(recording))


def test_a_bound_is_known_by_id_or_pattern(recording):
    site = sites(recording)[0]
    found = sites("--known", f"{site['id'][:8]}=1GiB", recording)[0]
    assert found["known_bound_bytes"] == 1 << 30
    frame = next(f["function"] for f in site["frames"]
                 if f["function"] and "+" not in f["function"])
    found = sites("--known", f"{frame}=24 MB", recording)[0]
    assert found["known_bound_bytes"] == 24 << 20 or \
        found["known_bound_bytes"] == 24000000


def test_the_users_patterns_are_hints(recording, tmp_path):
    frame = next(f["function"] for f in sites(recording)[0]["frames"]
                 if f["function"] and "+" not in f["function"])
    mine = write(tmp_path / "mine.json", json.dumps({
        "schema": "seep-patterns/1", "patterns": [{
            "id": "mine", "name": "my cache", "cause": "It keeps all.",
            "remedy": "Bound it.", "source": ["https://example.org/1"],
            "match": {"frames": [[{"function": f"^{frame}$"}]]}}]}))
    site = sites("--no-patterns", "--patterns", mine, recording)[0]
    assert site["pattern"]["id"] == "mine"
    assert site["pattern"]["source"] == "https://example.org/1"
    assert sites("--no-patterns", recording)[0]["pattern"] is None
    text = seep("report", "--stack", "--no-patterns", "--patterns", mine,
                recording).stdout.decode()
    assert "known: my cache" in text and "https://example.org/1" in text


def test_another_installations_patterns_are_not_taken(recording, tmp_path):
    """As from /usr/local/bin, beside a /usr/share that is another's."""
    for name, content in (("local/", '{"schema": "seep-patterns/1", '
                                     '"patterns": []}'), ("", "{")):
        folder = tmp_path / f"{name}share/seep"
        folder.mkdir(parents=True)
        write(folder / "patterns.json", content)
    (tmp_path / "local/bin").mkdir()
    moved = shutil.copy(SEEP, tmp_path / "local/bin/seep")
    done = subprocess.run([moved, "report", "--verdict", recording],
                          env=environment(), capture_output=True,
                          timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("option, content", [
    ("--suppressions", None), ("--suppressions", "nonsense\n"),
    ("--suppressions", "leak:\n"), ("--patterns", None),
    ("--patterns", "{"), ("--patterns", '{"schema": "other/1"}'),
])
@pytest.mark.parametrize("verb", ["report", "run"])
def test_a_file_that_cannot_be_used_is_one_line(tmp_path, recording, verb,
                                                option, content):
    path = tmp_path / "file"
    if content is not None:
        write(path, content)
    touched = tmp_path / "touched"
    words = (recording,) if verb == "report" else (
        "--report", "-o", f"{tmp_path}/", "--", "touch", touched)
    done = seep(verb, option, path, *words)
    assert done.returncode == 1
    assert done.stdout == b""
    assert re.fullmatch(rf"seep: {path}: .+; .+\n", done.stderr.decode())
    assert not touched.exists()


def test_a_full_disk_under_stdout_is_told(recording):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([SEEP, "report", recording], stdout=full,
                              stderr=subprocess.PIPE, timeout=LIMIT_S,
                              check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"seep: stdout: ")
