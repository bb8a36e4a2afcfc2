# SPDX-License-Identifier: LGPL-2.1-or-later
"""What Triton's stub does to a model, with requests of its own making."""
import importlib.util
import os
import sys
import time

import numpy
import triton_python_backend_utils as pb_utils

REQUEST_ROWS = 64
PAUSE_S = 0.01


def load(path):
    spec = importlib.util.spec_from_file_location('model', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.TritonPythonModel()


def main(path, region, name):
    model = load(path)
    version = os.path.basename(os.path.dirname(path))
    if region == 'complete':
        time.sleep(60)
    model.initialize({'model_name': 'sentiment', 'model_version': version,
                      'model_instance_name': name})
    features = numpy.ones((REQUEST_ROWS, 256), numpy.float32)
    while True:
        tensor = pb_utils.Tensor('FEATURES', features)
        answers = model.execute([pb_utils.InferenceRequest([tensor])])
        assert len(answers) == 1
        time.sleep(PAUSE_S)


if __name__ == '__main__':
    main(*sys.argv[1:])
