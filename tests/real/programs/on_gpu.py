# SPDX-License-Identifier: LGPL-2.1-or-later
"""A model that answers on a GPU, and what its service keeps, or not.

    on_gpu.py CASE [--seconds S]

Invariant: a case differs from "clean" by the one thing that it is named for,
and what keeps something is a function of its own.
"""
import argparse
import collections
import os
import random
import signal
import sys
import time

import torch

from truth import Work

WIDTH = 512
PAUSE_S = 0.02
DEVICE = "cuda"


class Service:
    """An encoder of random weights, and what is done with its answers."""

    def __init__(self):
        layer = torch.nn.TransformerEncoderLayer(
            WIDTH, 8, 4 * WIDTH, batch_first=True)
        self.model = torch.nn.TransformerEncoder(
            layer, 2, enable_nested_tensor=False).to(DEVICE).eval()
        self.audit = []
        self.cache = collections.OrderedDict()
        self.loss = torch.zeros((), device=DEVICE)
        self.kept_bytes = 0

    def answer(self, length=128):
        """One request."""
        batch = torch.randn(8, length, WIDTH, device=DEVICE)
        with torch.inference_mode():
            return self.model(batch).mean(dim=2)

    def remember(self, count):
        """Each answer's copy, on the GPU: 256 KiB."""
        del count
        reply = self.answer()
        kept = reply.repeat(64, 1).contiguous()
        self.audit.append(kept)
        self.kept_bytes += kept.nbytes

    def remember_on_host(self, count):
        """The same, brought to the host."""
        del count
        kept = self.answer().repeat(64, 1).cpu()
        self.audit.append(kept)
        self.kept_bytes += kept.nbytes

    def remember_pinned(self, count):
        """The same, in memory that the GPU reaches."""
        del count
        kept = torch.empty(64 * 8, 128, pin_memory=True)
        kept.copy_(self.answer().repeat(64, 1), non_blocking=True)
        self.audit.append(kept)
        self.kept_bytes += kept.nbytes

    def add_loss(self, count):
        """.item() is what is missing: the graph stays, 2 x 512 KiB."""
        del count
        weight = self.model.layers[0].norm1.weight
        values = torch.randn(256, WIDTH, device=DEVICE)
        self.loss = self.loss + (values * weight).exp().sum()
        self.kept_bytes += 2 * values.nbytes

    def bounded(self, count):
        """The last 100 answers."""
        self.cache[count] = self.answer().repeat(64, 1)
        if len(self.cache) > 100:
            self.cache.popitem(last=False)

    def lengths(self, count):
        """Of any length: PyTorch's cache fills."""
        del count
        self.answer(random.randint(8, 1024))

    def nothing(self, count):
        """As it should be."""
        del count
        self.answer()


class Graphs:
    """CUDA graphs: one that is replayed, or one more for each request."""

    def __init__(self, service):
        self.service = service
        self.kept = []
        self.input = torch.randn(8, 128, WIDTH, device=DEVICE)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side), torch.inference_mode():
            service.model(self.input)
        torch.cuda.synchronize()
        self.graph, self.output = self.capture()

    def capture(self):
        """One more pool of memory."""
        graph = torch.cuda.CUDAGraph()
        with torch.inference_mode(), torch.cuda.graph(graph):
            output = self.service.model(self.input)
        return graph, output

    def replay(self, count):
        """The same memory each time."""
        with torch.inference_mode():
            self.input.fill_(count % 7)
            self.graph.replay()
            eager = self.service.model(self.input)
        if count % 50 == 0 and not torch.allclose(self.output, eager,
                                                  atol=1e-3):
            raise SystemExit("a replay computes something else")

    def keep_capture(self, count):
        """A graph for each, as if each had a shape of its own."""
        if count % 10 == 0:
            before = torch.cuda.memory_reserved()
            self.kept.append(self.capture())
            self.service.kept_bytes += torch.cuda.memory_reserved() - before
        self.service.answer()


def fall_apart(service):
    """Ever larger blocks, none of which stays: PyTorch's cache keeps all."""
    sizes = iter(range(24 << 20, 1 << 40, 1 << 20))

    def step(count):
        if count % 10 == 0:
            torch.empty(next(sizes), dtype=torch.uint8, device=DEVICE)
        service.answer()
    return step


def specialise(service):
    """A Triton kernel compiled anew for each request."""
    import triton  # noqa: PLC0415
    from triton_kernel import scale  # noqa: PLC0415
    values = torch.randn(4096, device=DEVICE)

    def step(count):
        if count % 25 == 0:
            scale[(triton.cdiv(4096, 1024),)](values, values, 4096,
                                              FACTOR=count, BLOCK=1024)
        service.answer()
    return step


def until_full(service):
    """6 GiB stay free; requests take them, until the driver refuses."""
    free, _ = torch.cuda.mem_get_info()
    service.ballast = torch.empty(free - (6 << 30), dtype=torch.uint8,
                                  device=DEVICE)

    def step(count):
        del count
        service.answer()
        service.audit.append(torch.zeros(4 << 20, dtype=torch.uint8,
                                         device=DEVICE))
        service.kept_bytes += 4 << 20
    return step


CASES = {
    "clean": lambda service: service.nothing,
    "kept": lambda service: service.remember,
    "on-host": lambda service: service.remember_on_host,
    "pinned": lambda service: service.remember_pinned,
    "graph": lambda service: service.add_loss,
    "bounded": lambda service: service.bounded,
    "lengths": lambda service: service.lengths,
    "replay": lambda service: Graphs(service).replay,
    "captures": lambda service: Graphs(service).keep_capture,
    "ever-larger": fall_apart,
    "kernels": specialise,
    "until-full": until_full,
}


def main():
    """Requests at a steady pace; the last line is the truth."""
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--seconds", type=float, default=45)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--pause", type=float, default=PAUSE_S)
    arguments = parser.parse_args()
    random.seed(1)
    torch.manual_seed(1)
    service = Service()
    service.answer()
    step = CASES[arguments.case](service)
    work = Work(arguments.seconds)
    count = 0
    try:
        for count in work:
            step(count)
            time.sleep(arguments.pause)
        torch.cuda.synchronize()
    except torch.OutOfMemoryError as full:
        print(f"full after {count}: {str(full)[:200]}", file=sys.stderr)
    work.tell(service.kept_bytes, requests=count,
              allocated_bytes=torch.cuda.memory_allocated(),
              reserved_bytes=torch.cuda.memory_reserved(),
              free_bytes=torch.cuda.mem_get_info()[0])
    if arguments.kill:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
