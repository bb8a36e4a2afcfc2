# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who holds a block, asked of the core files that a kernel wrote.

A kernel leaves out what nobody wrote to: the code and the constants of files
that were mapped, among them the names of Python's types. They are read from the
files, if these are still what the process had.

Invariant: what a zoo says of itself is the truth, and it does not go on.
"""
import json
import os
import pathlib
import resource
import shutil
import signal

import pytest

from command_line import PYTHON, seep
from conftest import program
from test_holders import NATIVE, SOME
from zoo import CLEAR, is_or_has, native_zoo, python_zoo

PATTERN = pathlib.Path("/proc/sys/kernel/core_pattern")


@pytest.fixture(name="folders", scope="module")
def folders_fixture(tmp_path_factory):
    if PATTERN.read_text().strip() not in ("core", "core.%p"):
        pytest.skip("the kernel gives cores to another program here")
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard != resource.RLIM_INFINITY:
        pytest.skip("there is a limit of core files")
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    yield tmp_path_factory.mktemp("cores")
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def ended(kept):
    """The zoo's core, once it has one."""
    kept.process.send_signal(signal.SIGABRT)
    kept.process.wait()
    core, = kept.folder.glob("core*")
    kept.core = core
    return kept


@pytest.fixture(name="pythons", scope="module")
def pythons_fixture(folders):
    """Of a copy of Python that can be replaced."""
    folder = folders / "python"
    folder.mkdir()
    copied = folder / "python"
    shutil.copy(os.path.realpath(PYTHON), copied)
    with python_zoo(folder, copied) as kept:
        yield ended(kept)


@pytest.fixture(name="natives", scope="module")
def natives_fixture(folders):
    folder = folders / "native"
    folder.mkdir()
    with native_zoo(folder, program("holders_cc")) as kept:
        yield ended(kept)


@pytest.mark.parametrize("kind", SOME)
def test_the_holder_is_who_the_program_said(pythons, kind):
    line, end, holder, _ = pythons.truth[kind]

    group = pythons.held(line, "--core", pythons.core)

    assert group["end"] == end, group
    if end == "held":
        assert is_or_has(group["holder"], holder), group["chain"]
    assert group["share"] >= CLEAR, group


@pytest.mark.parametrize("kind", NATIVE)
def test_the_holder_in_cxx_is_who_the_program_said(natives, kind):
    line, end, holder, _ = natives.truth[kind]

    group = natives.held(line, "--core", natives.core)

    assert group["end"] == end, group
    # without the names of threads, which a kernel's core does not have
    assert (group["holder"] or "").startswith(holder), group
    assert group["share"] >= CLEAR, group


def test_another_file_at_a_path_is_said_and_not_read(pythons):
    """As after an upgrade, or on another machine than the process's."""
    line, *_ = pythons.truth["list_attribute"]
    copied = pythons.folder / "python"
    kept = copied.read_bytes()
    copied.unlink()
    copied.write_bytes(kept[:64] + b"another" + kept[71:])
    try:
        held = pythons.answer(line, "--core", pythons.core)
        done = seep("held", "--core", pythons.core, "--site",
                    pythons.sites[line], pythons.recording)
    finally:
        copied.unlink()
        copied.write_bytes(kept)

    assert held["other_file"] == str(copied)
    assert b"is not the file that the process had" in done.stdout
    assert json.dumps(held["groups"]).count("audit") == 0


def test_of_a_core_that_was_cut_short_nothing_is_told_as_lost(pythons):
    """As by a full disk: what holds a block may be in what is missing."""
    line, *_ = pythons.truth["list_attribute"]
    cut = pythons.folder / "cut"
    whole = pythons.core.read_bytes()
    for share in (0.2, 0.4, 0.6, 0.8, 0.95):
        cut.write_bytes(whole[:int(share * len(whole))])
        held = pythons.answer(line, "--core", cut)
        done = seep("held", "--core", cut, "--site", pythons.sites[line],
                    pythons.recording)

        assert held["missing_bytes"] > 0
        assert not [group for group in held["groups"]
                    if group["end"] in ("lost", "cycle")], share
        assert b"are not in the core" in done.stdout


def test_of_the_right_files_nothing_is_said(pythons):
    line, *_ = pythons.truth["list_attribute"]

    held = pythons.answer(line, "--core", pythons.core)
    assert held["other_file"] is None
    assert held["missing_bytes"] == 0
