# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that say themselves who holds what, and `seep held` asked of them.

A zoo is one process with many keepers, each with a line of its own, which go on
while they are asked. Which blocks a keeper made is known by that line.

Invariant: what a zoo says of itself is the truth; an answer is right, or not
clear, or wrong, and never two of these.
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from command_line import recordings, seep
from conftest import environment

PROGRAMS = pathlib.Path(__file__).parent / "programs"
COUNT = "120"
WAIT_S = 240
# A chain whose head moves on faster than memory is read has no end that can be
# found, and on a busy machine that is soon; nor has an array that is another
# for each block.
MOVING = {name: ("--freeze", "10000") for name in (
    "linked_list", "in_a_list", "in_a_linked_list", "by_a_registry",
    "in_a_grown_vector", "replaced_lists", "far_below")}
CLEAR = 0.5  # as the tool has it


class Zoo:
    """A process that goes on; its recording, and what it says of itself."""

    def __init__(self, folder, *command, sample="4K", allocator="glibc",
                 **variables):
        self.folder = folder
        self.ready = folder / "ready"
        self.process = subprocess.Popen(
            [*map(str, command)], stdout=subprocess.DEVNULL, cwd=folder,
            env=environment(folder, sample, allocator, SEEP_SIZE="64M",
                            **variables), start_new_session=True)
        try:
            self.await_ready()
        except BaseException:
            self.close()
            raise

    def await_ready(self):
        end = time.monotonic() + WAIT_S
        while not self.ready.exists():
            assert self.process.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        self.recording, = recordings(self.folder)
        done = seep("report", "--json", "--sites", "0", "--no-series",
                    "--no-held", self.recording)
        self.sites = {}
        for site in json.loads(done.stdout)["processes"][0]["sites"]:
            line = re.match(r"holders[^:]*:(\d+) ", site["where"] or "")
            if site["space"] == "heap" and line:
                self.sites.setdefault(int(line[1]), site["id"])

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def answer(self, line, *options):
        """All that is said of the blocks that the line made."""
        done = seep("held", "--json", "--site", self.sites[line], *options,
                    self.recording)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["sites"][0]["held"]

    def held(self, line, *options):
        """The first group of them."""
        return self.answer(line, *options)["groups"][0]


@contextlib.contextmanager
def zoo(folder, *command, **how):
    kept = Zoo(folder, *command, **how)
    try:
        yield kept
    finally:
        kept.close()


def python_zoo(folder, python, source="holders.py", **how):
    """.truth: {kind: (line, end, holder, None)}"""
    ready = folder / "ready"

    @contextlib.contextmanager
    def opened():
        with zoo(folder, python, PROGRAMS / source, ready, COUNT,
                 **how) as kept:
            kept.truth = {
                name: (line, *((holder, "") if holder in ("cycle", "lost")
                               else ("held", holder)), 0)
                for name, (line, holder) in
                json.loads(ready.read_text()).items()}
            yield kept
    return opened()


def native_zoo(folder, path, **how):
    """.truth: {kind: (line, end, holder, address of the root)}"""
    ready = folder / "ready"

    @contextlib.contextmanager
    def opened():
        with zoo(folder, path, ready, COUNT, **how) as kept:
            kept.truth = {}
            for line in ready.read_text().splitlines():
                name, number, end, root, holder = line.split(" ", 4)
                kept.truth[name] = int(number), end, holder, int(root, 16)
            yield kept
    return opened()


def is_or_has(told, holder):
    """What is told may be a little above the holder (the function whose closure
    has the list), where blocks have a second way to that; never beside it, and
    never a module alone. Up to 3.10 a generator has its variables by way of a
    frame."""
    told = told.replace(".gi_frame.", ".")
    return told.startswith(holder) or (
        holder.startswith(told) and "." in told)


def is_right(truth, group, has_names=True):
    """Of a program without symbols by where the root is."""
    _, end, holder, root = truth
    if group["end"] != end:
        return False
    if end != "held":
        return True
    last = group["steps"][-1] if group["steps"] else {"address": "0x0"}
    if root and not has_names:
        return last["kind"] in ("global", "thread_local") and \
            int(last["address"], 16) >= root
    if root:
        return (group["holder"] or "").startswith(holder) and \
            last["address"] is not None
    return is_or_has(group["holder"] or "", holder)


def judged(truth, group, has_names=True):
    """right; unclear; or wrong: it names another, or says lost or a cycle of
    what is held, and most blocks agree."""
    if group["share"] >= CLEAR and is_right(truth, group, has_names):
        return "right"
    is_said = group["end"] in ("held", "lost", "cycle")
    return "wrong" if is_said and group["share"] >= CLEAR else "unclear"
