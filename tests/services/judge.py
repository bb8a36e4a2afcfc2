# SPDX-License-Identifier: LGPL-2.1-or-later
"""What seep says of a recorded service, against what the service says.

Invariant: what is true comes from the service alone, what was said from
`seep report --json` and `seep check`; a recording can be judged again.
"""
import dataclasses
import json
import math
import pathlib
import subprocess
import sys

sys.path.insert(0, str(
    pathlib.Path(__file__).resolve().parent.parent / "integration"))

import consistency  # noqa: E402

MIB = 1 << 20
# What nobody gave a mean to is as sparse as this at the most.
MODES = {"exact": 1, "64K": 64 << 10, "512K": 512 << 10,
         "default": 512 << 10}
LIMIT_MIB_PER_MIN = 1
CALLED = ("leak", "suspect")
# That memory grows is said, though not which line keeps it.
WARNS = (*CALLED, "unexplained", "growing")
REASSURES = ("bounded", "steady", "allocator-retention", "fragmentation",
             "retention")
ENOUGH_SAMPLES = 12
LEAST_KEPT_BYTES = 2 * MIB
READ_LIMIT_S = 300


@dataclasses.dataclass
class Truth:
    """What a service said of itself."""
    leaks: bool
    functions: list
    even: bool
    seconds: float
    kept_bytes: int
    kept_blocks: int
    kept_by_part: list
    requests_by_part: list
    pid: int

    @classmethod
    def read(cls, line):
        """Of the last line of its output."""
        said = json.loads(line)
        said["functions"] = [name for name in said["functions"].split("|")
                             if name]
        del said["requests"]
        return cls(**said)

    @property
    def rate(self):
        """Bytes a second over the whole run."""
        return self.kept_bytes / self.seconds if self.leaks else 0.0

    def samples(self, mode):
        """How many kept blocks are to be expected in a recording."""
        if not self.kept_blocks:
            return 0.0
        mean = self.kept_bytes / self.kept_blocks
        return self.kept_blocks * (1 - math.exp(-mean / MODES[mode]))

    def fault(self):
        """Why it is no leak as this suite means it; None."""
        if not self.leaks:
            return None
        if self.kept_bytes < LEAST_KEPT_BYTES:
            return "keeps too little"
        work = self.requests_by_part[-1]
        before = [kept for kept, requests
                  in zip(self.kept_by_part, self.requests_by_part)
                  if requests <= 0.8 * work]
        return None if self.kept_by_part[-1] > before[-1] else "has stopped"


@dataclasses.dataclass
class Row:
    """One service in one mode, judged."""
    name: str
    mode: str
    leaks: bool
    kept_mib: float
    mib_per_min: float
    samples: float
    verdict: str = ""
    first: str = ""
    first_class: str = ""
    check: int = -1
    right: bool = False       # the first row that is called is the right line
    listed_first: bool = False  # the first row of all is
    has_line: bool = True
    covered: bool = None      # the interval of the rate; None: not told
    faint: bool = False
    error: str = ""
    false_sites: int = 0

    @property
    def called(self):
        """Is it said that memory leaks, or may?"""
        return self.verdict in WARNS

    @property
    def reassured(self):
        """Is one who leaks told that it does not?"""
        return self.leaks and (self.verdict in REASSURES or (
            self.check == 0 and self.mib_per_min > LIMIT_MIB_PER_MIN))

    @property
    def alarm(self):
        """Is one who does not leak told that it does?"""
        return not self.leaks and (self.verdict == "leak"
                                   or self.false_sites > 0)

    @property
    def good(self):
        """As far as a reader may expect."""
        if self.error or self.reassured or self.alarm:
            return False
        if not self.leaks:
            return True
        if self.faint:
            return not self.called or self.right or not self.has_line
        return self.called and (self.right or not self.has_line)

    @property
    def mark(self):
        """What is wrong, in a word."""
        if self.error:
            return "ERROR " + self.error
        if self.reassured:
            return ("REASSURED" if self.verdict in REASSURES
                    else "CHECK-PASSES")
        if self.alarm:
            return "ALARM"
        if self.good:
            return ""
        return "wrong line" if self.called else "not called"


def functions_of(site):
    """Names of all frames."""
    return [frame.get("function") or "" for frame in site["frames"]]


def is_line(site, functions):
    """Is it one of the lines that keep?"""
    names = functions_of(site)
    where = site.get("where") or ""
    return any(function in where or any(function in name for name in names)
               for function in functions)


def run_seep(seep, verb, recordings, *options):
    """Exit status and output of a verb."""
    done = subprocess.run([str(seep), verb, *options, *map(str, recordings)],
                          capture_output=True, timeout=READ_LIMIT_S,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def process_of(document, pid):
    """The service's own, whatever else left a recording."""
    found = [process for process in document["processes"]
             if process["process"]["pid"] == pid]
    return found[-1] if found else None


def recording_of(folder, process):
    """The file that a process is read from."""
    name = pathlib.Path(process["process"]["recording"]).name
    return pathlib.Path(folder) / name


def headline_site(process):
    """The row that the verdict's sentence names; None."""
    sentence = process["verdict"]["sentence"]
    named = [site for site in process["sites"]
             if site["where"]
             and consistency.is_named(site["where"], sentence)]
    return max(named, key=lambda site: len(site["where"]), default=None)


def judge_sites(row, truth, process):
    """Which lines are called, which is first, and whether the rate is held."""
    sites = process["sites"]
    called = [site for site in sites if site["class"] in CALLED]
    if not truth.leaks:
        row.false_sites = sum(site["class"] == "leak" for site in sites)
    top = (called or sites or [None])[0]
    if top is not None:
        row.first, row.first_class = top["where"] or "?", top["class"]
    row.listed_first = bool(sites) and is_line(sites[0], truth.functions)
    # the headline is read first; where it names no row, the table is
    named = headline_site(process) or (called or [None])[0]
    row.right = (row.verdict in CALLED and named is not None
                 and is_line(named, truth.functions))
    if named is not None:
        row.first, row.first_class = named["where"] or "?", named["class"]
    ours = next((site for site in called if is_line(site, truth.functions)),
                None)
    rate = ours and ours.get("growth_bytes_per_s")
    if rate and truth.even:
        row.covered = rate["low"] <= truth.rate <= rate["high"]


def judge(seep, folder, name, mode):
    """What is said of the recordings in a folder."""
    folder = pathlib.Path(folder)
    try:
        lines = (folder / "truth.json").read_text("utf-8").splitlines()
        truth = Truth.read(next(line for line in reversed(lines)
                                if line.startswith('{"pid"')))
    except (OSError, ValueError, StopIteration) as error:
        return Row(name, mode, False, 0, 0, 0, error=f"no truth: {error}")
    row = Row(name, mode, truth.leaks, truth.kept_bytes / MIB,
              truth.rate * 60 / MIB, truth.samples(mode),
              has_line=bool(truth.functions), error=truth.fault() or "")
    row.faint = (truth.leaks and mode != "exact"
                 and row.samples < ENOUGH_SAMPLES)
    recordings = sorted(folder.glob("*.seep"))
    status, out, err = run_seep(seep, "report", recordings, "--json")
    if status not in (0, 3, 4):
        row.error = f"report: {status} {err.decode()[-200:]}"
        return row
    process = process_of(json.loads(out), truth.pid)
    if process is None:
        row.error = f"no recording of {truth.pid}"
        return row
    row.verdict = process["verdict"]["class"]
    judge_sites(row, truth, process)
    own = [recording_of(folder, process)]
    row.check, _, _ = run_seep(seep, "check", own, "--max-growth",
                               f"{LIMIT_MIB_PER_MIN}MiB/min")
    against = consistency.contradictions(
        process, run_seep(seep, "report", own)[1].decode(), row.check)
    row.error = row.error or "; ".join(against)
    return row


def share(part, whole):
    """As text."""
    return f"{part}/{whole}" + (f" ({100 * part / whole:.0f} %)" if whole
                                else "")


def tidy_pairs(rows):
    """(abrupt, tidy) of the same kind and mode."""
    by_name = {(row.name, row.mode): row for row in rows if row.leaks}
    for (name, mode), row in by_name.items():
        kind, end = name.rsplit("@", 1)
        abrupt = by_name.get((f"{kind}@kill", mode))
        if end != "kill" and abrupt is not None:
            yield abrupt, row


def totals_of(rows):
    """{figure: (how many, of how many)} of some rows."""
    leaks = [row for row in rows if row.leaks and not row.error]
    clear = [row for row in leaks if not row.faint]
    lines = [row for row in clear if row.has_line]
    clean = [row for row in rows if not row.leaks and not row.error]
    told = [row for row in rows if row.covered is not None]
    pairs = list(tidy_pairs(rows))
    return {
        "leaks told bounded, steady, retention or check-pass":
            (sum(row.reassured for row in leaks), len(leaks)),
        "  by the verdict":
            (sum(row.verdict in REASSURES for row in leaks), len(leaks)),
        "  by check":
            (sum(row.reassured and row.verdict not in REASSURES
                 for row in leaks), len(leaks)),
        "clear leaks called": (sum(row.called for row in clear), len(clear)),
        "  of these leak": (sum(row.verdict == "leak" for row in clear),
                            len(clear)),
        "clear leaks called with the right line first":
            (sum(row.called and row.right for row in lines), len(lines)),
        "  right line first in the table of all":
            (sum(row.listed_first for row in lines), len(lines)),
        "faint leaks told insufficient data or called":
            (sum(not row.reassured for row in leaks if row.faint),
             len(leaks) - len(clear)),
        "clean services called leak": (sum(row.alarm for row in clean),
                                       len(clean)),
        "  called suspect": (sum(row.verdict == "suspect" for row in clean),
                             len(clean)),
        "  broken by check": (sum(row.check == 3 for row in clean),
                              len(clean)),
        "intervals that hold the true rate":
            (sum(row.covered for row in told), len(told)),
        "tidy twins with the verdict of their abrupt twins":
            (sum(one.verdict == other.verdict for one, other in pairs),
             len(pairs)),
        "  both called, or both not":
            (sum(one.called == other.called for one, other in pairs),
             len(pairs)),
        "runs that could not be judged": (sum(bool(row.error) for row in rows),
                                          len(rows)),
    }


def print_table(rows):
    """A line a row, and the totals a mode."""
    rows = sorted(rows, key=lambda row: (not row.leaks, row.name,
                                         list(MODES).index(row.mode)))
    for row in rows:
        truth = (f"leak {row.mib_per_min:6.1f}/min n {row.samples:<6.0f}"
                 if row.leaks else "clean")
        covered = {None: " ", True: "+", False: "-"}[row.covered]
        print(f"{row.name:26} {row.mode:7} {truth:25}"
              f"{'faint' if row.faint else '':5} {row.verdict:19} check "
              f"{row.check:2} {covered} {row.mark:12} {row.first_class} "
              f"{row.first[:48]}")
    present = [mode for mode in MODES if any(r.mode == mode for r in rows)]
    sums = [totals_of([row for row in rows if row.mode == mode])
            for mode in present] + [totals_of(rows)]
    print("\n" + " " * 54 + "".join(f"{word:>17}"
                                    for word in [*present, "all"]))
    for figure in sums[0]:
        cells = "".join(f"{share(*one[figure]):>17}" for one in sums)
        print(f"{figure:54}{cells}")


def document(rows):
    """For a machine."""
    return {"rows": [{**dataclasses.asdict(row), "reassured": row.reassured,
                      "alarm": row.alarm, "called": row.called,
                      "good": row.good} for row in rows],
            "totals": totals_of(rows)}
