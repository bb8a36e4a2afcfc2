# SPDX-License-Identifier: LGPL-2.1-or-later
"""Real libraries that keep memory on purpose are known by their stacks.

Whether functions have names depends on the packages of the system; what is
asked for here holds with and without them.
"""
import subprocess

import pytest
from conftest import LIBRARIES, execute, report

PYTHON = "/usr/bin/python3"


def sites(folder, script, sample=None):
    """The sites of a Python script, most memory first."""
    path = folder / "script.py"
    path.write_text(script)
    run = execute([PYTHON, path], folder, sample=sample, timeout=300)
    assert run.status == 0, run.stderr
    assert len(run.recordings) == 1
    return sorted(report(*run.recordings)["processes"][0]["sites"],
                  key=lambda site: -site["live_bytes"])


def pattern_of(site):
    return site["pattern"]["id"] if site["pattern"] else None


def need_module(*names):
    """Skip unless the system's own Python has these modules."""
    done = subprocess.run([PYTHON, "-c", f"import {', '.join(names)}"],
                          capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{PYTHON} has no {' and '.join(names)}")


def test_pages_of_sqlite(folder):
    need_module("sqlite3")
    found = sites(folder, """
import sqlite3
base = sqlite3.connect(':memory:')
base.execute('create table t (a integer primary key, b text)')
for i in range(8000):
    base.execute('insert into t (b) values (?)', ('x' * 500,))
""", sample=1)

    assert found[0]["live_bytes"] > 3 << 20
    assert pattern_of(found[0]) in ("sqlite-pages", "sqlite-page-cache")


# Without symbols the cache is not seen in the stack, and is not guessed.
def test_a_cache_of_python(folder):
    found = sites(folder, """
import functools

@functools.lru_cache(maxsize=None)
def render(number):
    return bytearray(2000 + number % 7)

for i in range(5000):
    render(i)
""", sample=1)
    named = any("lru_cache" in (frame["function"] or "")
                for frame in found[0]["frames"])

    assert found[0]["live_bytes"] > 9 << 20
    assert pattern_of(found[0]) == ("functools-lru-cache" if named else None)


def test_arenas_of_python(folder):
    found = sites(folder, """
kept = [(i, str(i)) for i in range(60000)]
""", sample=1)
    # Python maps smaller parts for its stack.
    mapped = [site for site in found if site["space"] == "mapped"
              and site["live_bytes"] >= 1 << 18]

    assert mapped
    assert {pattern_of(site) for site in mapped} == {"python-arenas"}


def test_buffers_of_openblas(folder):
    need_module("numpy")
    if not list(LIBRARIES.glob("**/libopenblas*.so*")):
        pytest.skip("numpy does not use OpenBLAS here")
    found = sites(folder, """
import numpy
a = numpy.random.rand(400, 400)
for i in range(3):
    a = a @ a
    a /= a.max()
""", sample=1)

    assert "openblas-buffers" in {pattern_of(site) for site in found}


def test_primitives_of_onednn(folder):
    need_module("torch")
    found = sites(folder, """
import torch
if not torch.backends.mkldnn.is_available():
    raise SystemExit(0)
convolution = torch.nn.Conv2d(3, 16, 5).eval()
with torch.no_grad():
    for i in range(300):
        convolution(torch.rand(1, 3, 20 + i % 60, 20 + i // 60))
""", sample=65536)
    ours = [site for site in found
            if any("dnnl" in (frame["module"] or "") or
                   (frame["function"] or "").startswith("dnnl_primitive_create")
                   for frame in site["frames"][:8])
            and site["live_bytes"] > 1 << 20]

    if not ours:
        pytest.skip("torch does not use oneDNN here")
    assert {pattern_of(site) for site in ours} <= {
        "onednn-primitive-cache", "onednn-descriptor-cache"}
    assert pattern_of(ours[0]) == "onednn-primitive-cache"
