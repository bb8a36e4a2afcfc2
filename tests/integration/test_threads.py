# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names of threads in what is reported, as the system knows them."""
import json

from command_line import PYTHON, recordings, run, seep

PROGRAM = """
import ctypes, threading
libc = ctypes.CDLL(None)
libc.pthread_setname_np.argtypes = [ctypes.c_ulong, ctypes.c_char_p]
libc.pthread_self.restype = ctypes.c_ulong
PR_SET_NAME = 15
kept = []

def by_prctl(name):
    libc.prctl(PR_SET_NAME, name, 0, 0, 0)
    kept.append(bytearray(1 << 20))

def by_pthread(name):
    bytearray(1 << 20)  # a first capture, under the name that it inherits
    libc.pthread_setname_np(libc.pthread_self(), name)
    kept.append(bytearray(1 << 20))

def nameless():
    kept.append(bytearray(1 << 20))

def main():
    libc.prctl(PR_SET_NAME, b"conductor", 0, 0, 0)
    for target, *names in ((by_prctl, b"worker-3"), (by_prctl, b"worker-12"),
                           (by_pthread, b"flusher"), (nameless,)):
        thread = threading.Thread(target=target, args=names)
        thread.start()
        thread.join()
    kept.append(bytearray(1 << 20))

main()
"""


def live_by_function(folder):
    """{(thread, function): live blocks} of the program's own functions."""
    done = run(folder, PYTHON, "-c", PROGRAM, options=("--sample", "4K"))
    assert done.returncode == 0, done.stderr
    shown = seep("report", "--json", "--by", "stack", *recordings(folder))
    assert shown.returncode == 0, shown.stderr
    found = {}
    for site in json.loads(shown.stdout)["processes"][0]["sites"]:
        for frame in site["frames"]:
            if frame["kind"] == "python" and site["live_bytes"] >= 1 << 20:
                key = site["thread"], frame["function"]
                found[key] = found.get(key, 0) + round(site["live_count"])
                break
    return found


def test_a_thread_is_told_by_its_name_and_a_pool_by_one(tmp_path):
    live = live_by_function(tmp_path)
    # Two threads of a pool are one; what main is called is no thread's name.
    assert live[("worker-*", "by_prctl")] == 2
    assert live[("flusher", "by_pthread")] == 1
    assert live[(None, "nameless")] == 1
    assert live[(None, "main")] == 1
    assert len(live) == 4


def test_a_report_by_thread_has_a_row_for_each(tmp_path):
    live_by_function(tmp_path)
    shown = seep("report", "--by", "thread", *recordings(tmp_path))
    assert shown.returncode == 0, shown.stderr
    for name in (b"worker-*", b"flusher"):
        assert name in shown.stdout
