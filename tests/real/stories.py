# SPDX-License-Identifier: LGPL-2.1-or-later
"""The table of stories: what is run, and what must be said of it.

Invariant: a demand is a sentence for people; it returns None where it is met.
"""
import dataclasses
import re

CALLED = ("leak", "suspect")
QUIET = ("steady", "bounded", "insufficient-data")
# what is said of free memory that an allocator keeps: no leak
KEPT = ("allocator-retention", "fragmentation")
CACHE = "dnnl"
RATE_SLACK = 0.3
# any processor has these; oneDNN computes in bfloat16 only with AVX-512
LAYERS = ["encode.py", "--dtype", "float32", "--layers"]
# 511 shapes; what oneDNN's cache of 1,024 primitives holds rises for the first
# half of these and is flat in the second, however fast the machine is
UNTIL_FULL = ["--batches", "1500", "--longest", "300"]


@dataclasses.dataclass
class Seen:
    """What one run left: the truth, and what seep says of it."""
    truth: dict
    processes: list  # documents of the program's own processes, worst first
    text: str  # `seep report` of all of them
    families: list = dataclasses.field(default_factory=list)
    diff: str = ""  # `seep diff` of the two runs of a story that has two
    plain: dict = None  # the truth of a short run without seep

    @property
    def verdict(self):
        """Of the process that matters."""
        return self.processes[0]["verdict"]

    @property
    def sites(self):
        """Its rows."""
        return self.processes[0]["sites"]


def names(site, function):
    """Has it this function, by its row or in its stack?"""
    return function in site["where"] or any(
        function in (frame.get("function") or "")
        for frame in site["frames"])


def headline(seen):
    """The answer, above what was recorded, as one line."""
    return " ".join(seen.text.partition("\nseep: ")[0].split())


def called(*functions, library=None):
    """A leak, by one of these lines; or by the library whose memory grows."""
    def demand(seen):
        said = seen.verdict["class"]
        if (library and said in (*CALLED, "unexplained")
                and re.search(rf"{library}('s|') own ", headline(seen))):
            return None
        if said not in CALLED:
            return f"{said}, and it leaks"
        if not any(word in headline(seen) for word in functions):
            return f"none of {', '.join(functions)} is named"
        return None
    return demand


def at_its_rate(seen):
    """Of the work, not of the run: the truth is kept / work_s."""
    growth = seen.verdict["growth_bytes_per_s"]
    if growth is None:
        return "no rate"
    true = seen.truth["kept_bytes"] / seen.truth["work_s"]
    if (growth["low"] > true * (1 + RATE_SLACK)
            or growth["high"] < true * (1 - RATE_SLACK)):
        return (f"{growth['low'] / 2**20:.1f} to {growth['high'] / 2**20:.1f} "
                f"MiB/s, and it is {true / 2**20:.1f}")
    return None


def no_leak(seen):
    """What fills and has a bound."""
    if seen.verdict["class"] in ("leak", "insufficient-data", "unexplained"):
        return f"{seen.verdict['class']}, and it is a cache"
    return None


def no_faster_than_memory(seen):
    """What was never touched does not grow."""
    growth = seen.verdict["growth_bytes_per_s"]
    memory = seen.processes[0]["memory"]["anonymous"]
    most = (memory["last_bytes"] - memory["first_bytes"]) / seen.processes[0][
        "process"]["duration_s"]
    if growth is not None and growth["low"] > 2 * max(most, 1 << 16):
        return (f"grows by {growth['low'] * 60 / 2**20:.0f} MiB/min at least, "
                f"and private memory by {most * 60 / 2**20:.0f}")
    return None


def holder(function, frame, least_bytes, pattern=None):
    """The most is held at that line, by that library."""
    def demand(seen):
        most = max(seen.sites, key=lambda site: site["live_bytes"])
        held = sum(site["live_bytes"] for site in seen.sites
                   if names(site, function))
        if held < least_bytes:
            return f"{held / 2**20:.0f} MiB at {function} are in the table"
        if not names(most, function):
            return f"most is held at {most['where']}"
        if not names(most, frame):
            return f"{frame} is not in the stack of {most['where']}"
        if pattern and not most["pattern"]:
            return f"{most['where']} has no pattern"
        return None
    return demand


def in_the_headline(*words):
    """What whoever reads no further must see."""
    def demand(seen):
        missing = [word for word in words
                   if not re.search(word, headline(seen))]
        return f"the headline lacks {missing}" if missing else None
    return demand


def in_the_text(*words):
    """Anywhere on the page."""
    def demand(seen):
        missing = [word for word in words if not re.search(word, seen.text)]
        return f"the page lacks {missing}" if missing else None
    return demand


def diff_says(*words):
    """What two runs come to."""
    def demand(seen):
        missing = [word for word in words if not re.search(word, seen.diff)]
        return (f"{seen.diff.partition(chr(10))[0]!r} lacks {missing}"
                if missing else None)
    return demand


def began_by(what):
    """How it was found when the work began."""
    def demand(seen):
        began = seen.processes[0]["process"]["work_began"]["by"]
        return None if began == what else f"the work began by {began}"
    return demand


def killed_by_the_kernel(seen):
    """That is the truth that the story is about."""
    if seen.truth["status"] != -9 or not seen.truth["kills"]:
        return f"it ended by {seen.truth['status']}, not by its group"
    return None


def private_rise(process):
    """(bytes, seconds) of the second half of what was judged, by the kernel."""
    end_s = process["process"]["duration_s"]
    seen = [(moment["t_s"], moment["private_bytes"])
            for moment in process["timeline"]["moments"]
            if moment["private_bytes"] is not None
            and end_s / 2 <= moment["t_s"] <= end_s]
    if len(seen) < 4:
        return 0, end_s / 2
    quarter = len(seen) // 4
    first, last = seen[:quarter], seen[-quarter:]
    return (sum(held for _, held in last) / quarter
            - sum(held for _, held in first) / quarter,
            sum(at for at, _ in last) / quarter
            - sum(at for at, _ in first) / quarter)


def is_truly_kept(process):
    """No leak is said of it, and what is said to grow does, to the end."""
    growth = process["verdict"]["growth_bytes_per_s"]
    if process["verdict"]["class"] not in KEPT:
        return False
    if growth is None:
        return True
    rise, span_s = private_rise(process)
    return rise >= growth["low"] * span_s / 2


def it_alone(title):
    """The process that leaks, which has this title, and no other one. That the
    free memory of another's allocator grows may be said if that is so."""
    def demand(seen):
        pid = seen.truth["pid"]
        told = [process for process in seen.processes
                if process["verdict"]["class"] not in QUIET
                and not is_truly_kept(process)]
        for process in told:
            if process["process"]["pid"] != pid:
                return (f"pid {process['process']['pid']} is told to be "
                        f"{process['verdict']['class']}, and pid {pid} leaks")
        for family in seen.families:
            if (family["class"] not in (*QUIET, *KEPT)
                    and pid not in family["pids"]):
                return (f"{family['name']} is told to be {family['class']}, "
                        f"and pid {pid} leaks")
        if not told:
            return f"pid {pid} is not told"
        if title not in headline(seen):
            return f"the headline lacks {title}"
        return None
    return demand


def unharmed(seen):
    """All was answered, and servers complain and end as they do alone."""
    if seen.truth.get("failed"):
        return f"{seen.truth['failed']} requests failed"
    for what in ("status", "complaints"):
        with_us, alone = seen.truth.get(what), seen.plain.get(what)
        if with_us != alone:
            return f"{what}: {with_us}, and {alone} without seep"
    return None


@dataclasses.dataclass
class Story:
    """One row."""
    name: str
    command: list  # of programs/
    truth: str
    demands: list
    options: list = dataclasses.field(default_factory=list)  # of seep run
    second: dict = None  # environment of a second run, to be compared
    process: str = None  # in the arguments of what matters; the program itself
    needs: str = None  # a module, or the story is left out
    processor: str = None  # so is it without this flag of /proc/cpuinfo
    beside: list = None  # options of a short run without seep, to be compared
    apart: str = ""  # a virtual environment of its own, under the other one
    attempt: list = None  # of programs/, must work, or the story is left out


def kept_tables(module, library):
    """A library with an allocator of its own: a line, or whose memory it is."""
    return Story(f"{module}-kept", ["frames_kept.py", module],
                 "2 MiB/s kept by make_one()",
                 [called("make_one", library=library), at_its_rate],
                 needs=module)


def kept_natively(module):
    """By an extension, with malloc."""
    return Story(module, ["kept_natively.py", module],
                 "2 MiB/s kept by keep_answer()",
                 [called("keep_answer", "make_one"), at_its_rate],
                 needs=module)


SHORT = ["--seconds", "5"]
STORIES = [
    # 398 shapes; its caches, of 1,024 each, are full by a third of the run
    Story("encode-bf16", ["encode.py", "--batches", "1000", "--longest", "200"],
          "oneDNN's cache fills",
          [no_leak, holder("encode_batch", CACHE, 100 << 20, "onednn")],
          needs="sentence_transformers", processor="avx512bw"),
    Story("encode-fp32", [*LAYERS, *UNTIL_FULL],
          "oneDNN's cache fills",
          [no_leak, holder("encode_batch", CACHE, 100 << 20, "onednn")],
          needs="sentence_transformers"),
    Story("encode-fp32-jemalloc", [*LAYERS, *UNTIL_FULL],
          "oneDNN's code buffers are reserved, not touched",
          [no_leak, no_faster_than_memory],
          options=["--allocator", "jemalloc"],
          needs="sentence_transformers"),
    Story("late-leak", ["late_leak.py"], "10 MiB/s after 33 s",
          [called("keep_reply"), at_its_rate]),
    Story("load-first", ["load_first.py"],
          "240 MiB are loaded for 24 s, then 2 MiB/s kept for 48 s",
          [called("keep_reply"), at_its_rate, began_by("load")],
          needs="torch"),
    Story("autograd", ["autograd.py"],
          "a graph kept after long imports",
          [called("add_loss"), at_its_rate],
          needs="sentence_transformers"),
    kept_tables("polars", "polars"),
    kept_tables("pyarrow", "arrow"),
    kept_tables("duckdb", "duckdb"),
    Story("onednn-capacity",
          [*LAYERS, "--batches", "500"],
          "the second run has a cache of 8", [diff_says(r"BETTER", r"-\d")],
          second={"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "8"},
          needs="sentence_transformers"),
    Story("max-requests", ["workers.py"],
          "five workers keep 1.4 MiB/s, for 20 s each",
          [in_the_headline("LEAK|SUSPECT", "keep_line")],
          process="web:app", needs="gunicorn"),
    Story("loader", ["loader.py"], "each of two workers keeps 5 MiB/s",
          [called("remember", "__getitem__")], needs="torch"),
    Story("over-limit", ["over_limit.py"],
          "12 MiB/s kept until RLIMIT_AS, then signal 9",
          [called("keep_answer"),
           in_the_headline(r"MiB/min", r"RLIMIT_AS's 600 MiB are used up"),
           in_the_text(r"killed by signal 9",
                       r"failed .* no room.* keep_answer.* before the")]),
    Story("killed-by-group", ["killed_by_group.py"],
          "8 MiB/s kept until a control group of 400 MiB is full",
          [killed_by_the_kernel, called("keep_answer"), at_its_rate,
           in_the_headline(r"MiB/min", r"[Tt]he cgroup's 400 MiB"),
           in_the_text(r"killed by signal 9|gone: killed",
                       # it may stand still at the limit before it is killed
                       r"in its last .*(; it kept most at .*,|"
                       r"allocated 0 B)",
                       r"its cgroup held .* of 400 MiB when")],
          process="--worker", attempt=["killed_by_group.py", "--try"]),
    Story("ray-serve", ["replicas.py"],
          "one of three replicas keeps 256 KiB a request",
          [called("remember"), at_its_rate, unharmed,
           it_alone("ray::ServeReplica:default:Embedder")],
          process="default_worker.py", needs="ray", beside=SHORT),
    Story("pytriton", ["triton.py"],
          "the model keeps 256 KiB a request, the servers nothing",
          [called("remember"), at_its_rate, unharmed, it_alone("triton.py")],
          process="", needs="pytriton", apart="pytriton", beside=SHORT),
    Story("uvicorn", ["uvicorn_load.py"],
          "128 KiB kept of each request",
          [called("remember"), at_its_rate, unharmed, it_alone("uvicorn")],
          process="", needs="fastapi", beside=SHORT),
    kept_natively("tokenizers"),
    kept_natively("onnxruntime"),
    Story("children", ["children.py"],
          "2 MiB/s by the parent of tools that come and go",
          [called("keep_reply"), at_its_rate, unharmed,
           it_alone("children.py")],
          process="", beside=SHORT),
]
