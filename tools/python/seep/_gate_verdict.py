# SPDX-License-Identifier: LGPL-2.1-or-later
"""What `seep report` says of the processes that ran tests, at their end.

A test that keeps to its limit is within its limit; that nothing leaks is for
the verdict on its process to say, and there is one place that makes it.

Invariant: "no leak" is printed where the report's verdict reassures, and no
test was over its limit; else it is printed how large a leak could hide.
"""
import json
import subprocess

from . import _gate_limits, _gate_restart

_LIMIT_S = 300
_MOST = 4  # processes; pytest-xdist has one for each worker
_OPEN = ("suspect", "insufficient-data")  # imports of a short run, mostly


def _processes(tool, path):
    done = subprocess.run(
        [tool, "report", "--json", "--sites", "1", "--no-series",
         "--no-patterns", path], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, check=False, timeout=_LIMIT_S,
        env=_gate_restart.plain_environment())
    try:
        found = json.loads(done.stdout)["processes"]
    except (ValueError, LookupError):
        found = []
    if not found:
        raise OSError(done.stderr.decode(errors="replace")[-200:])
    return found


def told(process, is_over=False):
    """The line of one process; @is_over: a test of the run leaked."""
    verdict = process["verdict"]
    label = verdict["class"].replace("-", " ").upper()
    grows = verdict["class"] not in _OPEN and (
        verdict["growth_bytes_per_s"] or verdict["filling"])
    if grows or (verdict["reassures"] and not is_over):
        return f"seep: {label}  {verdict['sentence']}"
    hidden = verdict["hidden_bytes_per_s"]
    size = (f"a leak of up to {_gate_limits.written(hidden * 60)}/min could "
            "hide") if hidden else \
        "how large a leak could hide is unknown"
    return 'seep: within its limit is not "no leak": the verdict on pid ' \
        f"{process['process']['pid']} as a whole is {label}, and {size}"


def lines(tool, path, is_over=False):
    """Of each process that is recorded in a file or folder, worst first."""
    try:
        found = _processes(tool, path)
    except (OSError, subprocess.SubprocessError) as error:
        return ["seep: the verdict on the whole process is unknown: "
                f"{str(error).strip()}"]
    return [told(process, is_over) for process in found[:_MOST]] + (
        [f"seep: and {len(found) - _MOST} more processes"]
        if len(found) > _MOST else [])
