# SPDX-License-Identifier: LGPL-2.1-or-later
"""A model for Triton's Python backend, which keeps its requests' features."""
import numpy
import triton_python_backend_utils as pb_utils

try:
    import seep
except ImportError:  # not in this image: everything else works without it
    seep = None


class TritonPythonModel:
    def initialize(self, args):
        random = numpy.random.default_rng(1)
        self.weights = random.standard_normal((256, 2)).astype(numpy.float32)
        self.drift = []
        if seep is not None:
            seep.label('model', args['model_name'])
            seep.label('version', args['model_version'])
            seep.label('instance', args['model_instance_name'])

    def execute(self, requests):
        responses = []
        for request in requests:
            features = pb_utils.get_input_tensor_by_name(
                request, 'FEATURES').as_numpy()
            self.watch_drift(features)
            scores = pb_utils.Tensor('SCORES', features @ self.weights)
            responses.append(pb_utils.InferenceResponse([scores]))
        if seep is not None:
            seep.progress(len(requests))
        return responses

    def watch_drift(self, features):
        """To compare the distribution with last week's, one day."""
        self.drift.append(features.copy())  # the leak
