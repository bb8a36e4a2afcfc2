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


def not_called(seen):
    """Neither a leak nor suspected, and told."""
    said = seen.verdict["class"]
    if said in ("steady", "bounded", *KEPT):
        return None
    return f"{said}, and nothing leaks"


def space_grows(space):
    """What is told to grow is of this kind of memory."""
    def demand(seen):
        most = max(seen.sites, key=lambda site: (
            site["class"] in CALLED,
            (site["growth_bytes_per_s"] or {"low": 0})["low"]))
        if most["space"] != space:
            return f"{most['where']} grows in {most['space']}, not {space}"
        return None
    return demand


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
    pins: tuple = ()  # of this Python, and with these: it is made when needed
    attempt: list = None  # of programs/, must work, or the story is left out
    gpu: bool = False  # of NVIDIA, or the story is left out
    environment: dict = dataclasses.field(default_factory=dict)


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


def on_gpu(name, *command, truth, demands, **more):
    """A service whose model is on a GPU."""
    return Story(f"gpu-{name}", list(command), truth, demands, gpu=True,
                 needs="torch", **more)


def kept_on_gpu(name, *command, truth, line, space="tensor", more=(),
                **options):
    """And that keeps something by a line."""
    return on_gpu(name, *command, truth=truth, demands=[
        called(line), at_its_rate, space_grows(space), *more], **options)


def published(name, turn, line, leaks, mended, demands=None):
    """What a release leaks, at the line that calls it, and a later one not.
    Each is a version of Python and what is installed there."""
    def story(suffix, pins, truth, demands):
        what = pins.split()[1] if " " in pins else f"python {pins}"
        return Story(f"published-{name}{suffix}", ["published.py", turn],
                     f"{what} {truth}", demands, pins=tuple(pins.split()),
                     apart="published/" + what.replace(" ", ""))

    return (story("", leaks, "leaks",
                  demands or [called(line), at_its_rate]),
            story("-mended", mended, "does not", [not_called]))


SHORT = ["--seconds", "5"]
PUBLISHED = [story for pair in (
    published("ujson-dump", "ujson_dump", "save_rows",
              "3.11 ujson==5.12.0", "3.11 ujson==5.12.1"),
    published("ujson-default", "ujson_default", "encode_items",
              "3.11 ujson==5.9.0", "3.11 ujson==5.12.1"),
    published("frozendict", "frozendict_repr", "describe",
              "3.10 frozendict==2.3.2", "3.10 frozendict==2.3.4"),
    published("multidict-istr", "multidict_istr", "copy_headers",
              "3.11 multidict==6.3.2", "3.11 multidict==6.4.3"),
    published("multidict-del", "multidict_del", "strip_headers",
              "3.11 multidict==6.6.3", "3.11 multidict==6.6.4"),
    published("protobuf", "protobuf_bytesize", "measure",
              "3.11 protobuf==4.22.1", "3.11 protobuf==4.25.8"),
    published("hiredis", "hiredis_map", "read_hash",
              "3.11 hiredis==2.2.3", "3.11 hiredis==3.2.1"),
    published("pendulum", "pendulum_parse", "read_date",
              "3.8 pendulum==2.1.2", "3.8 pendulum==3.0.0"),
    published("msgpack", "msgpack_iterate", "read_stream",
              "3.12 msgpack==1.0.7", "3.12 msgpack==1.0.8"),
    published("orjson", "orjson_fails", "read_body",
              "3.8 orjson==2.6.5", "3.8 orjson==3.10.15"),
    # it is spread over the lines that make what the cache has
    published("aiohttp", "aiohttp_missing", "",
              "3.11 aiohttp==3.10.10", "3.11 aiohttp==3.10.11",
              [called(""), in_the_text(r"held by\s+aiohttp\.web_app\."
                                       r"_build_middlewares\.cache")]),
    published("tokenizers", "tokenizers_long", "encode",
              "3.11 tokenizers==0.20.3", "3.11 tokenizers==0.21.0"),
    published("pydantic", "pydantic_rebuild", "load_plugins",
              "3.11 pydantic==2.12.3", "3.11 pydantic==2.14.4"),
    published("pandas", "pandas_json", "answer",
              "3.11 pandas==2.3.2 numpy==2.3.2",
              "3.11 pandas==2.3.3 numpy==2.3.2"),
    published("scipy", "scipy_cdist", "nearest",
              "3.9 scipy==1.7.0 numpy==1.21.6",
              "3.9 scipy==1.7.1 numpy==1.21.6"),
    published("numpy", "numpy_roots", "solve",
              "3.11 numpy==2.4.0", "3.11 numpy==2.4.2"),
    published("onnxruntime", "onnxruntime_lists", "infer",
              "3.11 onnxruntime==1.19.2 onnx==1.16.2 numpy==1.26.4",
              "3.11 onnxruntime==1.21.0 onnx==1.16.2 numpy==1.26.4"),
    published("ssl", "ssl_session", "resume", "3.12.1", "3.9"),
) for story in pair]
STORIES = [
    # 398 shapes; its caches, of 1,024 each, are full by a third of the run
    Story("encode-bf16", ["encode.py", "--batches", "1000", "--longest", "200",
                          "--at-least", "60"],
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
                       # (and a line ends anywhere)
                       r"in its last [\s\S]*?(;\s+it\s+kept\s+most\s+at|"
                       r"allocated\s+0\s+B)",
                       r"its cgroup held .* of 400 MiB when")],
          process="--worker", attempt=["killed_by_group.py", "--try"]),
    Story("ray-serve", ["replicas.py"],
          "one of three replicas keeps 256 KiB a request",
          [called("remember"), at_its_rate, unharmed,
           it_alone("ray::ServeReplica:default:Embedder")],
          process="default_worker.py", needs="ray", beside=SHORT),
    Story("pytriton", ["pytriton_server.py"],
          "the model keeps 256 KiB a request, the servers nothing",
          [called("remember"), at_its_rate, unharmed,
           it_alone("pytriton_server.py")],
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
GPU_STORIES = [
    kept_on_gpu("kept", "on_gpu.py", "kept", truth="256 KiB kept a request",
                line="remember"),
    kept_on_gpu("kept-expandable", "on_gpu.py", "kept",
                truth="the same, in segments that expand", line="remember",
                environment={"PYTORCH_CUDA_ALLOC_CONF":
                             "expandable_segments:True"}),
    kept_on_gpu("kept-async", "on_gpu.py", "kept",
                truth="the same, by cudaMallocAsync", line="remember",
                space="device",
                environment={"PYTORCH_CUDA_ALLOC_CONF":
                             "backend:cudaMallocAsync"}),
    kept_on_gpu("killed", "on_gpu.py", "kept", "--kill",
                truth="256 KiB kept a request, then SIGKILL",
                line="remember"),
    kept_on_gpu("on-host", "on_gpu.py", "on-host",
                truth="256 KiB of the host kept a request",
                line="remember_on_host", space="heap"),
    kept_on_gpu("pinned", "on_gpu.py", "pinned",
                truth="256 KiB of pinned memory kept a request",
                line="remember_pinned", space="pinned"),
    kept_on_gpu("graph", "on_gpu.py", "graph",
                truth="a loss kept with its graph", line="add_loss"),
    on_gpu("captures", "on_gpu.py", "captures",
           truth="a CUDA graph kept for each ten requests",
           demands=[called("capture"),
                    in_the_text("each of which has a pool of its own")]),
    kept_on_gpu("chat", "chat_on_gpu.py", "kept",
                truth="keys and values of each conversation kept",
                line="converse"),
    kept_on_gpu("encode", "encode_on_gpu.py", "kept",
                truth="embeddings kept as tensors", line="add_to_index"),
    kept_on_gpu("cupy", "arrays_on_gpu.py", "cupy",
                truth="256 KiB kept a request", line="make",
                space="device"),
    kept_on_gpu("jax", "arrays_on_gpu.py", "jax",
                truth="256 KiB kept a request, of which the driver makes 2 MiB",
                line="make", space="device"),
    on_gpu("jax-pool", "arrays_on_gpu.py", "jax-pool",
           truth="256 KiB kept a request, of memory that is JAX's from its "
           "start", demands=[]),
    on_gpu("clean", "on_gpu.py", "clean", truth="nothing is kept",
           demands=[not_called]),
    on_gpu("clean-expandable", "on_gpu.py", "clean", truth="nothing is kept",
           demands=[not_called], environment={
               "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    on_gpu("bounded", "on_gpu.py", "bounded", truth="the last 100 are kept",
           demands=[not_called]),
    on_gpu("lengths", "on_gpu.py", "lengths", truth="PyTorch's cache fills",
           demands=[not_called]),
    on_gpu("replay", "on_gpu.py", "replay",
           truth="a CUDA graph is replayed", demands=[not_called]),
    on_gpu("ever-larger", "on_gpu.py", "ever-larger",
           truth="PyTorch's cache keeps ever larger blocks that are free",
           demands=[in_the_headline("FRAGMENTATION|SUSPECT|RETENTION")]),
    on_gpu("kernels", "on_gpu.py", "kernels",
           truth="Triton compiles a kernel a second", demands=[]),
    on_gpu("chat-freed", "chat_on_gpu.py", "freed",
           truth="nothing is kept", demands=[not_called]),
    on_gpu("encode-freed", "encode_on_gpu.py", "freed",
           truth="nothing is kept", demands=[not_called]),
    on_gpu("train", "train_on_gpu.py", process="",
           truth="two workers load, nothing is kept", demands=[not_called]),
    on_gpu("compiled", "train_on_gpu.py", "--compile", process="",
           truth="the same, compiled", demands=[not_called]),
    # alone: nobody else gets memory of the GPU meanwhile
    kept_on_gpu("until-full", "on_gpu.py", "until-full",
                truth="4 MiB kept a request until the GPU is full",
                line="step", more=[in_the_headline(
                    r"are used up already|will be full in [0-9.]+ s ")]),
]
