#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The same model by PyTriton: it runs in this process, not in a stub, so this
process is the one to record."""
import numpy
from pytriton.decorators import batch
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton

WEIGHTS = numpy.random.default_rng(1).standard_normal((256, 2))
drift = []


@batch
def infer(features):
    drift.append(features.copy())  # the leak
    return {'scores': features @ WEIGHTS.astype(numpy.float32)}


def main():
    with Triton() as triton:
        triton.bind(
            model_name='sentiment', infer_func=infer,
            inputs=[Tensor(name='features', dtype=numpy.float32,
                           shape=(256,))],
            outputs=[Tensor(name='scores', dtype=numpy.float32, shape=(2,))],
            config=ModelConfig(max_batch_size=64))
        triton.serve()


if __name__ == '__main__':
    main()
