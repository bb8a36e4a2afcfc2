# SPDX-License-Identifier: LGPL-2.1-or-later
"""Loads its model for a third of the run, then keeps a part of each reply."""
import argparse
import time

import torch

from truth import Work

parser = argparse.ArgumentParser()
parser.add_argument("--load", type=float, default=24)
parser.add_argument("--seconds", type=float, default=48)
parser.add_argument("--rate", type=float, default=2 << 20)
arguments = parser.parse_args()
WIDTH = 512
LAYER_BYTES = 4 * WIDTH * WIDTH
LAYERS_PER_S = 10
BLOCK_BYTES = 64 << 10
kept = []


def load_layers():
    """As fast as a disk: 10 MiB a second, by way of a buffer."""
    load = Work(arguments.load)
    layers = []
    for _ in load:
        due = (time.monotonic() - load.start) * LAYERS_PER_S
        while len(layers) < due:
            layers.append(torch.frombuffer(
                bytearray(LAYER_BYTES), dtype=torch.float32).reshape(
                    WIDTH, WIDTH).clone())
        time.sleep(0.02)
    return layers


def answer(layers):
    """Allocates and frees."""
    value = torch.ones(64, WIDTH)
    for layer in layers[:4]:
        value = value @ layer
    return value


def keep_reply():
    """What is not given back."""
    kept.append(bytearray(BLOCK_BYTES))


def main():
    """Both, one after the other."""
    torch.set_num_threads(1)
    layers = load_layers()
    work = Work(arguments.seconds)
    for _ in work:
        answer(layers)
        due = (time.monotonic() - work.start) * arguments.rate
        while len(kept) * BLOCK_BYTES < due:
            keep_reply()
        time.sleep(0.02)
    work.tell(len(kept) * BLOCK_BYTES, load_s=arguments.load)


main()
