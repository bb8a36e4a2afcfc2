# SPDX-License-Identifier: LGPL-2.1-or-later
"""As much of Triton's module as model.py uses."""


class Tensor:
    def __init__(self, name, array):
        self._name = name
        self._array = array

    def name(self):
        return self._name

    def as_numpy(self):
        return self._array


class InferenceRequest:
    def __init__(self, inputs):
        self.inputs = inputs


class InferenceResponse:
    def __init__(self, output_tensors):
        self.output_tensors = output_tensors


def get_input_tensor_by_name(request, name):
    return next(one for one in request.inputs if one.name() == name)
