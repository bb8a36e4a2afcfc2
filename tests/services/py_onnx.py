# SPDX-License-Identifier: LGPL-2.1-or-later
"""Services on onnxruntime, where it is installed: its arena beneath outputs.

The model is one product of matrices, written here as the format has it
(onnx.proto: fields by number), so that no other package is needed.
Invariant: what a kind calls kept is reachable to the end of work.
"""
import struct

import numpy
import onnxruntime

from py_base import Service
from py_leaks import Leak

WIDTH = 256
FLOAT = 1


def field(number, value):
    """One of protobuf's, by its type."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value):
    """Seven bits a byte, the lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def value_of(name):
    """An input or output: a matrix of any height."""
    shape = field(1, field(2, "n")) + field(1, field(1, WIDTH))
    return field(1, name) + field(
        2, field(1, field(1, FLOAT) + field(2, shape)))


def model():
    """y = relu(x w)"""
    weights = struct.pack(f"{WIDTH * WIDTH}f", *[0.01] * (WIDTH * WIDTH))
    graph = (field(1, field(1, "x") + field(1, "w") + field(2, "h")
                   + field(4, "MatMul"))
             + field(1, field(1, "h") + field(2, "y") + field(4, "Relu"))
             + field(2, "g")
             + field(5, field(1, WIDTH) + field(1, WIDTH) + field(2, FLOAT)
                     + field(8, "w") + field(9, weights))
             + field(11, value_of("x")) + field(12, value_of("y")))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def open_session():
    """One thread: a service beside others."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model(), options,
                                        ["CPUExecutionProvider"])


class Infers(Service):
    """Every request is answered, and nothing kept."""
    NAME = "onnx-infers"

    def __init__(self, run):
        super().__init__(run)
        self.session = open_session()

    def load(self, _run):
        return 2

    def infer(self, run):
        """A batch of any size."""
        batch = numpy.ones((run.random.randrange(4, 60), WIDTH), numpy.float32)
        return self.session.run(["y"], {"x": batch})[0]

    def request(self, run):
        self.infer(run)


class Outputs(Infers):
    """One output in four goes into a list."""
    NAME, LEAKS = "onnx-outputs", True
    FUNCTIONS = "infer|Session.run|Outputs.request"

    def __init__(self, run):
        super().__init__(run)
        self.outputs = []

    def request(self, run):
        output = self.infer(run)
        if run.random.random() < 0.25:
            self.outputs.append(output)
            run.kept(output.nbytes)


class Sessions(Leak):
    """Each reload opens a session; those before it are kept."""
    NAME = "onnx-sessions"
    FUNCTIONS = "open_session|model|_create_inference_session"

    def __init__(self, run):
        super().__init__(run)
        self.sessions = []

    def tick(self, run):
        if run.part_begins(30):
            self.sessions.append(open_session())
            run.kept(WIDTH * WIDTH * 4 * 2, 20)


class Reloads(Infers):
    """Each reload lets go of the session before it."""
    NAME = "onnx-reloads"

    def tick(self, run):
        if run.part_begins(20):
            self.session = open_session()
