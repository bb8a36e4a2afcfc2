# SPDX-License-Identifier: LGPL-2.1-or-later
"""PyTriton: its tritonserver, its stub, and a model here that keeps its input.

The server and its stub are children, which nobody here starts.
"""
import argparse
import json
import os
import pathlib
import re
import sysconfig
import tempfile

import numpy
from pytriton.decorators import batch
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

import serving

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=75)
parser.add_argument("--rate", type=float, default=10)
arguments = parser.parse_args()
# The stub needs a libpython of just this version.
os.environ.setdefault("LD_LIBRARY_PATH", sysconfig.get_config_var("LIBDIR"))
WIDTH = 64 << 10
WEIGHTS = numpy.full((WIDTH,), 0.5, numpy.float32)
kept = []


def remember(features):
    """What is not given back."""
    kept.append(features.copy())


@batch
def infer(features):
    """As many floats as fit 256 KiB, of a seed each."""
    rows = features.repeat(WIDTH, axis=1)
    remember(rows)
    return {"scores": rows @ WEIGHTS[:, None]}


def body():
    """A request of one row, as KServe's protocol has it."""
    return json.dumps({"inputs": [{
        "name": "features", "shape": [1, 1], "datatype": "FP32",
        "data": [0.5]}]})


def serve_it(folder):
    """For a while. @return what is known of it"""
    port = serving.free_port()
    config = TritonConfig(
        http_address="127.0.0.1", http_port=port, grpc_address="127.0.0.1",
        grpc_port=serving.free_port(), allow_metrics=False,
        log_file=str(folder / "log"))
    with Triton(config=config, workspace=str(folder / "workspace")) as triton:
        triton.bind(
            model_name="sentiment", infer_func=infer,
            inputs=[Tensor(name="features", dtype=numpy.float32, shape=(1,))],
            outputs=[Tensor(name="scores", dtype=numpy.float32, shape=(1,))],
            config=ModelConfig(max_batch_size=4))
        triton.run()
        path = "/v2/models/sentiment/infer"
        serving.wait_for(port, "/v2/models/sentiment")
        load = serving.Load(port, path, body())
        return load, load.run(arguments.seconds, arguments.rate)


def main():
    """All of it, in a folder that goes with it."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        load, work = serve_it(folder)
        log = (folder / "log").read_text("utf-8", "replace").splitlines()
    # E1123 23:40:27.289590 12059 server.cc:241] "no driver"
    complaints = sorted({line.partition("] ")[2] for line in log
                         if re.match(r"[EWF]\d{4} ", line)})
    work.tell(sum(rows.nbytes for rows in kept), answered=load.answered,
              failed=load.failed, complaints=complaints)


main()
