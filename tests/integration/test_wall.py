# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of strangers cost the names that they have, and nothing else.

Invariant: what is asserted of time is the processor's.
"""
import ctypes
import json
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import time
import zlib

import pytest

import verb_list
from command_line import LIMIT_S
from built import BUILD
from conftest import LONG, SEEP, environment, execute, need

COMPRESSED = 0x800
MOST_KIB = 1 << 20
MOST_CPU_S = 30
LIBRARY = """
#include <stdlib.h>
void *kept[100];
void keep(void) { for (int i = 0; i < 100; i++) kept[i] = malloc(50000); }
"""
MAIN = "void keep(void); int main(void) { keep(); return 0; }"
# What each verb that reads recordings is asked: a new one has to be here.
FORMS = {
    "check": [("--max-growth", "1MiB/min")],
    "diff": [(), ("--html", "-")],
    "digest": [()],
    "export": [("--format", name) for name in
               ("pprof", "folded", "speedscope", "perfetto", "csv", "jsonl",
                "html")],
    "held": [()],
    "info": [("--json",)],
    "metrics": [("--once",)],
    "pack": [("--replace", "-o", "made.seeppack")],
    "probe": [("--max-growth", "1MiB/min")],
    "report": [(), ("--json",), ("--html", "-"), ("--tree", "down"),
               ("--peak",), ("--since", "-5m")],
    "top": [("--once",)],
    "unpack": [("--replace", "-o", "unpacked")],
}
VERBS = [(verb, *form) for verb, forms in FORMS.items() for form in forms]
# Those that look up no names.
NAMELESS = {"info", "probe", "unpack"}
# Each kind of reader; the others read through one of them.
FEW = [("report",), ("report", "--json"), ("top", "--once"),
       ("check", "--max-growth", "1MiB/min"), ("diff",)]


@pytest.fixture(name="made", scope="module")
def made_fixture(tmp_path_factory):
    """(a library, a good copy of it, a recording that names it)"""
    need("cc", "objcopy")
    folder = tmp_path_factory.mktemp("wall")
    library, main = folder / "libkeeper.so", folder / "main"
    for source, text in (("keep.c", LIBRARY), ("main.c", MAIN)):
        (folder / source).write_text(text)
    subprocess.run(["cc", "-g", "-shared", "-fPIC", "-Wl,--build-id", "-o",
                    library, folder / "keep.c"], check=True)
    subprocess.run(["cc", "-o", main, folder / "main.c", library,
                    f"-Wl,-rpath,{folder}"], check=True)
    done = execute([main], folder, sample=1)
    assert done.status == 0
    shutil.copy(library, folder / "good")
    return library, folder / "good", done.recordings[0]


def zeros(size_bytes):
    """A compressed section that inflates to so much."""
    stream = zlib.compressobj(1)
    chunk = bytes(1 << 20)
    packed = b"".join(stream.compress(chunk)
                      for _ in range(size_bytes >> 20)) + stream.flush()
    return struct.pack("<IIQQ", 1, 0, size_bytes, 1) + packed


def mark_compressed(path, names):
    """Set the flag of those sections, which objcopy cannot."""
    data = bytearray(path.read_bytes())
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, count, strings = struct.unpack_from("<HHH", data, 0x3a)
    at, = struct.unpack_from("<Q", data, offset + strings * size + 24)
    for header in range(offset, offset + count * size, size):
        name = at + struct.unpack_from("<I", data, header)[0]
        if bytes(data[name:data.index(0, name)]).decode() in names:
            flags, = struct.unpack_from("<Q", data, header + 8)
            struct.pack_into("<Q", data, header + 8, flags | COMPRESSED)
    path.write_bytes(data)


def bomb(library, good):
    """4 x 768 MiB of zeros in 3 MB, the build-id right."""
    names = [".debug_info", ".debug_abbrev", ".debug_str", ".debug_line"]
    packed = library.parent / "packed"
    packed.write_bytes(zeros(768 << 20))
    subprocess.run(["objcopy", "--strip-debug", good, library], check=True)
    for name in names:
        subprocess.run(["objcopy", "--add-section", f"{name}={packed}",
                        library], check=True)
    mark_compressed(library, names)


def fifo(library, _good):
    """What would wait for a writer."""
    os.mkfifo(library)


def endless(library, good):
    """1 TiB, most of it a hole, the build-id right."""
    shutil.copy(good, library)
    os.truncate(library, 1 << 40)


def linked(library, good):
    """Its debug link leads to 1 TiB."""
    debug = library.parent / "linked.debug"
    debug.unlink(missing_ok=True)
    debug.write_bytes(b"x")
    subprocess.run(["objcopy", "--strip-debug", f"--add-gnu-debuglink={debug}",
                    good, library], check=True)
    os.truncate(debug, 1 << 40)


def device(library, _good):
    """/dev/zero under another name."""
    try:
        os.mknod(library, 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes a device")


def read(*words):
    """(exit code, stdout, stderr, seconds of the processor)"""
    command = subprocess.Popen(
        [SEEP.resolve(), *map(str, words)], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=environment(), start_new_session=True,
        cwd=os.path.dirname(words[-1]))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out, err = command.communicate(timeout=LIMIT_S)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = (after.ru_utime + after.ru_stime - before.ru_utime
             - before.ru_stime)
    return (command.returncode, out.decode(errors="replace"), err.decode(),
            spent)


def test_a_good_library_has_its_names(made):
    _, _, recording = made

    code, out, err, _ = read("report", "--sites", "0", recording)

    assert (code, err) == (0, "")
    assert re.search(r"keep\.c:4 keep", out)


@pytest.fixture(name="planted", scope="module", params=[
    (bomb, "inflates"), (fifo, "is a FIFO"), (endless, "is too large"),
    (linked, "is too large"), (device, "is a socket or a device")],
    ids=lambda pair: pair[0].__name__)
def planted_fixture(made, request):
    """The library is something else now."""
    library, good, recording = made
    plant, reason = request.param
    library.unlink()
    try:
        plant(library, good)
        yield library, recording, reason
    finally:
        library.unlink(missing_ok=True)
        shutil.copy(good, library)


def test_each_verb_that_reads_is_asked():
    said = re.search(r"--format NAME +([a-z0-9, ]+) or\s+(\w+)",
                     verb_list.help_of("export"))

    assert set(FORMS) == set(verb_list.reading()) | {"held", "unpack"}
    assert {form[1] for form in FORMS["export"]} == {
        *said[1].replace(" ", "").split(","), said[2]}


def cost_of(verb, recording):
    """(exit code, stdout, stderr), of a verb that keeps to its bounds"""
    code, out, err, spent = read(
        *verb, *[recording] * (1 + (verb[0] == "diff")))
    assert spent < MOST_CPU_S
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < MOST_KIB
    return code, out, err


@pytest.mark.parametrize("verb", FEW, ids=" ".join)
def test_a_hostile_library_costs_its_names_and_is_said(planted, verb):
    library, recording, reason = planted

    code, out, err = cost_of(verb, recording)

    assert code in (0, 3, 4), err
    line, = {line for line in err.splitlines() if str(library) in line}
    assert reason in line and "module+offset" in line
    assert "keep.c" not in out


def test_zeros_that_inflate_cost_no_verb_more(made):
    """One test: to make them costs more than to read them."""
    library, good, recording = made
    library.unlink()
    try:
        bomb(library, good)
        for verb in VERBS:
            code, out, err = cost_of(verb, recording)
            assert "keep.c" not in out
            if verb[0] not in NAMELESS | {"held", "pack"}:
                assert code in (0, 3, 4), err
                assert "inflates" in err
    finally:
        library.unlink(missing_ok=True)
        shutil.copy(good, library)


@pytest.mark.parametrize("verb", [(verb, *forms[0]) for verb, forms
                                  in FORMS.items()], ids=" ".join)
def test_what_is_no_recording_costs_no_verb_more(made, tmp_path, verb):
    """1 TiB that says it is one; one without its end; bytes."""
    header = made[2].read_bytes()[:65536]
    huge, cut, odd = (tmp_path / name for name in ("a.seep", "b.seep",
                                                    "c.seep"))
    huge.write_bytes(header)
    os.truncate(huge, 1 << 40)
    cut.write_bytes(header)
    odd.write_bytes(random.Random(1).randbytes(65536))

    for path in huge, cut, odd:
        code, _, err = cost_of(verb, path)
        assert code in (0, 1, 3, 4, 6, 7), err


@pytest.fixture(name="many_stacks", scope="module")
def many_stacks_fixture(tmp_path_factory):
    """A recording of more stacks than a report has rows, of 43 frames each;
    in the long form of 400,000."""
    path = tmp_path_factory.mktemp("stacks") / "many.seep"
    subprocess.run([BUILD / "tests/integration/page_recordings", "stacks",
                    path, str(400000 if LONG else 140000)], check=True)
    yield path
    path.unlink()


OF_STACKS = [("report", "--by", "stack", "--json", "--no-series"),
             ("report", "--tree", "down"), ("export", "--format", "folded")]


@pytest.mark.parametrize(
    "verb", [*OF_STACKS, *VERBS, ("report", "--by", "stack", "--json")]
    if LONG else OF_STACKS, ids=" ".join)
def test_very_many_stacks_cost_no_verb_more(many_stacks, verb):
    with subprocess.Popen(
            [SEEP, *verb, *[many_stacks] * (1 + (verb[0] == "diff"))],
            env=environment(), stdout=subprocess.DEVNULL,
            cwd=many_stacks.parent) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)

    assert process.returncode in (0, 3, 4)
    assert used.ru_maxrss < MOST_KIB
    assert used.ru_utime + used.ru_stime < MOST_CPU_S


def sections_of(path):
    """{name: (offset, size)}"""
    data = path.read_bytes()
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, count, strings = struct.unpack_from("<HHH", data, 0x3a)
    at, = struct.unpack_from("<Q", data, offset + strings * size + 24)
    found = {}
    for header in range(offset, offset + count * size, size):
        name = at + struct.unpack_from("<I", data, header)[0]
        name = bytes(data[name:data.index(0, name)]).decode()
        found[name] = struct.unpack_from("<QQ", data, header + 24)
    return found


@pytest.mark.parametrize("name", [".debug_info", ".debug_abbrev",
                                  ".debug_line", ".debug_str", ".symtab"])
def test_what_lies_of_itself_costs_no_more_than_its_names(made, name):
    """Lengths, offsets and forms that are none; some of them are loops."""
    library, good, recording = made
    offset, size = sections_of(good)[name]
    chance = random.Random(name)
    try:
        for _ in range(4):
            data = bytearray(good.read_bytes())
            for _ in range(max(2, size // 16)):
                data[offset + chance.randrange(size)] = chance.choice(
                    (0, 1, 0x7f, 0x80, 0xff, chance.randrange(256)))
            library.write_bytes(data)

            code, _, err, spent = read("report", "--sites", "0", recording)

            assert code == 0, err
            assert spent < MOST_CPU_S
    finally:
        shutil.copy(good, library)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < MOST_KIB


@pytest.mark.parametrize("rules", [
    "leak:q\n" * 599000, "leak:" + "*a" * 20 + "*q\n" * 100000,
    "leak:" + "*a" * 2000000 + "\n"], ids=["many", "long", "longest"])
def test_rules_that_are_too_many_or_too_long_are_refused(made, tmp_path,
                                                         rules):
    path = tmp_path / "rules"
    path.write_text(rules[:4 << 20])

    code, _, err, spent = read("report", "--suppressions", path, made[2])

    assert code == 1 and str(path) in err and "line" in err, err
    assert spent < MOST_CPU_S


def test_metrics_say_which_file_has_no_names_once(planted):
    library, recording, reason = planted

    with subprocess.Popen(
            [SEEP, "metrics", "--textfile", recording.parent / "x.prom",
             "--interval", "0.1s", recording], env=environment(),
            stderr=subprocess.PIPE, text=True) as process:
        line = process.stderr.readline()
        time.sleep(1)  # refreshes, of which each would say more
        process.terminate()
        more = process.stderr.read()

    assert str(library) in line and reason in line
    assert str(library) not in more


class Watch:
    """Is a file ever opened?"""
    OPENED = 0x20

    def __init__(self, path):
        libc = ctypes.CDLL(None)
        self.fd = libc.inotify_init1(os.O_NONBLOCK)
        assert libc.inotify_add_watch(self.fd, os.fsencode(path),
                                      self.OPENED) >= 0

    def has_seen(self):
        """Since it began."""
        try:
            return len(os.read(self.fd, 4096)) > 0
        except BlockingIOError:
            return False
        finally:
            os.close(self.fd)


def test_a_fifo_is_refused_without_being_opened(tmp_path):
    path = tmp_path / "x.seep"
    os.mkfifo(path)
    watch = Watch(path)

    code, _, err, _ = read("report", tmp_path)

    assert code == 1 and "is a FIFO" in err
    assert not watch.has_seen()


def test_a_folder_of_odd_files_is_said_in_few_lines(tmp_path):
    for i in range(1200):
        (tmp_path / f"{i}.seep").write_bytes(b"odd\n")

    code, _, err, _ = read("report", tmp_path)

    lines = err.splitlines()
    assert code == 1
    assert len(lines) == 11
    assert lines[-1] == f"seep: {tmp_path}: and 1,190 more cannot be read"


# Who looks into a living process reads its libraries by libelf, not behind the
# wall: see docs/decisions/0047-who-holds-it.md.
HOLDER = """
#include <unistd.h>
void keep(void);
int main(void) { char byte; keep(); write(1, "x", 1);
                 return (int)read(0, &byte, 1); }
"""


def sections(path, headers, end):
    """Give @path these section headers instead of its own, and that length."""
    data = bytearray(path.read_bytes())
    data += bytes(-len(data) % 8)
    struct.pack_into("<Q", data, 0x28, len(data))
    struct.pack_into("<HHH", data, 0x3a, 64, len(headers), 1)
    path.write_bytes(data + b"".join(
        struct.pack("<IIQQQQIIQQ", *header) for header in headers))
    os.truncate(path, max(end, path.stat().st_size))


def lying(library, good):
    """Its symbols are 5 GiB of a hole."""
    shutil.copy(good, library)
    symbols = (0, 2, 0, 0, 4096, 5 << 30, 1, 1, 8, 24)
    sections(library, [(0,) * 10, (0, 3, 0, 0, 0, 4096, 0, 0, 1, 0), symbols],
             6 << 30)


def many(library, good):
    """60,000 tables of symbols, each the same 4 MiB, in which all are objects
    that are called the same."""
    shutil.copy(good, library)
    at = (library.stat().st_size + 4095) & -4096
    with library.open("r+b") as file:
        file.truncate(at)
        file.seek(at)
        file.write(struct.pack("<IBBHQQ", 1, 0x11, 0, 1, 4096, 8)
                   * ((4 << 20) // 24))
    symbols = (0, 2, 0, 0, at, 4 << 20, 1, 1, 8, 24)
    sections(library, [(0,) * 10, (0, 3, 0, 0, 0, 4096, 0, 0, 1, 0)]
             + [symbols] * 60000, 0)


def packed_symbols(library, good):
    """Its symbols say that they are compressed, and would be 1 TiB."""
    shutil.copy(good, library)
    at = (library.stat().st_size + 4095) & -4096
    with library.open("r+b") as file:
        file.truncate(at)
        file.seek(at)
        file.write(struct.pack("<IIQQ", 1, 0, 1 << 40, 1)
                   + zeros(16 << 20)[24:])
    symbols = (0, 2, COMPRESSED, 0, at, 16384, 1, 1, 8, 24)
    sections(library, [(0,) * 10, (0, 3, 0, 0, 0, 4096, 0, 0, 1, 0), symbols],
             0)


def unended(library, good):
    """32 MiB of names without an end, for 200,000 symbols."""
    shutil.copy(good, library)
    at = (library.stat().st_size + 4095) & -4096
    symbol = struct.pack("<IBBHQQ", 1, 0x11, 0, 1, 4096, 8)
    with library.open("r+b") as file:
        file.truncate(at)
        file.seek(at)
        file.write(b"\0" + b"a" * ((32 << 20) - 1) + symbol * 200000)
    sections(library, [(0,) * 10, (0, 3, 0, 0, at, 32 << 20, 0, 0, 1, 0),
                       (0, 2, 0, 0, at + (32 << 20), 24 * 200000, 1, 1, 8,
                        24)], 0)


def segments(library, good):
    """It says that it has 140,000,000 of them, which only a core file may:
    they would be 7 GiB."""
    shutil.copy(good, library)
    data = bytearray(library.read_bytes())
    struct.pack_into("<H", data, 0x38, 0xffff)
    library.write_bytes(data)
    sections(library, [(0, 0, 0, 0, 0, 0, 0, 140000000, 0, 0)], (8 << 30) - 1)


def huge(library, good):
    """A file of 1 TiB that runs."""
    shutil.copy(good, library)
    os.truncate(library, 1 << 40)


def overwrite(library, planted):
    """Whoever reads what is mapped goes by its path: it is the same file."""
    with planted.open("rb") as source, library.open("r+b") as target:
        end = os.stat(source.fileno()).st_size
        at = 0
        while at < end:
            try:
                at = os.lseek(source.fileno(), at, os.SEEK_DATA)
            except OSError:
                break  # the rest is a hole
            hole = os.lseek(source.fileno(), at, os.SEEK_HOLE)
            while at < hole:
                at += os.copy_file_range(source.fileno(), target.fileno(),
                                         hole - at, at, at)
    os.truncate(library, end)


@pytest.fixture(name="living", params=[bomb, linked, lying, many,
                                       packed_symbols, unended, segments,
                                       huge],
                ids=lambda plant: plant.__name__)
def living_fixture(made, tmp_path, request):
    """(which, the recording of a process that runs such a library)"""
    good = made[1]
    library, main = tmp_path / "libkeeper.so", tmp_path / "holder"
    (tmp_path / "holder.c").write_text(HOLDER)
    shutil.copy(good, library)
    subprocess.run(["cc", "-o", main, tmp_path / "holder.c", library,
                    f"-Wl,-rpath,{tmp_path}"], check=True)
    (tmp_path / "out").mkdir()
    with subprocess.Popen(
            [main], env=environment(tmp_path / "out", sample=1),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.read(1) == b"x"
        planted = tmp_path / "planted"
        request.param(planted, good)
        overwrite(library, planted)
        recording, = (tmp_path / "out").glob("*.seep")
        yield request.param, recording
        process.stdin.close()
        process.wait(timeout=LIMIT_S)
    library.unlink()
    planted.unlink()


def test_what_a_living_process_has_mapped_costs_its_names_alone(living):
    which, recording = living

    code, out, err = cost_of(("held", "--json"), recording)

    assert code in (0, 5), err
    assert json.loads(out)["schema"] == "seep-held/1"
    if which in (bomb, linked):
        assert "kept" in out
    assert cost_of(("report",), recording)[0] == 0
