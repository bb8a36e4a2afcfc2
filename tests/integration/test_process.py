# SPDX-License-Identifier: LGPL-2.1-or-later
"""A process that carries the preload behaves as without it, however odd it is.

Each case runs without and with the preload, sampled and exact; what a user
can see must be equal, and each recording that is left must open.
"""
import functools
import json
import os
import pathlib
import resource
import shutil
import stat
import subprocess
import sys
import textwrap

import pytest

from conftest import (LONG, PRELOAD, PROGRAMS, dump, execute, need, program,
                      report, sums_by_site)

PYTHON = "/usr/bin/python3"
# Recordings of many short processes: small ones.
SMALL = {"SEEP_SIZE": 4 << 20}
MODES = [pytest.param(None, id="sampled"), pytest.param(4096, id="4KiB"),
         pytest.param(1, id="exact")]
modes = pytest.mark.parametrize("sample", MODES)


@functools.cache
def seen_once(argv, options):
    return execute(argv, **dict(options)).seen


def seen_plainly(argv, popen=None, **options):
    """Once for all modes: what is seen may not change from run to run."""
    if popen is not None:
        return execute(argv, popen=popen, **options).seen
    return seen_once(tuple(map(str, argv)), tuple(sorted(options.items())))


def compare(argv, folder, sample, **options):
    """Run without and with the preload; the same must be seen."""
    plain = seen_plainly(argv, **options)
    run = execute(argv, folder, sample=sample, **options)
    assert run.seen == plain
    return run


def opened(recordings, *options):
    """Every recording opens; the documents."""
    return [dump(path, *options) for path in recordings]


def unless_exact(sample):
    """Sites are looked for by name in the exact runs: names cost the most."""
    return [] if sample == 1 else ["--no-symbols"]


def only(document, name, space="heap"):
    return sums_by_site(document["sites"],
                        [{"name": name, "space": space}]).get(name)


# fork, exec

@modes
@pytest.mark.parametrize("case, children", [
    ("fork_threads", 16), ("raw_clone", 5), ("fork", 1)])
def test_forks_record_apart(folder, case, children, sample):
    for _ in range(20 if LONG else 3):
        run = compare([program("fork_cases"), case], folder, sample, **SMALL)
        assert run.status == 0
        documents = opened(run.recordings, *unless_exact(sample))
        if sample == 1:
            forks = [d for d in documents if d["is_fork"]]
            assert len(forks) == children
            assert len(documents) == children + 1
            for document in forks:
                site = only(document, "site_child")
                assert site["allocated_count"] == 500
                assert site["live_count"] == 250
                assert site["live_bytes"] == 250 * 48
                assert only(document, "site_parent") is None
        assert len({d["pid"] for d in documents}) == len(documents)
        for path in run.recordings:
            path.unlink()


@modes
@pytest.mark.parametrize("case", ["spawn", "vfork"])
def test_borrowed_memory_is_harmless(folder, case, sample):
    run = compare([program("fork_cases"), case], folder, sample, **SMALL)
    assert run.status == 0
    documents = opened(run.recordings)
    parents = [d for d in documents
               if d["executable"].endswith("fork_cases")]
    assert len(parents) <= 1
    if sample == 1:
        parent, = parents
        assert parent["losses"] == {}
        assert only(parent, "site_parent")["live_count"] == 0


@modes
def test_a_daemon_keeps_its_own_files(folder, sample):
    """It closes every descriptor and gets the numbers again."""
    plain, carried = folder / "plain", folder / "carried"
    plain.mkdir()
    carried.mkdir()
    expected = execute([program("fork_cases"), "daemon", plain])
    run = execute([program("fork_cases"), "daemon", carried], folder,
                  sample=sample, **SMALL)
    assert run.seen == expected.seen
    for path in sorted(plain.iterdir()):
        assert (carried / path.name).read_bytes() == path.read_bytes()
    for document in opened(run.recordings):
        site = only(document, "site_child")
    if sample == 1:
        assert len(run.recordings) >= 2
        assert any(only(d, "site_parent") and
                   only(d, "site_parent")["allocated_count"] == 2000
                   for d in opened(run.recordings))


def test_an_exec_chain_leaves_one_recording(folder):
    """sh -> bash -> env -> python: the shells had nothing to record."""
    script = "x = [bytearray(1000) for _ in range(50000)]; print(len(x))"
    command = f"exec bash -c 'exec env A=b {PYTHON} -c \"{script}\"'"
    run = compare(["sh", "-c", command], folder, None)
    documents = opened(run.recordings)
    assert [pathlib.Path(d["executable"]).name.startswith("python3")
            for d in documents] == [True]


@modes
def test_an_exec_chain_is_the_same_in_every_mode(folder, sample):
    """Three images under one pid, and a trial run before, as servers do."""
    command = ("sh -c 'exit 1' > /dev/null 2>&1; "
               f"exec bash -c \"source /dev/null; exec env {PYTHON} -c "
               "'import os, json; print(json.dumps([1, 2]))'\"")
    run = compare(["sh", "-c", command], folder, sample, **SMALL)
    assert run.stdout == b"[1, 2]\n"
    opened(run.recordings, "--no-symbols")


# descriptors

@modes
@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-",
                                    "0<&- 1>&- 2>&-"])
def test_closed_standard_descriptors_stay_the_programs(folder, closed,
                                                       sample):
    script = textwrap.dedent(f"""
        exec {PYTHON} -S -c '
        import os
        numbers = [os.open("/dev/null", os.O_RDONLY) for _ in range(4)]
        with open("{folder}/seen", "a") as file:
            file.write(str(numbers))
        ' {closed}
    """).replace("\n        ", "\n")
    compare(["sh", "-c", script], folder, sample, **SMALL)
    seen = (folder / "seen").read_text(encoding="utf-8")
    assert seen[:len(seen) // 2] == seen[len(seen) // 2:]


@modes
def test_no_block_of_ours_is_on_the_heap_as_main_begins(folder, sample):
    """A look-up in vain, and dlopen(), would leave one of the loader's."""
    plain = execute([program("heap_at_main")])
    run = execute([program("heap_at_main")], folder, sample=sample)
    assert plain.stdout == (b"0 bytes in use, 0 from the kernel, 0 free\n")
    assert run.seen == plain.seen


@modes
def test_nothing_of_ours_stays_in_the_process(folder, sample):
    run = compare([program("limit_cases"), "traces"], folder, sample)
    assert run.status == 0
    assert b"first open gives 3" in run.stdout


@modes
def test_the_environment_is_handed_on_unchanged(folder, sample):
    run = execute(["env"], folder, sample=sample, FROM_TEST="1")
    variables = dict(line.split("=", 1)
                     for line in run.stdout.decode().splitlines()
                     if "=" in line)
    assert variables["LD_PRELOAD"] == str(PRELOAD)
    assert variables["FROM_TEST"] == "1"
    assert variables["SEEP_OUT"] == f"{folder}/%e.%p.%t.%n.seep"
    assert set(variables) - set(os.environ) <= {
        "LD_PRELOAD", "SEEP_OUT", "SEEP_SAMPLE", "FROM_TEST", "_"}


# the C library's contracts

@modes
@pytest.mark.parametrize("case", ["error_numbers", "loader_state",
                                  "small_stacks", "lazy_calloc"])
def test_the_contracts_of_the_c_library_hold(folder, case, sample):
    run = compare([program("limit_cases"), case], folder, sample)
    assert run.status == 0
    opened(run.recordings, "--no-symbols")
    if case == "lazy_calloc":
        assert b"given, untouched" in run.stdout


@modes
def test_numpy_zeros_stay_untouched(folder, sample):
    probe = execute([PYTHON, "-c", "import numpy"])
    if probe.status != 0:
        pytest.skip("numpy is not installed")
    script = textwrap.dedent("""
        import numpy
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4
        before = resident()
        block = numpy.zeros(1 << 27)
        print("grew" if resident() - before > 8192 else "untouched")
    """)
    run = compare([PYTHON, "-c", script], folder, sample)
    assert run.stdout == b"untouched\n"
    document, = opened(run.recordings)
    assert max(site["allocated_bytes"] for site in document["sites"]) >= 1 << 30


@modes
def test_allocations_before_main_are_served(folder, sample):
    run = compare([program("early")], folder, sample)
    assert run.stdout == b"library 1 program 1 preinit 1\n"
    opened(run.recordings, "--no-symbols")


# threads, stacks, libraries

@modes
@pytest.mark.parametrize("case", [
    "dlopen_storm", "thread_storm", "exit_beside_threads",
    "atfork_allocates", "coroutines", "other_stack", "deep_stack"])
def test_odd_threads_and_stacks_are_unharmed(folder, case, sample):
    run = compare([program("thread_cases"), case], folder, sample, **SMALL)
    documents = opened(run.recordings, *unless_exact(sample))
    if sample == 1 and case != "atfork_allocates":
        document, = documents
        site = only(document, "site_thread")
        if case == "thread_storm":
            assert site["allocated_count"] == 3 * 5000
        if case == "coroutines":
            assert site["allocated_count"] == 2 * 1000
            assert site["live_count"] == 1
        if case in ("thread_storm", "other_stack", "deep_stack"):
            assert site["live_count"] == 0
            assert document["losses"] == {}


# leaving an allocation otherwise than by returning

@modes
@pytest.mark.parametrize("case", [
    "jump_out", "jump_out_beside_threads", "handler_allocates",
    "cancel_anywhere", "cancel_at_a_point"])
def test_a_thread_may_leave_a_hook(folder, case, sample):
    run = compare([program("signal_cases"), case], folder, sample)
    assert run.status == 0
    for document in opened(run.recordings, "--no-symbols"):
        print(case, document["losses"], document["counters"]["abandoned"])
        torn = document["losses"].get("torn", 0)
        for site in document["sites"]:
            off = abs(site["allocated_bytes"] - site["freed_bytes"]
                      - site["live_bytes"])
            # an event that was left half applied, of blocks up to 16 KiB
            assert off == 0 or off <= torn << 14


def test_a_start_that_is_left_leaves_no_second_recording(folder):
    """Nor may a child die of what it was about to leave of its parent."""
    run = compare([program("signal_cases"), "jump_out_of_start"], folder, 1,
                  SEEP_SIZE=16 << 20)
    assert run.stdout == b"400 children ended\n"
    documents = opened(run.recordings, "--no-symbols")
    assert len({document["pid"] for document in documents}) == len(documents)
    parent, = [d for d in documents if not d["is_fork"]]
    assert parent["losses"] == {}


def test_a_child_holds_nothing_of_a_start_beside_it(folder):
    # The first sample is the thread's large block, hardly anything before it.
    run = execute([program("thread_cases"), "fork_beside_a_start"], folder,
                  sample=1 << 20)
    if run.stdout == b"not stopped\n":
        pytest.skip("no seccomp listener here")
    assert run.seen == (0, b"stopped, 0 held by a child\n", b"")
    document, = opened(run.recordings)
    assert only(document, "site_thread")["live_count"] == 0


def test_a_jump_beside_threads_loses_no_shard(folder):
    """What was abandoned is taken over: later events are all recorded."""
    run = execute([program("signal_cases"), "jump_out_beside_threads"],
                  folder, sample=1)
    document, = opened(run.recordings)
    site = only(document, "site_storm")
    jumps = 1000
    # each jump may leave one block that the program itself lost; and on a busy
    # machine a thread can hold a lock for longer than others wait for it
    dropped = document["counters"].get("dropped_frees", 0)
    assert site["live_count"] <= 2 * jumps + dropped
    site = only(document, "site_after")
    assert site["allocated_count"] == site["freed_count"] == 400 * 1024


@modes
def test_a_fork_in_the_middle_of_a_hook_harms_nobody(folder, sample):
    """The child comes out of that hook; it holds nothing of its parent's."""
    run = compare([program("signal_cases"), "handler_forks"], folder, sample,
                  SEEP_SIZE=16 << 20)
    assert run.status == 0
    assert run.stdout == b"forked, 0 of the children killed\n"
    for document in opened(run.recordings, *unless_exact(sample)):
        assert document["is_fork"] or document["losses"] == {}
        if sample == 1 and not document["is_fork"]:
            for name in ("site_storm", "site_after"):
                site = only(document, name)
                assert site["allocated_count"] == site["freed_count"]
            assert site["allocated_count"] == 400 * 1024


# limits

@pytest.mark.parametrize("case", ["strict", "strict_early", "filtered"])
@pytest.mark.parametrize("sample", [None, 4096])
def test_a_process_that_restricts_itself_goes_on(folder, case, sample):
    run = compare([program("limit_cases"), case], folder, sample)
    if run.status == 77:
        pytest.skip("no seccomp here")
    assert run.status == 0
    opened(run.recordings, "--no-symbols")


def limited(limit, value):
    return {"preexec_fn": lambda: resource.setrlimit(limit, (value, value))}


@modes
@pytest.mark.parametrize("limit, value", [
    (resource.RLIMIT_AS, 100 << 20), (resource.RLIMIT_AS, 600 << 20),
    (resource.RLIMIT_FSIZE, 1 << 20), (resource.RLIMIT_FSIZE, 0),
    (resource.RLIMIT_NOFILE, 4), (resource.RLIMIT_DATA, 60 << 20),
    (resource.RLIMIT_MEMLOCK, 0)])
def test_limits_are_respected(folder, limit, value, sample):
    truth = folder / "out.json"
    popen = limited(limit, value)
    argv = [program("limit_cases"), "error_numbers"]
    assert not truth.exists()
    run = compare(argv, folder, sample, popen=popen)
    assert run.status == 0
    opened(run.recordings, "--no-symbols")
    if limit == resource.RLIMIT_FSIZE:
        assert run.recordings == []
        assert list(folder.iterdir()) == []


@modes
def test_a_full_disk_is_a_refusal(folder, sample):
    disk = folder / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "seep-test",
                       disk], capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a small disk here")
    try:
        argv = [program("limit_cases"), "error_numbers"]
        plain = execute(argv)
        run = execute(argv, disk, sample=sample)
        assert run.seen == plain.seen
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", disk], check=True)


@modes
@pytest.mark.parametrize("where", ["missing/folder", "file/below"])
def test_a_folder_that_is_none_is_a_refusal(folder, where, sample):
    (folder / "file").write_bytes(b"")
    argv = [program("limit_cases"), "error_numbers"]
    plain = execute(argv)
    run = execute(argv, folder / where, sample=sample)
    assert run.seen == plain.seen


@modes
def test_a_read_only_folder_is_a_refusal(folder, sample):
    if os.geteuid() != 0:
        popen = None
    else:
        popen = {"user": "nobody"}
    closed = folder / "closed"
    closed.mkdir(mode=0o555)
    folder.chmod(0o755)
    argv = ["/bin/sh", "-c", "exec perl -e 'my @a = (1..200000); print $#a'"]
    need("perl")
    plain = execute(argv, popen=popen, cwd="/")
    # nobody may read the library where it was built only if the path is open
    library = folder / "libseep.so"
    shutil.copy(PRELOAD, library)
    library.chmod(0o755)
    run = execute(argv, closed, sample=sample, popen=popen, cwd="/",
                  LD_PRELOAD=library, TMPDIR=closed)
    assert run.seen == plain.seen
    assert list(closed.iterdir()) == []


@modes
def test_a_set_uid_program_is_left_alone(folder, sample):
    if os.geteuid() != 0:
        pytest.skip("needs root to make a set-uid program")
    shutil.copy(program("limit_cases"), folder / "raised")
    os.chown(folder / "raised", 65534, 65534)
    (folder / "raised").chmod(0o4755)
    folder.chmod(0o755)
    argv = [folder / "raised", "error_numbers"]
    run = compare(argv, folder, sample)
    assert run.status == 0
    assert run.recordings == []


# other tools

@modes
@pytest.mark.parametrize("name", ["sanitized", "sanitized_static"])
@pytest.mark.parametrize("fault", [False, True])
def test_a_sanitized_program_is_left_alone(folder, name, fault, sample):
    if not (PROGRAMS / name).exists():
        pytest.skip("no AddressSanitizer here")
    argv = [program(name)] + (["fault"] if fault else [])
    more = {"ASAN_OPTIONS": "verify_asan_link_order=0"}
    plain = execute(argv, **more)
    run = execute(argv, folder, sample=sample, **more)
    assert run.status == plain.status
    assert run.stdout == plain.stdout
    assert (b"heap-use-after-free" in run.stderr) == fault
    for document in opened(run.recordings):
        assert document["inert"] != 0


@modes
def test_valgrind_sees_the_program_itself(folder, sample):
    need("valgrind")
    argv = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full",
            program("truth"), 1, 20, "/dev/null"]
    status, stdout, _ = seen_plainly(argv)
    run = execute(argv, folder, sample=sample)
    assert run.status == status
    assert run.stdout == stdout
    for document in opened(run.recordings):
        assert document["inert"] != 0 or \
            not document["executable"].endswith("truth")


@modes
def test_a_program_with_its_own_malloc_is_left_alone(folder, sample):
    run = compare([program("own_malloc")], folder, sample)
    assert run.stdout == b"malloc 2000 free 2000\n"
    for document in opened(run.recordings):
        assert document["inert"] != 0


def test_what_is_left_alone_is_told_only_where_that_is_asked_for(folder):
    """By SEEP_OUT; and where there is no such folder nobody is told."""
    argv = [program("own_malloc")]
    plain = seen_plainly(argv)
    for variables in {}, {"SEEP_OUT": folder / "none/x.seep"}:
        run = execute(argv, cwd=folder, LD_PRELOAD=PRELOAD, SEEP_SAMPLE=1,
                      **variables)
        assert run.seen == plain
        assert list(folder.iterdir()) == []


def test_who_has_rights_of_another_is_left_alone(folder):
    """As the kernel says it of a set-uid program, which no test may make."""
    libraries = f"{PRELOAD}:{program('faked_auxv.so')}"
    argv = [program("odd_hooks"), "map_devices"]
    for value, count in (1, 0), (0, 1):
        run = execute(argv, folder, sample=1, LD_PRELOAD=libraries,
                      FAKED_AUXV=f"23={value}", SEEP_VERBOSE=1)
        assert run.status == 0
        assert len(run.recordings) == count
        assert run.stderr.count(b"\n") == count


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_who_is_restricted_before_we_begin_is_left_alone(folder, first):
    """By another library, and killed for what our beginning would do."""
    libraries = [PRELOAD, program("restrict_early.so")]
    run = execute([program("filtered_worker")], folder, sample=1,
                  LD_PRELOAD=":".join(map(str, libraries if first == "ours"
                                          else libraries[::-1])))
    if run.status == 77:
        pytest.skip("no seccomp here")
    assert run.seen == (3, b"", b"")
    assert run.recordings == []


# libraries that come and go

@modes
def test_a_library_at_anothers_address_is_told_apart(folder, sample):
    cycles = 200 if LONG else 40
    out = folder / "same.json"
    argv = [program("unload"), PROGRAMS / "libfirst.so",
            PROGRAMS / "libsecond.so", cycles, out]
    run = compare(argv, folder, sample)
    assert run.stdout == b"wrong 0\n"
    same = json.loads(out.read_text(encoding="utf-8")
                      .splitlines()[-1])["same"]
    print(f"at the same address {same} of {cycles} times")
    if sample == 1:
        document, = opened(run.recordings)
        for name in ("site_of_first_library", "site_of_second_library"):
            site = only(document, name)
            assert site["allocated_count"] == 20 * cycles
            assert site["live_bytes"] == 10 * 100 * cycles


# the file

def test_a_planted_link_is_not_followed(folder):
    victim = folder / "victim"
    victim.write_bytes(b"precious")
    names = [folder / f"fixed.{n}.seep" for n in range(3)]
    for name in names:
        name.symlink_to(victim)
    run = execute([program("limit_cases"), "error_numbers"], folder,
                  sample=1, SEEP_OUT=folder / "fixed.%n.seep")
    assert run.status == 0
    assert victim.read_bytes() == b"precious"
    assert all(name.is_symlink() for name in names)
    written = [path for path in run.recordings if not path.is_symlink()]
    assert len(written) == 1
    opened(written)


@pytest.mark.parametrize("pattern", ["fixed.%n.seep", "fixed.seep"])
def test_an_existing_file_is_never_overwritten(folder, pattern):
    options = {"sample": 1, "SEEP_OUT": folder / pattern, **SMALL}
    argv = [program("limit_cases"), "small_stacks"]
    first = execute(argv, folder, **options)
    assert len(first.recordings) == 1
    before = first.recordings[0].read_bytes()
    second = execute(argv, folder, **options)
    assert second.seen == first.seen
    assert first.recordings[0].read_bytes() == before
    if "%n" in pattern:
        assert len(second.recordings) == 2
    opened(second.recordings)


@pytest.mark.parametrize("mask", [0, 0o22, 0o777])
def test_a_recording_is_private(folder, mask):
    run = execute([program("limit_cases"), "small_stacks"], folder, sample=1,
                  popen={"umask": mask}, **SMALL)
    path, = run.recordings
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name, value", [
    ("SEEP_SAMPLE", "many"), ("SEEP_SAMPLE", "-1"), ("SEEP_SIZE", "0"),
    ("SEEP_SIZE", "99999999999999999999"), ("SEEP_OUT", ""),
    ("SEEP_OUT", "%"), ("SEEP_OUT", "%q%q"), ("SEEP_UNWINDER", "none")])
def test_a_wrong_setting_does_not_stop_the_program(folder, name, value):
    argv = [program("limit_cases"), "error_numbers"]
    plain = execute(argv)
    run = execute(argv, folder, cwd=folder, **{name: value})
    assert (run.status, run.stdout) == (plain.status, plain.stdout)


def test_a_long_pattern_does_not_stop_the_program(folder):
    argv = [program("limit_cases"), "error_numbers"]
    plain = execute(argv)
    run = execute(argv, folder, cwd=folder, SEEP_OUT="x" * 100000)
    assert run.seen == plain.seen


TITLED = """
import sys, time
start = time.monotonic()
fields = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
first, end = map(int, fields[45:47])
for title in sys.argv[1:]:
    with open("/proc/self/mem", "r+b") as memory:
        memory.seek(first)
        memory.write(title.encode()[:end - first - 1].ljust(end - first,
                                                            b"\\0"))
    # it is looked for whenever the run is twice as long
    until = time.monotonic() + 2 + 2 * (time.monotonic() - start)
    while time.monotonic() < until:
        kept = [bytearray(1 << 16) for _ in range(16)]
        time.sleep(0.01)
"""


@pytest.mark.parametrize("titles, shown", [
    ((), None), (("ray::Replica:app:One",), "ray::Replica:app:One"),
    (("loading", "x: y (z)"), "x: y (z)")])
def test_a_process_is_called_by_the_title_that_it_set(folder, titles, shown):
    run = execute([PYTHON, "-c", TITLED, *titles], folder)
    assert run.status == 0, run.stderr
    process, = report(*run.recordings)["processes"]
    assert process["process"]["title"] == shown
    assert process["process"]["argv"] == [PYTHON, "-c", TITLED, *titles]
    assert process["verdict"]["sentence"].startswith(
        f"{shown or 'python3'} (pid ")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
