# SPDX-License-Identifier: LGPL-2.1-or-later
"""What builds, commits and serves on a small disk does so under seep.

Invariant: a tmpfs of 512 MiB holds the work and the recordings, in exact mode,
of all processes; what is made there is the same as without us, and nothing of
the program's fails for want of room while a quarter of it is kept free.

The disk is mounted in a name space of its own, and is gone with it.
"""
import json
import os
import subprocess

import pytest

from command_line import PYTHON
from conftest import LONG, PRELOAD, SEEP, environment, need

FILES = 200 if LONG else 40
# Free of the 512 MiB when the work begins; the floor is 128.
FREE_MIB = [pytest.param(500, id="empty"), pytest.param(160, id="filling"),
            pytest.param(60, id="below the floor")]

GENERATE = f"""
import pathlib
folder = pathlib.Path("project")
folder.mkdir()
for i in range({FILES}):
    body = "".join(f"    x = x * {{j}} + {{i}};\\n" for j in range(40))
    (folder / f"f{{i}}.c").write_text(
        f"long f{{i}}(long x)\\n{{{{\\n{{body}}    return x;\\n}}}}\\n")
calls = "".join(f"    x = f{{i}}(x);\\n" for i in range({FILES}))
names = "".join(f"long f{{i}}(long);\\n" for i in range({FILES}))
(folder / "main.c").write_text(
    f"#include <stdio.h>\\n{{names}}int main(void)\\n{{{{\\n    long x = 1;\\n"
    f"{{calls}}    printf(\\"%ld\\\\n\\", x);\\n    return 0;\\n}}}}\\n")
(folder / "Makefile").write_text(
    "objects := $(patsubst %.c,%.o,$(wildcard *.c))\\n"
    "program: $(objects)\\n\\tgcc -o $@ $^\\n"
    "%.o: %.c\\n\\tgcc -O1 -g -c -o $@ $<\\n")
"""

BUILD = """
$RUN make -s -j2 -C project || exit 1
project/program
cksum project/*.o project/program | awk '{ print $1, $2 }' | sort
"""

COMMIT = """
export HOME=$PWD GIT_AUTHOR_DATE='1700000000 +0000' \
    GIT_COMMITTER_DATE='1700000000 +0000' GIT_CONFIG_NOSYSTEM=1
git config --global user.name a; git config --global user.email a@b
cd project
$RUN git init -q . || exit 1
for round in 1 2 3; do
    echo "/* $round */" >>f1.c
    $RUN git add . || exit 1
    $RUN git commit -q -m "round $round" || exit 1
done
$RUN git gc -q || exit 1
$RUN git fsck 2>/dev/null || exit 1
git rev-parse HEAD
"""

# Its data is 8 MB, and a copy of that while it is saved by a child.
SERVE = """
$RUN redis-server --port 0 --unixsocket $PWD/socket --dir $PWD --save '' \
    --daemonize no --logfile $PWD/log &
for i in $(seq 200); do test -S socket && break; sleep 0.1; done
redis() { redis-cli -s $PWD/socket "$@"; }
redis eval "for i = 1, 20000 do redis.call('set', 'k' .. i,
    string.rep(tostring(i), 80)) end return redis.call('dbsize')" 0
redis bgsave >/dev/null
for i in $(seq 300); do
    redis info persistence | grep -q 'rdb_bgsave_in_progress:0' && break
    sleep 0.1
done
redis info persistence | grep rdb_last_bgsave_status
redis save
redis get k777 | cksum
redis shutdown nosave
wait
"""


def on_small_disk(folder, script, free_mib, run):
    """The script where @folder is a small disk; recordings go there too."""
    lines = "\n".join([
        f"mount -t tmpfs -o size=512m tmpfs {folder} || exit 77",
        f"cd {folder}; mkdir recordings",
        f"head -c {512 - free_mib}m /dev/zero >filler",
        f"{PYTHON} -c \"$GENERATE\" || exit 78", script, "status=$?",
        "cd $OLDPWD; df -P . >/dev/null",
        f"df -m --output=avail {folder} | tail -1 >&2",
        f"find {folder}/recordings -name '*.seep' | wc -l >&2",
        "exit $status"])
    done = subprocess.run(
        ["unshare", "-m", "/bin/sh", "-c", lines], capture_output=True,
        timeout=300, check=False, env=environment() | {
            "GENERATE": GENERATE, "RUN": run, "LC_ALL": "C",
            "SEEP_PRELOAD": str(PRELOAD.resolve())})
    if done.returncode == 77 or b"unshare" in done.stderr:
        pytest.skip("nothing can be mounted here")
    return done


@pytest.mark.parametrize("free_mib", FREE_MIB)
@pytest.mark.parametrize("tool, script", [
    pytest.param("make", BUILD, id="make"),
    pytest.param("git", COMMIT, id="git"),
    pytest.param("redis-server", SERVE, id="redis")])
def test_work_on_a_small_disk_is_done(tmp_path, tool, script, free_mib):
    need("unshare", "mount", "gcc", tool)
    plain = on_small_disk(tmp_path, script, free_mib, "")
    assert plain.returncode == 0, plain.stderr
    run = (f"{os.path.abspath(SEEP)} run --exact --size 16MiB --no-report "
           f"-o {tmp_path}/recordings/ --")
    done = on_small_disk(tmp_path, script, free_mib, run)
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr
    assert b"No space" not in done.stderr
    free, count = map(int, done.stderr.split()[-2:])
    plain_free = int(plain.stderr.split()[-2])
    # What was free is the program's, down to the floor's.
    assert free >= min(128, plain_free) - 8
    assert count > 0 or free_mib < 400


# Blocks that come and go, and some that stay where it is told to leak.
CHURN = """
import sys, time
ring, kept, end = [None] * 4096, [], time.monotonic() + 34
while time.monotonic() < end:
    for i in range(4096):
        ring[i] = bytearray(600 + i % 64)
    kept += [bytearray(4096) for _ in range(64)] if sys.argv[1:] else []
    time.sleep(.02)
"""
JUDGE = """
for leak in '' leak; do
    $TOOL run --exact --floor 0 --no-report --quiet -o $OUT/x$leak.seep -- \
        $PYTHON -c "$CHURN" $leak &
done
wait
for leak in '' leak; do
    $TOOL report --json $OUT/x$leak.seep | tr -d '\\n'
    echo
done
"""


def test_what_a_full_disk_lost_is_neither_a_leak_nor_none(tmp_path):
    """Of a ring without its pages most allocations and frees are missing."""
    need("unshare", "mount")
    script = (f"mount -t tmpfs -o size=16m tmpfs {tmp_path} || exit 77\n"
              f"head -c 8m /dev/zero >{tmp_path}/filler\n{JUDGE}")
    done = subprocess.run(
        ["unshare", "-m", "/bin/sh", "-c", script], capture_output=True,
        timeout=120, check=False, env=environment() | {
            "TOOL": os.path.abspath(SEEP), "OUT": str(tmp_path),
            "CHURN": CHURN, "PYTHON": PYTHON,
            "SEEP_PRELOAD": str(PRELOAD.resolve())})
    if done.returncode == 77 or b"unshare" in done.stderr:
        pytest.skip("nothing can be mounted here")
    plain, leaks = (json.loads(line)["processes"][0]
                    for line in done.stdout.splitlines())
    for process in (plain, leaks):
        lost = process["losses"]
        assert lost["dropped_allocs"] + lost["dropped_frees"] > 10000
        assert lost["room_refused"] > 0
    # Its private memory tells what its blocks cannot.
    assert plain["verdict"]["class"] in ("insufficient-data", "suspect")
    assert leaks["verdict"]["class"] in ("insufficient-data", "suspect",
                                         "unexplained", "leak")
