# SPDX-License-Identifier: LGPL-2.1-or-later
"""A test body again and again, and what it left behind.

A round is the calls that a marker asks for, in ten windows. What all of the
process's live blocks grew by in each window gives a mean with its 95 %
interval, and that is held against the limit: kept if the upper bound is, which
is all for most tests. A round that is over the limit counts only if the next
one is over it too, since caches fill, and only by what is no test runner's.

Blocks that no hook sees are in no figure of live bytes. So a round passes only
if the process's private memory kept to the limit as well: pages of its own, in
memory or swapped. Which test's they are nobody can tell, so that they never
fail one.

Invariant: what is kept here while a body is repeated is made before.
"""
import array
import gc
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import typing

from . import _calls, _gate_restart, _gate_sites

WINDOWS = 10
ROUNDS = 2  # at most, while call sites are watched
_STUDENT = 2.262  # 95 %, 9 degrees of freedom
_LIMIT_S = 300
_CHEAP_S = 1
# Private memory in a round, by page: growth in most windows is believed from
# here on, growth in few, which an allocator's arena may be, from there.
_EVEN_BYTES = 48 << 10
_STEP_BYTES = 1 << 20
_UNSEEN = ("no call site is seen to hold that: `seep run -o FILE -- PROGRAM` "
           "for longer and `seep report FILE` show what grows")
_LARGER = "use a larger SEEP_SIZE"
_REMEDIES = {"room_refused": "make room on the disk",  # the first that holds
             "live_full": _LARGER, "ranges_full": _LARGER,
             "sites_full": _LARGER,
             "stacks_full": _LARGER, "thinned_blocks": _LARGER}


class NotMeasured(Exception):
    """Why nothing can be said."""


class Found(typing.NamedTuple):
    """What was measured of one limit."""
    outcome: str  # "pass", "fail", "not enough data"
    low: float    # bytes; a call, a second, or in all
    high: float
    rows: list    # where, if it failed: as _gate_sites has them
    told: str     # how it was found
    advice: str = ""  # what would tell more, where the limit's is none
    unseen: float = 0  # passed: what no hook sees grew by no more than that


def interval(figures):
    """The mean's 95 % interval: low, high."""
    count = len(figures)
    mean = sum(figures) / count
    spread = sum((figure - mean) ** 2 for figure in figures) / (count - 1)
    half = _STUDENT * math.sqrt(spread / count)
    return mean - half, mean + half


def _live_bytes():
    """Of now. Garbage is no leak, unless the test says that it may stay."""
    if gc.isenabled():
        gc.collect()
    stats = _calls.stats()
    if stats is None:
        raise NotMeasured("this process is no longer recorded")
    return stats.live_bytes


def _sum_of_fields(path, *names):
    """Bytes of "NAME:  N kB" in a file of /proc; None if there is none."""
    with open(path, "rb") as file:
        found = [int(line.split()[1]) for line in file
                 if line.split(b":")[0].decode() in names]
    return sum(found) * 1024 if found else None


def private_bytes():
    """Of now, swapped pages too. The kernel's count of a process lags by some
    pages a core (6.2 and later); smaps_rollup walks its tables instead."""
    try:
        swapped = _sum_of_fields("/proc/self/status", "VmSwap") or 0
        try:
            held = _sum_of_fields("/proc/self/smaps_rollup", "Anonymous")
        except OSError:
            held = None
        if held is None:
            held = _sum_of_fields("/proc/self/status", "RssAnon")
    except (OSError, ValueError) as error:
        raise NotMeasured(f"private memory is unknown: {error}") from None
    if held is None:
        raise NotMeasured("this kernel does not report private memory")
    return held + swapped


def private_is_over(bytes_by_window, work, bound):
    """Did private memory grow by more than the limit, not by noise?"""
    total = sum(bytes_by_window)
    if total <= bound * sum(work):
        return False
    low, _ = interval([grown / done
                       for grown, done in zip(bytes_by_window, work)])
    return total >= _STEP_BYTES or (low > bound and total >= _EVEN_BYTES)


def call_repeatedly(call, count, until_s, tidy):
    """At least @count calls, and as many as fit before @until_s."""
    done = 0
    while done < count or time.monotonic() < until_s:
        call()
        tidy()
        done += 1
    return done


class Round:
    """One round of a limit; the figures it leaves behind."""

    def __init__(self, limit):
        self.limit = limit
        self.live = array.array("q", bytes(8 * (WINDOWS + 1)))
        self.private = array.array("q", bytes(8 * (WINDOWS + 1)))
        self.work = array.array("d", bytes(8 * WINDOWS))
        self.calls = 0

    def _window(self, index, call, tidy):
        if self.limit.calls:
            count = self.limit.calls * (index + 1) // WINDOWS - \
                self.limit.calls * index // WINDOWS
            self.work[index] = call_repeatedly(call, count, 0, tidy)
            self.calls += count
            return
        start = time.monotonic()
        self.calls += call_repeatedly(
            call, 1, start + self.limit.seconds / WINDOWS, tidy)
        self.work[index] = time.monotonic() - start

    def _look(self, index):
        self.live[index] = _live_bytes()
        self.private[index] = private_bytes()

    def run(self, call, tidy, between):
        """Bytes per unit of work: low, high."""
        between()
        self._look(0)
        for index in range(WINDOWS):
            self._window(index, call, tidy)
            between()
            self._look(index + 1)
        return interval([(self.live[i + 1] - self.live[i]) / self.work[i]
                         for i in range(WINDOWS)])

    def total_work(self):
        """Calls or seconds, of all windows."""
        return sum(self.work)

    def doubt(self, runners_own=0.0):
        """Found, of private memory that grew by more than the limit and a test
        runner's own share; None if there is none."""
        grown = [self.private[i + 1] - self.private[i]
                 for i in range(WINDOWS)]
        if not private_is_over(grown, self.work,
                               self.limit.bound + runners_own):
            return None
        low, high = interval([grown[i] / self.work[i]
                              for i in range(WINDOWS)])
        return Found("not enough data", low, high, [],
                     f"{self.calls} calls, private memory of the process",
                     _UNSEEN)


def _passed(last, low, high, told, runners_own=0.0):
    """Found, of a round that kept to the limit, and what it could not see."""
    unseen = max(last.limit.bound + runners_own,
                 _STEP_BYTES / last.total_work())
    return Found("pass", low, high, [], told, unseen=unseen)


def _own_folders():
    """Of the test runner and of ourselves."""
    own = [os.path.dirname(os.path.abspath(__file__)) + os.sep]
    for name in ("_pytest", "pluggy", "xdist", "execnet", "pytest_cov"):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file:
            own.append(os.path.dirname(os.path.abspath(file)) + os.sep)
    return own


def why_not_exact(tool, recording):
    """What growth cannot be measured for; None if it can."""
    done = subprocess.run(
        [tool, "info", "--json", recording], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, check=False, timeout=_LIMIT_S,
        env=_gate_restart.plain_environment())
    try:
        process = json.loads(done.stdout)["recordings"][0]["process"]
    except (ValueError, LookupError):
        return "the recording cannot be read: " + \
            done.stderr.decode(errors="replace")[-200:]
    # What was lost before the rounds is in both ends of each.
    if process["sample_bytes"] > 1:
        return "blocks are sampled: leave it to --seep alone, or use " \
            "`seep run --exact -- pytest --seep`" \
            if process["first_sample_bytes"] > 1 else \
            "blocks are sampled since the recording filled up: " + _LARGER
    objects = (process["python"] or {}).get("objects")
    if objects != "recorded":
        return f"Python's own objects are not recorded: {objects}"
    return None


class Sites:
    """Call sites at two moments, read by a process of its own."""

    def __init__(self, tool, recording):
        self.tool = tool
        self.recording = recording
        self.saved = None

    def _run(self, *own):
        done = subprocess.run(
            [sys.executable, "-I", os.path.abspath(_gate_sites.__file__),
             self.tool, self.recording, self.saved, *own],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
            env=_gate_restart.plain_environment(), timeout=_LIMIT_S)
        if done.returncode != 0:
            raise NotMeasured("the recording cannot be read: " +
                              done.stderr.decode(errors="replace")[-200:])
        return done.stdout

    def begin(self):
        """Keep what is live now."""
        handle, self.saved = tempfile.mkstemp(
            prefix="sites-", suffix=".json",
            dir=os.path.dirname(self.recording))
        os.close(handle)
        self._run()

    def end(self):
        """What came since."""
        return json.loads(self._run(*_own_folders()))

    def close(self):
        """No file stays."""
        if self.saved is not None and os.path.exists(self.saved):
            os.unlink(self.saved)


def _of_losses(lost, low=0.0, high=0.0):
    """Found, of what the recording lacks; @lost as _gate_sites has it."""
    counts = ", ".join(f"{name} {count}" for name, count in lost.items())
    advice = next((_REMEDIES[name] for name in _REMEDIES if name in lost),
                  "run it again, on a machine that is less busy")
    return Found("not enough data", low, high, [],
                 f"the recording has losses meanwhile: {counts}", advice)


def _judged(limit, rounds, bounds, since):
    """Of rounds that were over the limit, by what came at call sites."""
    work = sum(done.total_work() for done in rounds)
    told = f"{sum(done.calls for done in rounds)} calls"
    mean = sum(row["bytes"] for row in since["grown"]) / work
    low, high = bounds
    # Sites that were read half written are no proof of innocence.
    if set(since["lost"]) - {"torn_sites"} or (since["lost"] and
                                               mean <= limit.bound):
        return _of_losses(since["lost"], low, high)
    if mean <= limit.bound:
        runners_own = max((low + high) / 2 - mean, 0)
        return rounds[-1].doubt(runners_own) or \
            _passed(rounds[-1], mean, mean, told, runners_own)
    # The runner's own share is in both bounds, and goes.
    shift = (low + high) / 2 - mean
    low, high = low - max(shift, 0), high - max(shift, 0)
    outcome = "fail" if low > limit.bound else "not enough data"
    return Found(outcome, low, high, since["grown"], told)


def _rounds_on(limit, repeat, sites):
    """After a round over the limit."""
    rounds, low, high, doubt = [], 0.0, 0.0, None
    sites.begin()
    while len(rounds) < ROUNDS:
        rounds.append(Round(limit))
        low, high = repeat(rounds[-1])
        doubt = rounds[-1].doubt() if high <= limit.bound else None
        if high <= limit.bound and doubt is None:
            return _passed(rounds[-1], low, high, f"{rounds[-1].calls} calls")
        if low > limit.bound:
            return _judged(limit, rounds, (low, high), sites.end())
    return doubt or Found("not enough data", low, high, [],
                 f"{sum(done.calls for done in rounds)} calls")


def growth(limit, call, runner, tool, recording):
    """Found, of a limit_growth or limit_growth_per_call.

    @call runs the body; @runner is what a test runner wants done after each
    call (tidy) and between windows (between).
    """
    def repeat(this):
        return this.run(call, runner.tidy, runner.between)

    if limit.calls:
        call_repeatedly(call, limit.warmup, 0, runner.tidy)
    else:
        call_repeatedly(call, 1, time.monotonic() + limit.warmup, runner.tidy)
    start = time.monotonic()
    while True:
        first = Round(limit)
        low, high = repeat(first)
        if high <= limit.bound and first.doubt() is None:
            return _passed(first, low, high, f"{first.calls} calls")
        if start is None or time.monotonic() - start > _CHEAP_S:
            break
        start = None  # one more is cheaper than to read the recording
    sites = Sites(tool, recording)
    try:
        return _rounds_on(limit, repeat, sites)
    finally:
        sites.close()


def device(limit, since):
    """Found, of a limit_device_memory: the device that held the most."""
    if since["lost"]:
        return _of_losses(since["lost"])
    worst = max(since["devices"].items(), default=None,
                key=lambda entry: entry[1]["low"])
    if worst is None:
        return Found("pass", 0, 0, [], "no memory of a GPU")
    ordinal, held = worst
    outcome = "fail" if held["low"] > limit.bound else \
        "pass" if all(other["high"] <= limit.bound
                      for other in since["devices"].values()) else \
        "not enough data"
    return Found(outcome, held["low"], held["high"], held["rows"],
                 f"GPU {ordinal}")
