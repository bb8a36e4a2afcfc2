# SPDX-License-Identifier: LGPL-2.1-or-later
"""Training with workers that load, and memory that is pinned: nothing stays.

    train_on_gpu.py [--seconds S] [--compile]
"""
import argparse
import time

import torch

from truth import Work


class Data(torch.utils.data.Dataset):
    """Made as it is asked for."""

    def __len__(self):
        return 1 << 30

    def __getitem__(self, at):
        return torch.full((512,), float(at % 100))


def main():
    """Batches by two workers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=45)
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    loader = torch.utils.data.DataLoader(
        Data(), batch_size=256, num_workers=2, pin_memory=True)
    model = torch.nn.Sequential(
        torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 1))
    model = model.cuda()
    step = torch.compile(model) if arguments.compile else model
    optimizer = torch.optim.AdamW(model.parameters())
    batches = iter(loader)
    work = Work(arguments.seconds)
    for _ in work:
        batch = next(batches).cuda(non_blocking=True)
        loss = step(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)
    work.tell(0, allocated_bytes=torch.cuda.memory_allocated(),
              loss=loss.item())


main()
