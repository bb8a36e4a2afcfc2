# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is odd about a process or its folder, and other languages' runtimes:
each ends as without us. What is not installed is skipped.
"""
import os
import shutil
import stat
import subprocess
import sys

import pytest

from storms import LIBRARY, STORM, TIMEOUT_S, place_, same, times, totals
from conftest import (LONG, PRELOAD, SEEP, environment, execute,  # noqa: E402
                      folder, need, program, recordings_in)

PYTHON = "/usr/bin/python3"
MODES = pytest.mark.parametrize("sample", [None, 1], ids=["sampled", "exact"])
assert place_ and folder

RUST = """
use std::collections::HashMap;
use std::thread;
fn main() {
    let workers: Vec<_> = (0..4u64).map(|w| thread::spawn(move || {
        let mut words: HashMap<String, Vec<u8>> = HashMap::new();
        for i in 0..50_000u64 {
            words.entry(format!("{}", (i * 7919 + w) % 997))
                .or_default().push((i % 251) as u8);
        }
        words.values().map(|v| v.len()).sum::<usize>()
    })).collect();
    let sums: Vec<usize> =
        workers.into_iter().map(|w| w.join().unwrap()).collect();
    println!("{:?}", sums);
    let caught = std::panic::catch_unwind(|| {
        let empty: Vec<u8> = Vec::new();
        empty[std::env::args().count()]
    });
    println!("{}", caught.is_err());
    std::process::exit(6);
}
"""

GO = """
package main
import ("C"; "fmt"; "os"; "os/exec"; "strings"; "sync")
func main() {
    var group sync.WaitGroup
    sums := make([]int, 8)
    for w := range sums {
        group.Add(1)
        go func(w int) {
            defer group.Done()
            words := map[string][]byte{}
            for i := 0; i < 50000; i++ {
                key := fmt.Sprint((i*7919 + w) % 997)
                words[key] = append(words[key], byte(i))
                sums[w] += len(words[key])
            }
            C.CString(strings.Repeat("x", 100+w))
        }(w)
    }
    group.Wait()
    out, err := exec.Command("/bin/echo", "child").Output()
    fmt.Println(sums, string(out), err)
    os.Exit(6)
}
"""

JAVA = """
import java.nio.ByteBuffer;
import java.util.zip.*;
public class Storm {
    public static void main(String[] words) throws Exception {
        long[] sums = new long[4];
        Thread[] threads = new Thread[4];
        for (int t = 0; t < 4; t++) {
            int at = t;
            threads[t] = new Thread(() -> {
                for (int i = 0; i < 200; i++) {
                    Deflater deflater = new Deflater();
                    deflater.setInput(new byte[10000 + i]);
                    deflater.finish();
                    sums[at] += deflater.deflate(new byte[20000]);
                    deflater.end();
                    sums[at] += ByteBuffer.allocateDirect(5000).capacity();
                }
            });
            threads[t].start();
        }
        for (Thread thread : threads) thread.join();
        System.out.println(java.util.Arrays.toString(sums));
        System.exit(6);
    }
}
"""


def compare(argv, where, sample, **more):
    """Without and with us."""
    plain = execute(argv, **more)
    run = execute(argv, where, sample=sample, **more)
    assert run.seen == plain.seen
    for path in run.recordings:
        totals(path)
    return run


# loaders and kernels

@MODES
def test_a_library_may_have_a_c_library_of_its_own(place, sample):
    count = times(100, 20000)
    run = same(place, "loads_apart", count, LIBRARY, sample=sample)
    assert run.stdout == f"{count} loads apart\n".encode()
    for path in run.recordings:
        totals(path)


@MODES
def test_who_serves_page_faults_may_allocate(place, sample):
    count = times(500, 20000)
    run = same(place, "user_faults", count, sample=sample)
    assert run.stdout == f"{count} pages\n".encode()
    for path in run.recordings:
        totals(path)


# set-uid helpers

@MODES
def test_a_recorded_program_may_start_a_set_uid_helper(folder, sample):
    if os.geteuid() != 0:
        pytest.skip("needs root to make a set-uid program")
    helper = folder / "helper"
    shutil.copy(STORM, helper)
    os.chown(helper, 65534, 65534)
    helper.chmod(0o4755)
    folder.chmod(0o755)
    script = ("import subprocess, sys\n"
              "x = [bytearray(1 << 20) for _ in range(64)]\n"
              "for _ in range(3):\n"
              f"    done = subprocess.run(['{helper}', 'execs', '3'],\n"
              "        capture_output=True)\n"
              "    print(done)\n")
    run = compare([PYTHON, "-c", script], folder, sample)
    assert run.stdout.count(b"returncode=5") == 3
    assert b"no more to execute" in run.stdout and b"cannot" not in run.stdout
    path, = run.recordings
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# a disk that is not written to any more

READ_ONLY = """
truncate -s 300M {image} && mkfs.ext4 -q -F {image} &&
mount -o loop {image} {disk} || exit 77
mkdir {disk}/recordings
{storm} &
pid=$!
i=0
until [ "$(ls {disk}/recordings/*.seep 2>/dev/null)" ]; do
    i=$((i + 1)); [ $i -lt 600 ] || exit 78
    sleep 0.05
done
sleep 0.2
mount -o remount,abort {disk}; touch {disk}/x 2>/dev/null && exit 77
sleep 0.3
kill -0 $pid || exit 79
kill -9 $pid; wait $pid; status=$?
cp {disk}/recordings/*.seep {out}
umount {disk}
[ $status = 137 ] || exit $status
"""


def test_a_disk_that_turns_read_only_beneath_it_harms_nobody(folder):
    """As ext4 does after an error; it grows all the while, and reads."""
    need("unshare", "mount", "mkfs.ext4")
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    disk = folder / "disk"
    disk.mkdir()
    script = READ_ONLY.format(
        image=folder / "image", disk=disk, out=folder, storm=" ".join(
            str(word) for word in (program("kill_me"), folder / "log", 600)))
    variables = environment(disk / "recordings", sample=1,
                            SEEP_SIZE=64 << 20, SEEP_FLOOR=0)
    preload = variables.pop("LD_PRELOAD")
    script = script.replace(f"\n{program('kill_me')}",
                            f"\nLD_PRELOAD={preload} {program('kill_me')}")
    done = subprocess.run(["unshare", "-m", "/bin/sh", "-c", script],
                          capture_output=True, timeout=TIMEOUT_S, check=False,
                          env=variables)
    if done.returncode == 77 or b"unshare" in done.stderr:
        pytest.skip(f"no disk can be made here: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    path, = recordings_in(folder)
    document = totals(path)
    assert sum(site["allocated_count"] for site in document["sites"]) > 0
    shown = subprocess.run([SEEP, "report", path], capture_output=True,
                           timeout=TIMEOUT_S, check=False)
    assert shown.returncode in (0, 3, 4), shown.stderr


# other runtimes

@MODES
def test_a_java_machine_that_checks_its_calls_finds_no_fault(folder, sample):
    need("java")
    words = ["-Xcheck:jni", "-Xint"]
    if LONG and shutil.which("javac"):
        (folder / "Storm.java").write_text(JAVA, encoding="ascii")
        subprocess.run(["javac", "-d", folder, folder / "Storm.java"],
                       check=True, timeout=TIMEOUT_S)
        run = compare(["java", *words[:1], "-cp", folder, "Storm"], folder,
                      sample)
        assert run.status == 6
    else:
        run = compare(["java", *words, "--list-modules"], folder, sample)
        assert run.status == 0
    assert b"WARNING" not in run.stdout and b"FATAL" not in run.stdout


def built(where, compiler, source, *words):
    """The path of what it was compiled to; skips in the short form."""
    if not LONG:
        pytest.skip("long form only: the compiler is large")
    need(compiler)
    name = where / source[0]
    name.write_text(source[1], encoding="ascii")
    subprocess.run([compiler, *words, "-o", where / "built", name], check=True,
                   cwd=where, timeout=TIMEOUT_S,
                   env=os.environ | {"GOCACHE": str(where / "cache"),
                                     "GO111MODULE": "off"})
    return where / "built"


@MODES
def test_a_rust_program_is_the_same(folder, sample):
    path = built(folder, "rustc", ("storm.rs", RUST), "-O")
    plain = execute([path])
    run = execute([path], folder, sample=sample)
    # A panic tells the number of its thread.
    assert (run.status, run.stdout) == (plain.status, plain.stdout)
    assert run.status == 6 and len(run.recordings) == 1


@MODES
def test_a_go_program_is_the_same(folder, sample):
    path = built(folder, "go", ("storm.go", GO), "build")
    run = compare([path], folder, sample)
    assert run.status == 6


if __name__ == "__main__":
    assert PRELOAD
    sys.exit(pytest.main([__file__, "-s"]))
