# SPDX-License-Identifier: LGPL-2.1-or-later
"""What becomes of a process when the kernel refuses the recorder a call: the
process is as without us, and either its recording is whole or there is none,
no half of a file, and why is said.
"""
import errno
import pathlib
import re

import pytest

from built import PRELOAD
from conftest import dump, execute, program
from test_filters import NEED, NUMBERS

WORKER = [program("filtered_worker")]
KEPT = 200  # of the worker
O_TMPFILE_RDWR_CLOEXEC = 0o20200000 | 0o2 | 0o2000000
O_DIRECTORY_NONBLOCK_CLOEXEC = 0o200000 | 0o4000 | 0o2000000
O_RDONLY_NOFOLLOW_NONBLOCK_CLOEXEC = 0o400000 | 0o4000 | 0o2000000
PRIVATE_ANONYMOUS_NORESERVE = 0x4022
POPULATE_WRITE = 23
UNUSED = "100000=1"  # no such call
WIPE_ON_FORK = 18
WAKE_OP_PRIVATE = 5 | 128

NAMED = f"openat@2:{O_TMPFILE_RDWR_CLOEXEC}=EOPNOTSUPP"
NO_POPULATE = f"madvise@2:{POPULATE_WRITE}=EINVAL"
NO_WIPE = f"madvise@2:{WIPE_ON_FORK}=EINVAL"  # Linux before 4.14
SHARED_MAP = "mmap@3:1=ENOMEM"
OWN_MEMORY = f"mmap@3:{PRIVATE_ANONYMOUS_NORESERVE}=ENOMEM"

# Another way is taken, and all is recorded.
HARMLESS = [
    (NAMED,), (NO_POPULATE,), ("fallocate=EOPNOTSUPP",), ("fallocate=ENOSYS",),
    ("fallocate=EPERM",), (NAMED, "fallocate=EOPNOTSUPP"),
    (f"madvise@2:{POPULATE_WRITE}=EPERM",), ("linkat=EPERM", NAMED),
    (f"madvise@2:{POPULATE_WRITE}=ENOSYS",), ("statfs=ENOSYS",),
    ("getcwd=ENOENT",), ("fstat=EPERM",), ("readlinkat=EACCES",),
    ("uname=EPERM",), ("sysinfo=EPERM",), ("prctl@0:16=EPERM",),
    ("fstatfs=EPERM",), (NO_WIPE,), ("rt_sigprocmask=EPERM",),
    ("process_vm_readv=EPERM",), ("ioctl=EPERM",), ("faccessat=EPERM",),
]
# Older recordings stay, and are counted as they are at the next start.
OLD_STAY = [
    ("flock=EAGAIN",), ("lseek=EPERM",), ("getdents64=EPERM",),
    (f"openat@2:{O_DIRECTORY_NONBLOCK_CLOEXEC}=EMFILE",),
    (f"openat@2:{O_RDONLY_NOFOLLOW_NONBLOCK_CLOEXEC}=EMFILE",),
    ("newfstatat@3:0x100=EACCES",), ("unlinkat=EROFS",),
]
# There is no way, and no recording.
REFUSALS = [
    ("ftruncate=EFBIG",), ("fchmod=EPERM",), ("fallocate=ENOSPC",),
    (NAMED, "fallocate=ENOSPC"), (NAMED, "ftruncate=EFBIG"),
    ("fallocate=EOPNOTSUPP", "pwrite64=ENOSPC"), (SHARED_MAP,),
    (NAMED, SHARED_MAP), (OWN_MEMORY,), (NAMED, OWN_MEMORY),
    (f"madvise@2:{POPULATE_WRITE}=ENOMEM",),
    (NO_POPULATE, f"futex@1:{WAKE_OP_PRIVATE}=EFAULT"),
    ("linkat=EACCES",), ("linkat=EMLINK",),
]


def words_of(refusals):
    """For filtered.c; not on a machine whose calls have other numbers."""
    return ",".join(
        NUMBERS[re.match(r"\w+", word)[0]]
        + re.sub(r"^\w+|=(\w+)$",
                 lambda m: f"={getattr(errno, m[1])}" if m[1] else "", word)
        for word in refusals)


def filter_count():
    """Of this process; that of filtered.c comes to it."""
    status = pathlib.Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(r"Seccomp_filters:\s*(\d+)", status)
    return int(found[1]) if found else 0


def refused(refusals, folder, argv=WORKER, denied=0, **more):
    words = words_of(refusals) or UNUSED
    run = execute([program("filtered"), words, *argv], folder,
                  sample=1, preload=False, **{
                      "FILTERED_PRELOAD": PRELOAD,
                      "SEEP_FILTER": f"{filter_count() + 1}:{denied:x}"} | more)
    if run.status == 77:
        pytest.skip("no seccomp here")
    return run


@pytest.mark.parametrize("refusals", HARMLESS, ids=" ".join)
def test_where_there_is_another_way_all_is_recorded(folder, refusals):
    run = refused(refusals, folder, SEEP_VERBOSE=1)
    assert (run.status, run.stdout) == (3, b"")
    path, = run.recordings
    document = dump(path)
    assert document["losses"] == {}
    assert sum(site["live_count"] for site in document["sites"]
               if "main" in site["frames"]) == KEPT
    assert list(folder.iterdir()) == [path]
    # To know where stderr leads it must be asked.
    assert (str(path).encode() in run.stderr) == ("fstat=EPERM" not in refusals)


@pytest.mark.parametrize("refusals", REFUSALS, ids=" ".join)
def test_where_there_is_none_nothing_is_left_and_it_is_said(folder, refusals):
    run = refused(refusals, folder, SEEP_VERBOSE=1)
    assert (run.status, run.stdout) == (3, b"")
    assert list(folder.iterdir()) == []
    assert run.stderr.count(b"\n") == 1 and b"seep" in run.stderr
    assert refused(refusals, folder).seen == (3, b"", b"")


@pytest.mark.parametrize("refusals", OLD_STAY, ids=" ".join)
def test_older_recordings_that_cannot_go_stay(folder, refusals):
    for _ in range(4):
        assert execute(WORKER, folder, sample=1, SEEP_KEEP=0).status == 3
    run = refused(refusals, folder, SEEP_KEEP=2)
    assert run.seen == (3, b"", b"")
    assert len(run.recordings) == 5
    for path in run.recordings:
        assert dump(path)["losses"] == {}
    # The same without a refusal.
    run = execute(WORKER, folder, sample=1, SEEP_KEEP=2)
    assert run.seen == (3, b"", b"")
    assert len(run.recordings) < 5


@pytest.mark.parametrize("refusals", [(), (NAMED,)], ids=["one", "the_other"])
def test_a_folder_that_takes_no_file_gives_way_to_the_other(folder, refusals):
    run = refused(refusals, folder, cwd="/proc/self", TMPDIR=folder,
                  SEEP_OUT="x.%p.seep")
    assert run.seen == (3, b"", b"")
    path, = run.recordings
    assert re.fullmatch(r"x\.\d+\.seep", path.name)
    assert dump(path)["losses"] == {}


def test_a_folder_that_has_lost_its_own_name_will_do(folder):
    run = refused(("getcwd=ENOENT",), folder, cwd=folder, SEEP_OUT="x.seep")
    assert run.seen == (3, b"", b"")
    path, = run.recordings
    assert dump(path)["losses"] == {}


def test_a_name_that_is_taken_has_a_number_with_an_ending_or_without(folder):
    for name in ("ab", "plain.txt", "with.seep"):
        for _ in range(3):
            run = execute(WORKER, folder, sample=1, cwd=folder, SEEP_OUT=name)
            assert run.seen == (3, b"", b"")
    assert sorted(path.name for path in folder.iterdir()) == [
        "ab", "ab.1", "ab.2", "plain.txt", "plain.txt.1", "plain.txt.2",
        "with.1.seep", "with.2.seep", "with.seep"]


def test_a_name_that_is_too_long_is_no_name(folder):
    for pattern in (f"{folder}/{'n' * 300}.seep", f"{folder}/{'%e/' * 150}x",
                    f"{folder}/{'./' * 600}x.seep"):
        run = execute(WORKER, folder, sample=1, SEEP_OUT=pattern)
        assert run.seen == (3, b"", b"")
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("former", ["short", "text", "other"])
def test_the_command_takes_its_name_from_nobody_else(folder, former):
    """What is no recording of this process before an exec stays."""
    path = folder / "one.seep"
    if former == "other":
        execute(WORKER, folder, sample=1, SEEP_OUT=path)
    else:
        path.write_bytes(b"text " * (1 if former == "short" else 10000))
    before = path.read_bytes()
    run = execute(["sh", "-c", 'SEEP_COMMAND_PID=$$ LD_PRELOAD="$0" exec "$1"',
                   PRELOAD, *WORKER], folder, sample=1, preload=False,
                  SEEP_OUT=path)
    assert run.seen == (3, b"", b"")
    assert path.read_bytes() == before
    assert sorted(each.name for each in folder.iterdir()) == [
        "one.1.seep", "one.seep"]
    assert dump(folder / "one.1.seep")["losses"] == {}


UNASKED_FD = 77  # of odd_hooks


@pytest.mark.parametrize("refusals, unasked, asked", [
    ((), "mapped", "mapped"), (("fstatfs=EPERM",), "file", "file"),
    # Who may not ask of one asks no more; what cannot be told is one mapping.
    ((f"newfstatat@0:{UNASKED_FD}=EPERM",), "file", "file"),
    ((f"newfstatat@0:{UNASKED_FD}=EACCES",), "file", "file"),
    ((f"newfstatat@0:{UNASKED_FD}=ENOSYS",), "file", "file"),
    ((f"newfstatat@0:{UNASKED_FD}=EBADF",), "file", "mapped")])
def test_a_mapping_that_cannot_be_asked_about_is_a_files(folder, refusals,
                                                         unasked, asked):
    argv = [program("odd_hooks"), "map_unasked"]
    run = refused(refusals, folder, argv)
    assert (run.status, run.stderr) == (0, b"")
    document = dump(*run.recordings)
    spaces = {name: site["space"] for site in document["sites"]
              for name in ("site_unasked", "site_asked")
              if name in site["frames"] and site["live_bytes"] == 1 << 20}
    assert spaces == {"site_unasked": unasked, "site_asked": asked}
    assert document["losses"] == {}


def test_a_program_without_a_name_is_recorded(folder):
    """No /proc, and a kernel that does not say what it was started as."""
    libraries = f"{PRELOAD}:{program('faked_auxv.so')}"
    run = refused(("readlinkat=EACCES",), folder, FAKED_AUXV="31=0",
                  FILTERED_PRELOAD=libraries, SEEP_OUT=folder / "x.%e.seep")
    assert run.seen == (3, b"", b"")
    path, = run.recordings
    assert path.name == "x..seep"
    assert dump(path)["executable"] == ""
    assert dump(path)["losses"] == {}


@pytest.mark.parametrize("case, children", [("raw_clone", 5), ("fork", 1)])
def test_a_child_is_known_where_no_page_can_be_wiped(folder, case, children):
    """By its number, then, which is asked for at each event."""
    argv = [program("fork_cases"), case]
    run = refused((NO_WIPE,), folder, argv, SEEP_SIZE="16MiB")
    assert run.seen == execute(argv).seen
    documents = [dump(path) for path in run.recordings]
    assert len({document["pid"] for document in documents}) == children + 1
    for document in documents:
        sites = {name: site["live_count"] for site in document["sites"]
                 for name in site["frames"]}
        assert document["losses"] == {}
        assert ("site_child" in sites) == document["is_fork"]
        if document["is_fork"]:
            assert sites["site_child"] == 250


def test_a_pipe_that_cannot_be_asked_for_room_is_told_nothing(folder):
    """A write could wait; a file takes a line in any case."""
    denied = 1 << list(NEED).index("ppoll")
    run = refused((), folder, denied=denied, SEEP_VERBOSE=1)
    assert run.seen == (3, b"", b"") and len(run.recordings) == 1
    with open(folder / "told", "w+b") as file:
        run = refused((), folder, [
            "sh", "-c", f'exec "$0" 2> {folder}/told', *WORKER],
            denied=denied, SEEP_VERBOSE=1)
        assert run.seen == (3, b"", b"")
        told = file.read()
    assert any(str(path).encode() in told for path in run.recordings)
