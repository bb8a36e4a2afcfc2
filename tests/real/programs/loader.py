# SPDX-License-Identifier: LGPL-2.1-or-later
"""DataLoader workers, each with a cache in its dataset that has no bound."""
import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset

from truth import Work

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=60)
arguments = parser.parse_args()
WIDTH = 65536


class Cached(Dataset):
    """Each worker has its own copy."""

    def __init__(self):
        self.seen = []

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        time.sleep(0.05)
        return self.remember(torch.full((WIDTH,), index % 7.0))

    def remember(self, item):
        """A tensor of 256 KiB an item."""
        self.seen.append(item.clone())
        return item


def main():
    """Two workers, by fork."""
    work = Work(arguments.seconds)
    count = 0
    for _, _ in zip(work, DataLoader(Cached(), batch_size=4, num_workers=2)):
        count += 4
    work.tell(count * WIDTH * 4)


main()
