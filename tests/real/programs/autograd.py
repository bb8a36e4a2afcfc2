# SPDX-License-Identifier: LGPL-2.1-or-later
"""A loss that is summed with its graph, after imports that take a while."""
import argparse
import time

import torch
import transformers
from sentence_transformers import SentenceTransformer

from truth import Work

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
    work = Work(arguments.seconds)
    for _ in work:
        add_loss(model, batch)
        time.sleep(0.1)
    # what each graph saves of its forward pass: relu and square
    work.tell(len(total) * 2 * batch.nbytes)


main()
