# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/gpu/run passes on the driver in host memory, as it must on a real one.

What no driver in host memory can give (a runtime, frameworks on a device) is a
skip with its reason.
"""
import json
import os
import pathlib
import subprocess

import pytest

from command_line import PYTHON
from conftest import BUILD, need

SOURCE = pathlib.Path(os.environ.get("SEEP_SOURCE", "."))
SCRIPT = SOURCE / "tests" / "gpu" / "run"
DRIVER = os.environ.get("SEEP_FAKE_CUDA", "")

pytestmark = pytest.mark.skipif(not DRIVER, reason="no driver of the tests")


def run(folder, *words):
    """@return the exit status, the results by name"""
    done = subprocess.run([PYTHON, SCRIPT, "--out", folder, *words, BUILD],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=300, check=False, text=True)
    summary = folder / "summary.json"
    assert summary.exists(), done.stdout
    return done.returncode, {result["name"]: result for result in
                             json.loads(summary.read_text())}


def test_the_script_passes_on_the_driver_in_host_memory(tmp_path):
    need("cc")
    status, results = run(tmp_path, "--fake")
    assert status == 0, results
    judged = [result for name, result in results.items()
              if name.startswith(("driver", "probe"))]
    assert len(judged) == 10
    assert all(result["verdict"] == "PASS" for result in judged), judged
    assert all(result["why"] for result in results.values()
               if result["verdict"] == "SKIP")
    asked = {line["question"]: line for line in results["probe"]["bare"]}
    assert asked["same_pointer"]["same"] == 8
    assert asked["pair"]["error"] == 0
    assert asked["reset_keeps"]["reset"] == 0


def test_a_figure_that_is_wrong_is_a_failure(tmp_path, monkeypatch):
    """Where the driver is not recorded, every figure is."""
    need("cc")
    monkeypatch.setenv("SEEP_CUDA", "off")
    status, results = run(tmp_path, "--only", "every block", "--fake")
    assert status == 1
    (result,) = results.values()
    assert result["verdict"] == "FAIL"
    assert "site_device in device: 0" in result["why"]
