# SPDX-License-Identifier: LGPL-2.1-or-later
"""Real programs print and return the same under the preload.

Sampled and exact, over each allocator. What is not installed is skipped;
servers listen on sockets in the test's own folder or on loopback.
"""
import contextlib
import functools
import http.client
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time

import pytest

from built import BUILD
from conftest import (ALLOCATORS, LONG, TIMEOUT_S, dump, environment, execute,
                      need, program)

MODES = [pytest.param(None, id="sampled"), pytest.param(1, id="exact")]
PYTHON = "/usr/bin/python3"

PYTHON_SCRIPT = """
import collections, json, re, subprocess, sys, threading, zlib
results = []
def work(index):
    table = collections.Counter(str(n % 97) for n in range(20000))
    results.append((index, zlib.crc32(json.dumps(table).encode())))
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(results))
print(len(re.findall("a+b", "aab" * 50000)))
print(subprocess.run(["/bin/echo", "child"], capture_output=True).stdout)
print(sum(len(bytearray(n)) for n in range(0, 3000000, 30011)))
sys.exit(7)
"""

PERL_SCRIPT = r"""
my %seen; $seen{$_ % 1009} .= "x" x ($_ % 7) for 1..100000;
print join(",", map { "$_:" . length $seen{$_} } (sort { $a <=> $b }
keys %seen)[0..20]), "\n"; my $text = "ab" x 100000;
my $count = () = $text =~ /a(?=b)/g; print "$count\n"; exit 3;
"""

GIT_SCRIPT = """
export GIT_AUTHOR_DATE='2000-01-01 00:00:00 +0000' HOME="$PWD"
export GIT_COMMITTER_DATE="$GIT_AUTHOR_DATE" GIT_CONFIG_NOSYSTEM=1
rm -rf repo; git init -q -b main repo; cd repo
git config user.name seep; git config user.email seep@localhost
for i in 1 2 3 4 5 6; do
    seq 1 ${i}000 > file.$i; git add .; git commit -q -m "commit $i"
done
git log --stat; git gc -q; git fsck --full; git rev-parse HEAD
git diff HEAD~3 | cksum; git no-such-command; exit 5
"""

GCC_SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b); }
int main(int n, char **words) {
    qsort(words, n, sizeof(*words), compare);
    for (int i = 0; i < n; i++) puts(words[i]);
    return 0; }
"""

SQL = """
create table t(a integer primary key, b text);
with recursive c(x) as (select 1 union all select x + 1 from c
    where x < 50000) insert into t select x, hex(x * 7919) from c;
create index i on t(b);
select count(*), min(b), max(b), sum(length(b)) from t;
select substr(b, 1, 3) k, count(*) from t group by k order by 2 desc limit 9;
pragma integrity_check;
select no_such_column from t;
"""

TAR_SCRIPT = """
mkdir -p tree; for i in 1 2 3 4; do seq 1 ${i}0000 > tree/$i; done
tar --sort=name --mtime=@0 --owner=0 --group=0 -cf - tree |
    xz -T2 --block-size=100KiB | tee packed | cksum
xz -dc packed | tar -tvf -
"""

NODE_SCRIPT = """
const crypto = require('crypto'), zlib = require('zlib');
let kept = []; for (let i = 0; i < 200000; i++) kept.push({i, s: 'x' + i});
console.log(kept.length, crypto.createHash('sha256')
    .update(JSON.stringify(kept)).digest('hex'));
console.log(zlib.gzipSync(Buffer.alloc(1 << 20)).length > 0);
zlib.gzip('later', () => { console.log('later'); process.exitCode = 4; });
"""

COMMANDS = {
    "python3": [PYTHON, "-c", PYTHON_SCRIPT],
    "perl": ["perl", "-e", PERL_SCRIPT],
    "git": ["sh", "-c", GIT_SCRIPT],
    "gcc": ["sh", "-c", "gcc -O2 -Wall -x c - -S -o - && "
            "echo 'int f() { return }' | gcc -x c - -c -o /dev/null"],
    "g++": ["sh", "-c", "echo '#include <map>\n#include <string>\nint main() "
            "{ std::map<std::string, int> m; return m[\"a\"]; }' | "
            "g++ -O1 -x c++ - -o linked && ./linked && cksum linked"],
    "sqlite3": ["sqlite3", ":memory:"],
    "node": ["node", "-e", NODE_SCRIPT],
    "java": ["java", "-version"],
    "xz": ["sh", "-c", TAR_SCRIPT],
}
# Each process has a recording of its own: small ones.
MANY_PROCESSES = {"git", "gcc", "g++", "xz"}
INPUT = {"gcc": GCC_SOURCE.encode(), "sqlite3": SQL.encode()}


def pairs(names):
    """Each name with glibc in each mode; with each other allocator in one mode,
    by turns, so that each mode meets each allocator and each name too."""
    return [pytest.param(name, allocator, *mode.values,
                         id=f"{name}-{allocator}-{mode.id}")
            for i, name in enumerate(names)
            for j, allocator in enumerate(ALLOCATORS)
            for k, mode in enumerate(MODES)
            if LONG or allocator == "glibc" or (i + j + k) % 2]


@functools.cache
def seen_plainly(name, allocator):
    """Once for all modes: what is seen may not change from run to run."""
    with tempfile.TemporaryDirectory(prefix="seep-test-") as folder:
        return execute(COMMANDS[name], stdin=INPUT.get(name, b""),
                       allocator=allocator, cwd=folder, PYTHONHASHSEED=0).seen


@pytest.mark.parametrize("name,allocator,sample", pairs(COMMANDS))
def test_a_program_is_the_same(folder, name, allocator, sample):
    need(name)
    options = {"stdin": INPUT.get(name, b""), "allocator": allocator,
               "cwd": folder, "PYTHONHASHSEED": 0}
    if sample == 1 and name in MANY_PROCESSES:
        options["SEEP_SIZE"] = 8 << 20
    run = execute(COMMANDS[name], folder, sample=sample, **options)
    assert run.seen == seen_plainly(name, allocator)
    assert len(run.recordings) >= 1 or sample is None
    for path in run.recordings:
        document = dump(path, "--no-symbols")
        assert document["inert"] == 0
        for site in document["sites"]:
            assert (site["allocated_bytes"] - site["freed_bytes"]
                    == site["live_bytes"])


@pytest.mark.parametrize("allocator", [a for a in ALLOCATORS if a != "glibc"])
@pytest.mark.parametrize("name", ["python3", "perl", "sqlite3", "node"])
def test_an_allocator_may_stand_in_front_of_us(folder, name, allocator):
    need(name)
    options = {"stdin": INPUT.get(name, b""), "allocator": allocator,
               "cwd": folder, "PYTHONHASHSEED": 0}
    run = execute(COMMANDS[name], folder, sample=1, seep_first=False,
                  **options)
    assert run.seen == seen_plainly(name, allocator)


@contextlib.contextmanager
def server(argv, folder, ready, **options):
    """A server of ours for a while; yields the process."""
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
        env=environment(folder, **options))
    try:
        end = time.monotonic() + TIMEOUT_S
        while not ready():
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.05)
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(TIMEOUT_S)


def accepts(path):
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


@pytest.mark.parametrize("name,allocator,sample", pairs(["redis"]))
def test_redis_serves_under_load(folder, name, allocator, sample):
    need("redis-server", "redis-benchmark", "redis-cli")
    path = folder / "redis.sock"
    argv = ["redis-server", "--port", "0", "--unixsocket", str(path),
            "--save", "", "--dir", str(folder)]
    with server(argv, folder, lambda: accepts(path), allocator=allocator,
                sample=sample) as process:
        load = execute(["redis-benchmark", "-s", path, "-q", "-n", "5000",
                        "-c", "10", "-r", "1000", "-t",
                        "set,get,lpush,hset,sadd"], folder, sample=sample)
        assert load.status == 0, load.stderr
        for command, answer in [
                (["set", "key", "value"], b"OK\n"),
                (["get", "key"], b"value\n"), (["flushall"], b"OK\n"),
                (["eval", "return #ARGV", "0", "a", "b"], b"2\n"),
                (["debug", "jmap"], None), (["shutdown"], b"")]:
            run = execute(["redis-cli", "-s", path, *command])
            assert answer is None or run.stdout == answer
        assert process.wait(TIMEOUT_S) == 0
    documents = [dump(p, "--no-symbols") for p in folder.glob("*.seep")]
    assert any("redis" in document["executable"] for document in documents)


NGINX = """
daemon off; worker_processes 2; pid {folder}/pid; user root;
error_log {folder}/error.log; events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {folder}/body;
proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fast;
uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi; gzip on;
server {{ listen unix:{folder}/nginx.sock; root {folder}/www;
gzip_types *; gzip_min_length 1; }} }}
"""


def children_of(pid):
    """Of its first thread."""
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return set(path.read_text(encoding="ascii").split())


def reload(process):
    """SIGHUP; back when workers serve that were not there before."""
    before = children_of(process.pid)
    end = time.monotonic() + TIMEOUT_S
    process.send_signal(signal.SIGHUP)
    while not children_of(process.pid) - before:
        assert time.monotonic() < end, "it does not reload"
        time.sleep(0.01)


def fetch(path, name):
    client = http.client.HTTPConnection("localhost")
    client.sock = socket.socket(socket.AF_UNIX)
    client.sock.settimeout(TIMEOUT_S)
    client.sock.connect(str(path))
    client.request("GET", name, headers={"Accept-Encoding": "gzip"})
    answer = client.getresponse()
    body = answer.read()
    client.close()
    return answer.status, body


@pytest.mark.parametrize("name,allocator,sample", pairs(["nginx"]))
def test_nginx_serves_and_ends_in_order(folder, name, allocator, sample):
    need("nginx")
    (folder / "www").mkdir()
    folder.chmod(0o755)
    (folder / "www/page").write_bytes(b"seep " * 10000)
    (folder / "conf").write_text(NGINX.format(folder=folder),
                                 encoding="utf-8")
    path = folder / "nginx.sock"
    argv = ["nginx", "-c", str(folder / "conf"), "-p", str(folder)]
    answers = []
    for where in (None, folder):
        with server(argv, where, lambda: accepts(path), allocator=allocator,
                    sample=sample) as process:
            answers.append([fetch(path, name) for name in
                            ["/page", "/missing"] * 50])
            reload(process)
            answers[-1].append(fetch(path, "/page"))
            process.send_signal(signal.SIGQUIT)
            assert process.wait(TIMEOUT_S) == 0
        path.unlink(missing_ok=True)
    assert answers[0] == answers[1]
    documents = [dump(p, "--no-symbols") for p in folder.glob("*.seep")]
    assert len(documents) >= 1 or sample is None


def test_the_programs_path_is_recorded(folder):
    run = execute([PYTHON, "-c", "print(1)"], folder, sample=1)
    document, = [dump(path) for path in run.recordings]
    assert pathlib.Path(document["executable"]).name.startswith("python3")


def test_what_was_read_to_walk_a_large_library_is_given_back(folder):
    """Its unwind tables have 1.5 MiB, and calls come from all over it."""
    words = [program("large_tables"),
             BUILD / "tests/unit/capture/large_tables_0.so"]
    charged_kib = {preload: int(execute(words, folder, sample=1,
                                        preload=preload).stdout)
                   for preload in (False, True)}
    assert charged_kib[True] < charged_kib[False] + 256, charged_kib
