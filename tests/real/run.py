# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run the stories under seep, and say of each whether what it said is right.

    run.py --python PYTHON [--keep FOLDER] [--only WORD] [--times 3]

Invariant: every process that is started here is waited for, with a limit; the
exit status is 0 only if every row is right.
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))

import consistency  # noqa: E402
import stories  # noqa: E402
from conftest import OURS, SEEP  # noqa: E402

MODES = {"default": [], "64K": ["--sample", "64K"], "exact": ["--exact"]}
# for what hangs: encode() takes half an hour on a busy machine
LIMIT_S = 5400
READ_LIMIT_S = 300


def run(argv, limit_s, **more):
    """To its end, with all that it started."""
    with subprocess.Popen([str(word) for word in argv],
                          start_new_session=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          **more) as process:
        try:
            out, err = process.communicate(timeout=limit_s)
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def variables(more):
    """The environment of a story: one thread, no network."""
    return {key: value for key, value in os.environ.items()
            if key not in OURS} | {
                "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
                "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"
            } | more


def python_of(story, python):
    """Of the environment, or of one beside it that a story has for itself."""
    if not story.apart:
        return python
    return pathlib.Path(python).parent.parent / story.apart / "bin/python"


def found_python(version):
    """Of the system, or one that pyenv built; None."""
    built = sorted(pathlib.Path.home().glob(
        f".pyenv/versions/{version}*/bin/python"))
    return shutil.which(f"python{version}", path="/usr/bin") or (
        str(built[-1]) if built else None)


def make_apart(story, python):
    """The environment of a story that has pins, once. @return what it lacks"""
    version, *pins = story.pins
    folder = python_of(story, python).parent.parent
    base = found_python(version)
    mark = folder / "installed"
    if not base:
        return f"python{version}"
    if not mark.exists() or mark.read_text("utf-8") != repr(story.pins):
        shutil.rmtree(folder, ignore_errors=True)
        for command in ([base, "-m", "venv", folder],
                        [python_of(story, python), "-m", "pip", "install",
                         "-q", "--prefer-binary", *(pins or ["pip"])]):
            if run(command, LIMIT_S).returncode:
                return " ".join(pins)
        mark.write_text(repr(story.pins), "utf-8")
    return ""


def truth_in(done):
    """The last line that the program printed."""
    lines = [line for line in done.stdout.splitlines() if line[:1] == "{"]
    if not lines:
        raise ValueError(f"it told no truth: {done.stderr[-300:]}")
    return json.loads(lines[-1])


def record(story, mode, options, folder, environment):
    """One run; beside its recordings, its truth."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [python_of(story, options.python),
               HERE / "programs" / story.command[0], *story.command[1:]]
    environment = variables(story.environment | environment)
    done = run([SEEP, "run", "--no-report", *MODES[mode], *story.options,
                "-o", folder / "%e.%p.%n.seep", "--", *command],
               LIMIT_S, env=environment)
    (folder / "truth.json").write_text(json.dumps(truth_in(done)), "utf-8")
    if story.beside is not None:
        done = run([*command, *story.beside], LIMIT_S, env=environment)
        (folder / "plain.json").write_text(json.dumps(truth_in(done)), "utf-8")


def read(folder, *words):
    """One verb."""
    return run([SEEP, *words, folder], READ_LIMIT_S).stdout


def is_its(process, story):
    """The program's own, or that of the word that the story names."""
    its = story.command[0] if story.process is None else story.process
    return any(its in word for word in process["process"]["argv"])


def look(story, folders):
    """What seep says of what lies in the folders, the first first."""
    document = json.loads(read(folders[0], "report", "--json"))
    seen = stories.Seen(
        json.loads((folders[0] / "truth.json").read_text("utf-8")),
        [process for process in document["processes"]
         if is_its(process, story)],
        read(folders[0], "report", "--sites", "0"))
    seen.families = [
        {"name": family["name"], "class": family["class"],
         "pids": [document["processes"][member]["process"]["pid"]
                  for member in family["members"]]}
        for family in document["families"]]
    if story.beside is not None:
        seen.plain = json.loads(
            (folders[0] / "plain.json").read_text("utf-8"))
    if len(folders) > 1:
        seen.diff = run([SEEP, "diff", *folders], READ_LIMIT_S).stdout
    return seen


def judge(story, folders):
    """(what was said, what is wrong with it)."""
    seen = look(story, folders)
    if not seen.processes:
        return "nothing", ["no recording of the program"]
    wrong = [complaint for demand in story.demands
             if (complaint := demand(seen))]
    for folder in folders:
        for recording in sorted(folder.glob("*.seep")):
            wrong += [f"contradiction: {found}" for found in
                      consistency.contradictions_in(str(recording))]
    said = seen.diff.partition("\n")[0] or stories.headline(seen)
    return said, wrong


def tell(story, options, mode, turn):
    """One row, printed as soon as it is known. @return is it right?"""
    base = options.keep / f"{story.name}.{mode}.{turn}"
    runs = {base / "first": {}}
    if story.second is not None:
        runs[base / "second"] = story.second
    start = recorded = time.monotonic()
    try:
        for folder, environment in runs.items():
            if not options.rejudge:
                record(story, mode, options, folder, environment)
        recorded = time.monotonic()
        said, wrong = judge(story, list(runs))
    except (OSError, ValueError, KeyError,
            subprocess.SubprocessError) as error:
        said, wrong = "nothing", [repr(error)]
    print(f"| {story.name} | {mode} | {story.truth} | {said[:300]} | "
          f"{'wrong: ' + '; '.join(wrong) if wrong else 'right'} | "
          f"{recorded - start:.0f} s, read in "
          f"{time.monotonic() - recorded:.1f} s |", flush=True)
    return not wrong


def lacks(story, python):
    """What the story needs and this machine has not; "" where it has all."""
    flag = story.processor
    if flag and flag not in pathlib.Path("/proc/cpuinfo").read_text("ascii"):
        return flag
    if story.gpu and not pathlib.Path("/dev/nvidiactl").exists():
        return "GPU of NVIDIA"
    if story.pins and (missing := make_apart(story, python)):
        return missing
    python = python_of(story, python)
    if not shutil.which(python):
        return story.apart
    if story.needs and subprocess.run(
            [python, "-c", "import importlib.util, sys; sys.exit("
             f"importlib.util.find_spec({story.needs!r}) is None)"],
            check=False, timeout=LIMIT_S).returncode:
        return story.needs
    if story.attempt and subprocess.run(
            [python, HERE / "programs" / story.attempt[0], *story.attempt[1:]],
            check=False, capture_output=True, timeout=LIMIT_S).returncode:
        return " ".join(story.attempt)
    return ""


def wanted(only):
    """The stories of these names; a word that is no name is part of some."""
    table = stories.STORIES + stories.GPU_STORIES
    if "published" in only:  # by its name alone: there are many
        table = table + stories.PUBLISHED
    names = {story.name for story in table}
    return [story for story in table
            if any(word == story.name or word not in names
                   and word in story.name for word in only.split(","))]


def parse(words):
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--keep", type=pathlib.Path,
                        help="where recordings stay (default: nowhere)")
    parser.add_argument("--rejudge", action="store_true",
                        help="read what --keep has, and run nothing")
    parser.add_argument("--only", default="",
                        help="names, or words of names: a,b")
    parser.add_argument("--modes", default="default,64K",
                        help="of default, 64K, exact")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1,
                        help="so many at once, where processors are many")
    return parser.parse_args(words)


def main(words=None):
    """All rows. @return an exit status"""
    options = parse(words)
    with tempfile.TemporaryDirectory(prefix="seep-real-") as temporary:
        options.keep = (options.keep or pathlib.Path(temporary)).absolute()
        print("| story | mode | truth | seep said | | took |\n"
              "| --- | --- | --- | --- | --- | --- |", flush=True)
        runs = []
        for story in wanted(options.only):
            if missing := lacks(story, options.python):
                print(f"| {story.name} | | {story.truth} | not run: no "
                      f"{missing} | | |", flush=True)
                continue
            runs += [(story, options, mode, turn)
                     for mode in options.modes.split(",")
                     for turn in range(options.times)]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            rows = list(pool.map(tell, *zip(*runs))) if runs else []
    print(f"{sum(rows)} right, {len(rows) - sum(rows)} wrong")
    return 0 if rows and all(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
