# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a call of the driver leaves in errno is the program's to read, whatever
we ask of the driver behind it."""
import pytest

from conftest import BUILD, execute, program

DRIVER = BUILD / "tests/fake"
REPORTS = 2  # of tensors: no call of the driver


def run(folder, **more):
    return execute([program("cuda_errno")], folder, sample=1,
                   LD_LIBRARY_PATH=DRIVER, **more)


@pytest.mark.parametrize("numbered", [0, 1])
def test_a_call_leaves_errno_as_the_driver_does(numbered, folder):
    plain = run(None, SEEP_FAKE_CUDA_ERRNO=numbered)
    recorded = run(folder, SEEP_FAKE_CUDA_ERRNO=numbered)
    assert (plain.status, plain.stderr) == (0, b""), plain
    assert (plain.stdout.count(b"errno 1\n") == REPORTS) == bool(numbered)
    assert recorded.seen == plain.seen
