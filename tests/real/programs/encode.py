# SPDX-License-Identifier: LGPL-2.1-or-later
"""The loop that this project began from: encode() of varying lengths.

Nothing is kept by it: oneDNN keeps a primitive and its scratch for each shape.
"""
import argparse
import random
import time

import torch
from torch.utils.mkldnn import to_mkldnn

import embedder
from truth import Work

parser = argparse.ArgumentParser()
parser.add_argument("--dtype", default="bfloat16")
parser.add_argument("--seconds", type=float, default=60)
parser.add_argument("--batches", type=int, help="so many, however long")
parser.add_argument("--at-least", type=float, default=0,
                    help="seconds, if so many batches take less")
parser.add_argument("--longest", type=int, default=500)
parser.add_argument("--layers", action="store_true",
                    help="oneDNN's own layers, where the CPU has no bfloat16")
arguments = parser.parse_args()


def encode_batch(model, texts):
    """One request."""
    return model.encode(texts, convert_to_tensor=False)


def main():
    """As long as it is asked to."""
    random.seed(1)
    model = embedder.load(arguments.dtype)
    if arguments.layers:
        model = to_mkldnn(model, torch.float)
    work = Work(1e9 if arguments.batches else arguments.seconds)
    took = []
    begun = time.monotonic()
    shapes = set()
    for count in work:
        if arguments.batches is not None and count >= arguments.batches and \
                time.monotonic() - begun >= arguments.at_least:
            break
        texts = embedder.sentences(random.randint(1, 2), arguments.longest)
        shapes.add((len(texts), max(len(text.split()) for text in texts)))
        start = time.monotonic()
        encode_batch(model, texts)
        took.append(time.monotonic() - start)
    work.tell(requests=len(took), shapes=len(shapes),
              median_s=sorted(took)[len(took) // 2])


main()
