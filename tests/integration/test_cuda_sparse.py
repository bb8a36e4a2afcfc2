# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is mapped into a sparse array lives as long as it is, and no longer."""
import json
import os
import pathlib

import pytest

from conftest import dump, execute, program

DRIVER = os.environ.get("SEEP_FAKE_CUDA", "")
UNIT = 2 << 20


@pytest.mark.skipif(not DRIVER, reason="no driver of the tests")
def test_memory_lives_by_the_sparse_array_that_it_is_mapped_into(folder):
    run = execute([program("cuda_sparse")], folder, sample=1,
                  LD_LIBRARY_PATH=pathlib.Path(DRIVER).parent)
    assert run.status == 0, run
    truth = json.loads(run.stdout)
    assert truth["physical_bytes"] == 12 * UNIT
    document = dump(*run.recordings)
    live_bytes = sum(site["live_bytes"] for site in document["sites"]
                     if site["space"] == "device")
    assert live_bytes == truth["physical_bytes"]
    assert document["counters"]["cuda_unknown"] == 0
    assert document["counters"]["cuda_replaced"] == 0
