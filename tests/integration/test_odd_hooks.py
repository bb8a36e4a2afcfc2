# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ways into and out of a hook that look like something else."""
import pytest

from built import PRELOAD
from conftest import dump, execute, frame_functions, program, report

SMALL = {"SEEP_SIZE": "16MiB"}


def run_case(folder, case, sample):
    """The document of the one recording, and the pid that the program told."""
    run = execute([program("odd_hooks"), case], folder, sample=sample, **SMALL)
    assert run.status == 0 and run.stderr == b""
    path, = run.recordings
    return dump(path), int(run.stdout)


@pytest.mark.parametrize("sample", [1, 4096])
def test_a_handler_on_a_stack_above_the_hook_is_no_jump(folder, sample):
    document, _ = run_case(folder, "signal_stack_above", sample)
    assert document["counters"]["abandoned"] == 0
    assert document["counters"]["dropped_frees"] == 0
    assert document["counters"]["torn"] == 0


@pytest.mark.parametrize("sample", [1, 256])
def test_a_jump_to_the_same_depth_ends_no_recording(folder, sample):
    document, _ = run_case(folder, "jump_to_the_same_depth", sample)
    counters = document["counters"]
    assert counters["abandoned"] > 0
    assert counters["nested"] < 1000
    # An entry of the live table that was put in and not counted, or counted
    # out and not taken, is no full table.
    assert counters["thinnings"] == 0
    assert counters["events"] > 1000000
    assert counters["dropped_frees"] < 10000


def test_a_vfork_child_does_not_start_its_parents_recording(folder):
    document, pid = run_case(folder, "allocate_in_vfork", 4096)
    assert document["pid"] == pid


@pytest.mark.parametrize("sample", [1, 4096])
def test_a_file_map_that_grows_is_no_memory_of_its_own(folder, sample):
    document, _ = run_case(folder, "grow_a_file_map", sample)
    assert not [site for site in document["sites"]
                if site["space"] == "mapped" and site["live_bytes"] > 0]


def test_a_question_to_seccomp_restricts_nothing(folder):
    document, _ = run_case(folder, "ask_seccomp", 4096)
    assert document["counters"]["restricted"] == 0
    assert sum(site["live_bytes"] for site in document["sites"]) > 8000000


@pytest.mark.parametrize("sample", [1, 4096])
@pytest.mark.parametrize("case", ["restrict_by_prctl", "restrict_by_filter"])
def test_who_restricts_himself_is_recorded_on_without_a_child(folder, case,
                                                              sample):
    document, pid = run_case(folder, case, sample)
    assert document["pid"] == pid
    assert document["counters"]["restricted"] == 1
    assert document["losses"] == {}
    held = sum(site["live_count"] for site in document["sites"]
               if "site_restricted" in site["frames"])
    mapped = [site["live_bytes"] for site in document["sites"]
              if "site_mapped" in site["frames"]]
    assert mapped == [1 << 20]
    assert held == 300 if sample == 1 else 250 < held < 350


@pytest.mark.parametrize("sample", [1, 4096])
def test_who_restricts_himself_first_is_not_recorded(folder, sample):
    run = execute([program("odd_hooks"), "restrict_first"], folder,
                  sample=sample)
    assert run.status == 0 and run.stderr == b""
    assert run.recordings == [] or sample == 1  # before main, that is


def test_what_is_mapped_of_a_device_is_memory_only_of_dev_zero(folder):
    document, _ = run_case(folder, "map_devices", 1)
    mapped = {name: site["live_bytes"] for site in document["sites"]
              for name in ("site_zero", "site_ring")
              if name in site["frames"] and site["space"] != "heap"}
    assert mapped == {"site_zero": 1 << 20}
    assert [site["space"] for site in document["sites"]
            if "site_zero" in site["frames"]] == ["mapped", "mapped"]


@pytest.mark.parametrize("sample", [1, 4096])
def test_a_wish_where_to_move_memory_is_passed_on(folder, sample):
    argv = [program("odd_hooks"), "wish_for_a_place"]
    library = program("new_mremap.so")
    plain = execute(argv, LD_PRELOAD=library)
    if plain.status == 77:
        pytest.skip("this kernel knows no such move")
    assert plain.status == 0
    run = execute(argv, folder, sample=sample,
                  LD_PRELOAD=f"{PRELOAD}:{library}")
    assert run.status == 0


@pytest.mark.parametrize("case", ["leave_stderr", "replace_stderr",
                                  "replace_stderr_by_a_pipe"])
def test_no_line_goes_to_what_stderr_was_not_at_the_start(folder, case):
    run = execute([program("odd_hooks"), case], folder, cwd=folder,
                  sample=4096, SEEP_VERBOSE=1)
    assert run.status == 0 and run.stderr == b""
    assert len(run.recordings) == 1
    if case == "replace_stderr":
        assert (folder / "own").read_bytes() == b""


def test_a_name_that_is_refused_or_anothers_is_not_taken(folder):
    run = execute([program("odd_hooks"), "name_others"], folder, sample=1)
    assert run.status == 0 and run.stderr == b""
    process, = report(*run.recordings)["processes"]
    threads = {name: site["thread"] for site in process["sites"]
               for name in ("site_of_own", "wait_for_a_name")
               if name in frame_functions(site)
               and site["requested"]["live_bytes"] == 1 << 20}
    assert threads == {"site_of_own": "own", "wait_for_a_name": "other"}


@pytest.mark.parametrize("sample", [1, 4096])
def test_a_hook_takes_less_than_2_kib_of_stack(folder, sample):
    run_case(folder, "use_stack", sample)
