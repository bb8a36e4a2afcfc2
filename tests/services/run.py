# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run the services side by side, and count what seep says of them.

    run.py --seep SEEP --preload LIBSEEP --service PROGRAM --keep FOLDER
    run.py --seep SEEP --rejudge FOLDER

Invariant: every process that is started here is waited for, with a limit.
"""
import argparse
import concurrent.futures
import filecmp
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import judge
import services

OURS = ("LD_PRELOAD", "SEEP_OUT", "SEEP_SAMPLE", "SEEP_SIZE", "SEEP_LABELS",
        "SEEP_UNWINDER", "SEEP_PYTHON", "SEEP_OUT_ANY", "SEEP_CUDA")
SLACK_S = 120


def environment(folder, mode, options, service):
    """The variables of a run."""
    variables = {key: value for key, value in os.environ.items()
                 if key not in OURS}
    libraries = [options.preload]
    if service.beneath:
        libraries.append(service.beneath)
    if service.objects:
        variables["SEEP_PYTHON"] = "objects"
    variables["LD_PRELOAD"] = ":".join(map(str, libraries))
    variables["SEEP_OUT"] = f"{folder}/%e.%p.%t.%n.seep"
    if mode != "default":
        variables["SEEP_SAMPLE"] = str(judge.MODES[mode])
    variables["PYTHONDONTWRITEBYTECODE"] = "1"
    variables["MALLOC_PERTURB_"] = "0"
    if options.size_mib:
        variables["SEEP_SIZE"] = str(options.size_mib << 20)
    return variables


def dig_holes(folder):
    """Recordings are made as large as they may become; give the rest back."""
    for path in folder.glob("*.seep"):
        if shutil.which("fallocate"):
            subprocess.run(["fallocate", "--dig-holes", path], check=False)


def record(job, options):
    """One service to its end; its truth and recordings lie in a folder."""
    service, mode = job
    folder = options.keep / f"{service.name}.{mode}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    argv = service.command(options.keep / "programs", options.seconds,
                           options.seed)
    with open(folder / "truth.json", "wb") as out, \
            open(folder / "stderr", "wb") as err:
        process = subprocess.Popen(
            argv, cwd=folder, stdout=out, stderr=err, start_new_session=True,
            env=environment(folder, mode, options, service))
        try:
            process.wait(options.seconds + SLACK_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    dig_holes(folder)
    (folder / "run.json").write_text(json.dumps(
        {"name": service.name, "mode": mode, "seconds": options.seconds,
         "status": process.returncode}), "utf-8")
    return folder


def judge_folder(seep, folder):
    """The row of what lies in a folder."""
    run = json.loads((folder / "run.json").read_text("utf-8"))
    try:
        return judge.judge(seep, folder, run["name"], run["mode"])
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as bad:
        return judge.Row(run["name"], run["mode"], False, 0, 0, 0,
                         error=repr(bad)[:200])


def prepare(options):
    """What is recorded is read by its symbols: the program stays with it."""
    programs = options.keep / "programs"
    programs.mkdir(parents=True, exist_ok=True)
    there = programs / "service"
    if not (there.exists() and filecmp.cmp(options.service, there, False)):
        there.unlink(missing_ok=True)  # it may be running
        shutil.copy2(options.service, there)


def run_jobs(jobs, options):
    """The rows of all, so many side by side; the slowest to read go first."""
    prepare(options)

    def both(job):
        folder = record(job, options)
        row = None if options.no_judge else judge_folder(options.seep, folder)
        if not options.few_words:
            print("done", folder.name, row.verdict if row else "",
                  row.mark if row else "", file=sys.stderr, flush=True)
        return row
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return [row for row in pool.map(both, jobs) if row]


def chosen_jobs(options):
    """Services times modes, as asked for."""
    return [(service, mode) for mode in options.modes.split(",")
            for service in services.every_service()
            if (not options.few or service.name in services.FEW)
            and not (options.more and (
                options.keep / f"{service.name}.{mode}/run.json").exists())
            and any(word in service.name for word in options.only.split(","))]


def rejudge(options):
    """The rows of folders that a run kept."""
    folders = sorted(path.parent for path in
                     options.rejudge.glob("*/run.json"))
    folders = [folder for folder in folders
               if folder.name.rsplit(".", 1)[1] in options.modes.split(",")
               and any(word in folder.name
                       for word in options.only.split(","))]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(lambda folder: judge_folder(options.seep, folder),
                             folders))


def parse(words=None):
    """The options."""
    build = pathlib.Path(os.environ.get("SEEP_BUILD", "build"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seep", type=pathlib.Path,
                        default=build / "tools/seep/seep")
    parser.add_argument("--preload", type=pathlib.Path,
                        default=build / "src/preload/libseep.so")
    parser.add_argument("--service", type=pathlib.Path,
                        default=build / "tests/services/service")
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modes", default="exact,64K,default")
    parser.add_argument("--keep", type=pathlib.Path,
                        help="where the recordings stay")
    parser.add_argument("--only", default="",
                        help="services with one of these words, by commas")
    parser.add_argument("--few", action="store_true",
                        help="the ten that every change is judged by")
    parser.add_argument("--rejudge", type=pathlib.Path,
                        help="read kept recordings again, run nothing")
    parser.add_argument("--more", action="store_true",
                        help="only what --keep does not hold yet")
    parser.add_argument("--size-mib", type=int,
                        help="of each recording; else as seep has it")
    parser.add_argument("--no-judge", action="store_true",
                        help="record only")
    parser.add_argument("--json", type=pathlib.Path,
                        help="write the rows and totals here")
    parser.add_argument("--few-words", action="store_true",
                        help="no word of each run that is done")
    options = parser.parse_args(words)
    if not options.rejudge and not options.keep:
        parser.error("--keep or --rejudge is needed")
    for name in ("seep", "preload", "service", "keep"):
        if getattr(options, name):
            setattr(options, name, getattr(options, name).resolve())
    return options


def main():
    """Run or read, and print."""
    options = parse()
    rows = (rejudge(options) if options.rejudge
            else run_jobs(chosen_jobs(options), options))
    if rows:
        judge.print_table(rows)
    if options.json:
        options.json.write_text(json.dumps(judge.document(rows), indent=1),
                                "utf-8")


if __name__ == "__main__":
    main()
