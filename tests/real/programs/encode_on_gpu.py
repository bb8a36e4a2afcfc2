# SPDX-License-Identifier: LGPL-2.1-or-later
"""encode() of sentence-transformers on a GPU; its answers are kept, or not.

    encode_on_gpu.py kept|freed [--seconds S]
"""
import argparse
import random
import time

import torch

import embedder
from truth import Work

parser = argparse.ArgumentParser()
parser.add_argument("case", choices=["kept", "freed"])
parser.add_argument("--seconds", type=float, default=45)
parser.add_argument("--pause", type=float, default=0.01)
arguments = parser.parse_args()
index = []


def add_to_index(model, texts):
    """Tensors of the device, for a search that nobody prunes."""
    index.append(model.encode(texts, convert_to_tensor=True,
                              show_progress_bar=False))


def main():
    """Batches of texts of any length."""
    random.seed(1)
    model = embedder.load("float32").to("cuda")
    batches = [embedder.sentences(64, 200) for _ in range(20)]
    add_to_index(model, batches[0])
    index.clear()
    work = Work(arguments.seconds)
    kept_bytes = 0
    for count in work:
        add_to_index(model, batches[count % 20])
        if arguments.case == "freed":
            index.clear()
        time.sleep(arguments.pause)
    kept_bytes = sum(tensor.nbytes for tensor in index)
    work.tell(kept_bytes, requests=count + 1,
              allocated_bytes=torch.cuda.memory_allocated(),
              reserved_bytes=torch.cuda.memory_reserved())


main()
