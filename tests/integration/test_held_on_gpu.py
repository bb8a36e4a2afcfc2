# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who holds memory of a device: of tensors, of what a program asked the driver
for itself, and of pinned memory; asked of a process that goes on."""
import json
import pathlib
import re

import pytest

from command_line import PYTHON, seep
from conftest import BUILD, PROGRAMS, SEEP
from zoo import zoo

PROGRAM = pathlib.Path(__file__).parent / "programs" / "held_on_gpu.py"
LIBRARIES = PROGRAMS / "fake_torch"
COUNT = 40
KINDS = ("numbers", "tensors", "losses", "lost", "device", "pinned", "pool",
         "segments")


@pytest.fixture(name="answers", scope="module")
def answers_fixture(tmp_path_factory):
    """{kind: what it says of itself, and the first group that is told of it}"""
    if not SEEP.exists():
        pytest.skip("the tool is not built")
    if not (LIBRARIES / "libfake_tensors.so").exists():
        pytest.skip("there is no compiler of C++")
    folder = tmp_path_factory.mktemp("gpu")
    ready = folder / "ready"
    with zoo(folder, PYTHON, PROGRAM, ready, COUNT,
             SEEP_FAKE_TORCH=str(LIBRARIES), SEEP_CUDA="tensors",
             LD_LIBRARY_PATH=f"{BUILD / 'tests/fake'}:{LIBRARIES}") as kept:
        done = seep("report", "--json", "--sites", "0", "--no-series",
                    "--no-held", kept.recording)
        sites = {}
        for site in json.loads(done.stdout)["processes"][0]["sites"]:
            line = re.match(r"held_on_gpu[^:]*:(\d+) ", site["where"] or "")
            if line:
                sites[site["space"], int(line[1])] = site["id"]
        answers = {}
        for kind, (space, line, *truth) in json.loads(
                ready.read_text()).items():
            said = seep("held", "--json", "--site", sites[space, line],
                        kept.recording)
            assert said.returncode == 0, (kind, said.stderr)
            site, = (site for site in json.loads(said.stdout)["sites"]
                     if site["space"] == space)
            answers[kind] = truth, site["held"]
    return answers


@pytest.mark.parametrize("kind", KINDS)
def test_the_holder_is_who_the_program_says_and_no_cache(answers, kind):
    (end, holder), held = answers[kind]
    group = held["groups"][0]

    assert group["end"] == end, group
    assert (group["holder"] or None) == holder, group["chain"]
    assert group["share"] >= 0.9
    if end == "held":
        assert "Allocator" not in group["chain"]


def test_a_tensor_is_held_by_way_of_its_storage(answers):
    chain = answers["tensors"][1]["groups"][0]["chain"]
    assert "c10::StorageImpl <- " in chain and "c10::TensorImpl <- " in chain


def test_a_tensor_that_is_kept_with_its_graph_is_told_what_mends_it(answers):
    group = answers["losses"][1]["groups"][0]
    assert "torch::autograd::generated::MulBackward0" in group["chain"]
    assert "keep tensor.detach(), or loss.item()" in group["remedy"]


def test_what_is_mapped_and_not_there_takes_no_time(answers):
    """The driver has mapped 320 GiB, of which it uses some."""
    for _, held in answers.values():
        assert not held["out_of_time"]


@pytest.mark.parametrize("kind", ("tensors", "losses"))
def test_who_holds_a_tensor_is_known_by_the_first_search(answers, kind):
    """That an object of Python's has one of C++ is no reason for doubt."""
    assert answers[kind][1]["tries"] == 1
