# SPDX-License-Identifier: LGPL-2.1-or-later
"""The static probes of otel_memory, as a profiler from outside finds them.

Who listens here is a debugger of its own child (probe_watch), since eBPF needs
privileges: it sets a breakpoint where the note says, as an uprobe would be,
and reads the registers that the note names.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from conftest import PRELOAD, PROGRAMS, dump, environment, program, \
    recordings_in

SOURCE = pathlib.Path(os.environ.get(
    "SEEP_SOURCE", pathlib.Path(__file__).parents[2]))
NOTE = re.compile(
    r"Provider: (?P<provider>\S+)\s+Name: (?P<name>\S+)\s+"
    r"Location: (?P<location>0x\w+), Base: \S+, Semaphore: (?P<semaphore>\S+)"
    r"\s+Arguments:(?P<arguments>.*)")
BLOCKS = 2000
TIMEOUT_S = 60


def notes(path):
    """{name: note} of an object's static probes."""
    text = subprocess.run(["readelf", "--wide", "-n", path], check=True,
                          capture_output=True, text=True,
                          timeout=TIMEOUT_S).stdout
    found = [match.groupdict() for match in NOTE.finditer(text)]
    return {note["name"]: note for note in found
            if note["provider"] == "otel_memory"}


def library_notes():
    found = notes(PRELOAD)
    if not found:
        pytest.skip("built without sys/sdt.h")
    return found


WORK = (program("probe_watch"), "work", str(BLOCKS))


def watch(folder, sample, argv=WORK, **variables):
    """(allocations, frees, document) of a program that was watched."""
    if not (PROGRAMS / "probe_watch").exists():
        pytest.skip("no listener for this processor")
    library = PRELOAD.resolve()
    found = library_notes()
    out = folder / "hits"
    env = environment(folder, sample=sample, preload=False, **variables)
    done = subprocess.run(
        [program("probe_watch"), library, out, found["alloc"]["location"],
         found["free"]["location"], "--", *argv], env=env,
        capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    hits = [tuple(map(int, line.split()))
            for line in out.read_text(encoding="ascii").splitlines()]
    recording, = recordings_in(folder)
    return ([hit[1:] for hit in hits if hit[0] == 0],
            [hit[1] for hit in hits if hit[0] == 1], dump(recording))


def heap(document, figure):
    return sum(site[figure] for site in document["sites"]
               if site["space"] in ("heap", "python"))


def test_the_notes_name_the_arguments_where_a_call_puts_them():
    found = library_notes()
    assert sorted(found) == ["alloc", "free"]
    if os.uname().machine == "x86_64":
        assert found["alloc"]["arguments"].split() == [
            "8@%rdi", "8@%rsi", "8@%rdx"]
        assert found["free"]["arguments"].split() == ["8@%rdi"]


def test_no_listener_has_to_switch_a_probe_on():
    assert {int(note["semaphore"], 16)
            for note in library_notes().values()} == {0}


@pytest.mark.parametrize("compiler, arguments", [
    ("gcc", ["8@%rdi", "8@%rsi", "8@%rdx"]),
    ("clang", ["8@%rdi", "8@%rsi", "8@%rdx"]),
    ("aarch64-linux-gnu-gcc", ["8@x0", "8@x1", "8@x2"])])
def test_other_compilers_put_them_there_too(folder, compiler, arguments):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    # Of the header alone: a cross compiler does not look among the host's.
    for header in ("sdt.h", "sdt-config.h"):
        origin = next((place / "sys" / header for place in (
            pathlib.Path("/usr/include"),
            pathlib.Path("/usr/include/x86_64-linux-gnu"))
            if (place / "sys" / header).exists()), None)
        if origin is None:
            pytest.skip("no sys/sdt.h")
        (folder / "sys").mkdir(exist_ok=True)
        shutil.copy(origin, folder / "sys")
    done = subprocess.run(
        [compiler, "-O2", "-fPIC", "-DSEEP_HAVE_USDT", f"-I{SOURCE}/src",
         f"-I{folder}", "-c", SOURCE / "src/preload/probes.c", "-o",
         folder / "probes.o"], capture_output=True, timeout=TIMEOUT_S,
        check=False)
    if compiler == "clang" and b"unknown" in done.stderr:
        pytest.skip("clang for another processor")
    assert done.returncode == 0, done.stderr
    found = notes(folder / "probes.o")
    assert found["alloc"]["arguments"].split() == arguments
    assert found["free"]["arguments"].split() == arguments[:1]


def test_every_block_of_the_exact_mode_is_told_once(folder):
    allocated, freed, document = watch(folder, 1)
    # The table, the blocks, and those that were allocated again.
    assert len(allocated) == 1 + BLOCKS + BLOCKS / 4
    assert len(allocated) == heap(document, "allocated_count")
    assert len(freed) == heap(document, "freed_count")
    assert all(size == weight for _, size, weight in allocated)
    assert sum(size for _, size, _ in allocated) == heap(
        document, "allocated_bytes")


def test_objects_of_python_are_told_and_its_arenas_are_not(folder):
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip("no /usr/bin/python3")
    allocated, freed, document = watch(
        folder, "16K", ["/usr/bin/python3", "-c",
                        "kept = [str(i) * 20 for i in range(20000)]"],
        SEEP_PYTHON="objects")
    assert any(site["space"] == "python" for site in document["sites"])
    assert len(allocated) > 100 and len(freed) > 10
    assert sum(weight for _, _, weight in allocated) == heap(
        document, "allocated_bytes")


def test_sampled_blocks_are_told_with_the_weight_that_is_recorded(folder):
    allocated, freed, document = watch(folder, "64K")
    assert 20 < len(allocated) < BLOCKS
    assert all(weight > size for _, size, weight in allocated)
    assert sum(weight for _, _, weight in allocated) == heap(
        document, "allocated_bytes")
    told = [address for address, _, _ in allocated]
    assert len(told) + len(freed) == document["counters"]["events"]
    # What was freed and is recorded as that, and hardly anything else.
    known = [address for address in freed if address in told]
    assert len(known) > 5 and len(freed) - len(known) <= len(freed) / 10


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-v", "-s"]))
