# SPDX-License-Identifier: LGPL-2.1-or-later
"""A loss that is summed with its graph, after imports that take a while.

It works for as long as they took at least: on a busy machine that is minutes,
and what comes before the end of a process is less of it.
"""
import argparse
import time

BEGAN = time.monotonic()

import torch  # noqa: E402
import transformers  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402

from truth import Work  # noqa: E402

imports_s = time.monotonic() - BEGAN
parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=40)
arguments = parser.parse_args()
total = []


def add_loss(model, batch):
    """.item() is what is missing."""
    total.append(model(batch).square().mean())


def main():
    """12 MiB a second, if the machine is fast enough."""
    torch.set_num_threads(1)
    assert SentenceTransformer and transformers
    model = torch.nn.Sequential(
        torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
    batch = torch.ones(256, 512)
    work = Work(max(arguments.seconds, imports_s))
    for _ in work:
        add_loss(model, batch)
        time.sleep(0.1)
    # what each graph saves of its forward pass: relu and square
    work.tell(len(total) * 2 * batch.nbytes)


main()
