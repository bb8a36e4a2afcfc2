# SPDX-License-Identifier: LGPL-2.1-or-later
"""A holder in C and C++ is told down to its member, where DWARF has it.

The programs say themselves which member has the blocks of which line.
"""
import json
import re
import shutil
import subprocess

import pytest

from command_line import recordings, seep
from conftest import environment, need, program
from zoo import MOVING, PROGRAMS, native_zoo

# C names its statics in functions as it likes: "only.0", "function.only".
LOCAL = re.compile(r"^(\w+\.)?only(\.\d+)?")
TRIES = 5


def kinds_of(source):
    """Those that a keeper of it is written for."""
    return re.findall(r"^KEEPER\((\w+),", (PROGRAMS / source).read_text(),
                      re.MULTILINE)


def told_as(holder):
    return LOCAL.sub("only", holder or "")


def held_by(kept, kind):
    """The first group; asked again while what holds them moves."""
    line, _, holder, _ = kept.truth[kind]
    for _ in range(TRIES):
        group = kept.held(line, *MOVING.get(kind, ()))
        if told_as(group["holder"]) == told_as(holder):
            break
    return group


def opened(folder, path):
    folder.mkdir()
    return native_zoo(folder, path)


def sites_by_function(kept):
    """{function: the site that keeps most}, where no lines are known, or false
    ones."""
    done = seep("report", "--json", "--sites", "0", "--no-series", "--no-held",
                kept.recording)
    sites = json.loads(done.stdout)["processes"][0]["sites"]
    return {site["where"].split()[-1]: site["id"]
            for site in sorted(sites, key=lambda site: site["live_bytes"])
            if site["where"]}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return tmp_path_factory.mktemp("members")


@pytest.fixture(scope="module")
def in_c(folders):
    with opened(folders / "c", program("holders_members")) as kept:
        yield kept


@pytest.fixture(scope="module")
def in_cxx(folders):
    with opened(folders / "cxx", program("holders_members_cc")) as kept:
        yield kept


def changed(folder, *how):
    """A copy of the C program by objcopy, in a folder of its own."""
    need("objcopy")
    folder.mkdir()
    copy = folder / "program"
    subprocess.run(["objcopy", *how, program("holders_members"), copy],
                   check=True)
    return copy


@pytest.fixture(scope="module")
def stripped(folders):
    copy = changed(folders / "bare", "--strip-debug")
    with opened(folders / "stripped", copy) as kept:
        yield kept


@pytest.fixture(scope="module")
def linked(folders):
    """What it stripped off lies beside it."""
    folder = folders / "beside"
    shutil.copy(program("holders_members"), folders / "whole")
    need("objcopy")
    debug = folders / "program.debug"
    subprocess.run(["objcopy", "--only-keep-debug", folders / "whole", debug],
                   check=True)
    copy = changed(folder, "--strip-debug", f"--add-gnu-debuglink={debug}")
    shutil.move(debug, folder)
    with opened(folders / "linked", copy) as kept:
        yield kept


@pytest.mark.parametrize("kind", kinds_of("holders_members.c"))
def test_a_member_in_c_is_named(in_c, kind):
    group = held_by(in_c, kind)

    assert told_as(group["holder"]) == told_as(in_c.truth[kind][2]), group
    assert group["end"] == "held" and group["share"] >= 0.6


@pytest.mark.parametrize("kind", kinds_of("holders_members.cc"))
def test_a_member_in_cxx_is_named(in_cxx, kind):
    group = held_by(in_cxx, kind)

    assert group["holder"] == in_cxx.truth[kind][2], group["chain"]
    assert group["end"] == "held" and group["share"] >= 0.6


def test_a_block_is_called_by_its_type(in_c):
    group = held_by(in_c, "below_a_pointer")

    assert "slots[...] of pool of 5" in group["chain"]
    assert "inner.pool of owner of 3" in group["chain"]
    step = next(step for step in group["steps"] if step["kind"] == "block")
    assert (step["by"], step["by_name"]) == ("attribute", "slots[...]")


RUST = """
use std::sync::Mutex;
pub struct Cache { pub count: u64, pub entries: Vec<Box<[u8; 4000]>> }
pub struct Service { pub number: u64, pub cache: Cache }
static SERVICE: Mutex<Service> = Mutex::new(Service {
    number: 1, cache: Cache { count: 0, entries: Vec::new() } });
static mut PLAIN: Service = Service {
    number: 1, cache: Cache { count: 0, entries: Vec::new() } };
#[allow(static_mut_refs)]
fn main() {
    for _ in 0..200 {
        let mut service = SERVICE.lock().unwrap();
        service.cache.entries.push(Box::new([1; 4000]));
        unsafe { PLAIN.cache.entries.push(Box::new([1; 4000])); }
    }
    eprintln!("ready"); // without a buffer, in which old words would stay
    std::thread::sleep(std::time::Duration::from_secs(600));
}
"""


def test_containers_of_rust_are_one_word(tmp_path):
    need("rustc")
    (tmp_path / "keep.rs").write_text(RUST)
    subprocess.run(["rustc", "-g", "keep.rs"], check=True, cwd=tmp_path)
    (tmp_path / "out").mkdir()
    with subprocess.Popen([tmp_path / "keep"], stderr=subprocess.PIPE,
                          env=environment(tmp_path / "out", sample=1)) as kept:
        kept.stderr.read(5)
        recording, = recordings(tmp_path / "out")
        report = seep("report", "--json", "--sites", "0", "--no-series",
                      "--no-held", recording)
        holders = set()
        for site in json.loads(report.stdout)["processes"][0]["sites"]:
            if site["live_count"] >= 100:
                done = seep("held", "--json", "--blocks", "400", "--site",
                            site["id"], recording)
                holders |= {group["holder"] for group in json.loads(
                    done.stdout)["sites"][0]["held"]["groups"][:2]}
        kept.kill()

    assert {"keep::PLAIN.cache.entries", "keep::SERVICE"} <= holders


def test_text_has_it_as_well(in_cxx):
    line, *_ = in_cxx.truth["in_a_map"]

    done = seep("held", "--site", in_cxx.sites[line], in_cxx.recording)

    assert b"held by  service.by_key" in done.stdout


def test_without_dwarf_words_are_as_before(stripped):
    stripped.sites = sites_by_function(stripped)
    for kind in ("in_a_list", "in_an_array"):
        group = stripped.held(kind)

        assert group["holder"] == "registry", group
        assert all(step["by"] != "attribute" for step in group["steps"])


def test_dwarf_may_lie_in_a_file_of_its_own(linked):
    assert held_by(linked, "in_a_list")["holder"] == "registry.head"


def test_dwarf_that_lies_is_not_believed_beyond_what_there_is(folders):
    """A type that is larger than the variable is another's."""
    source = (PROGRAMS / "holders_members.c").read_text()
    folder = folders / "lies"
    folder.mkdir()
    need("cc", "objcopy")
    for name, text in (("true", source), ("false", source.replace(
            "    long count;\n    struct node *head;",
            "    long count, more[200000];\n    struct node *head;"))):
        shutil.copy(PROGRAMS / "holders_members.h", folder)
        (folder / f"holders_{name}.c").write_text(text)
        subprocess.run(["cc", "-g", "-O1", "-fno-builtin", "-o",
                        folder / name, folder / f"holders_{name}.c"],
                       check=True)
    subprocess.run(["objcopy", "--only-keep-debug", folder / "false",
                    folder / "lie.debug"], check=True)
    subprocess.run(["objcopy", "--strip-debug", "--remove-section",
                    ".note.gnu.build-id",
                    f"--add-gnu-debuglink={folder / 'lie.debug'}",
                    folder / "true", folder / "holders"], check=True)
    with opened(folder / "run", folder / "holders") as kept:
        kept.sites = sites_by_function(kept)
        group = kept.held("in_a_list")

    assert group["holder"] == "registry", group
