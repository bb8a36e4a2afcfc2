# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a model looks like from outside."""


class Tensor:
    def __init__(self, name, dtype, shape):
        self.name, self.dtype, self.shape = name, dtype, shape


class ModelConfig:
    def __init__(self, max_batch_size):
        self.max_batch_size = max_batch_size
