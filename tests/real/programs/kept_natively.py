# SPDX-License-Identifier: LGPL-2.1-or-later
"""What an extension allocates and Python keeps: tokenizations, sessions.

How much that is only the process knows: what its private memory grows by.
"""
import argparse
import random
import time

import truth

SIDE = 512
kept = []


def tokenizations():
    """Of tokenizers, in Rust; 96 KiB or so for 400 words."""
    import tokenizers

    words = {f"w{number}": number for number in range(1000)}
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()

    def make_one():
        return tokenizer.encode(" ".join(random.choices(list(words), k=400)))
    return make_one


def field(number, value):
    """Of protobuf: a number, or bytes with their length."""
    def varint(rest):
        text = bytearray()
        while rest > 127:
            text.append(rest & 127 | 128)
            rest >>= 7
        return bytes(text) + bytes([rest])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def matrix_product():
    """y = x * weights, as onnx.proto has it; 1 MiB of weights."""
    def named(name):
        shape = b"".join(field(1, field(1, size)) for size in (1, SIDE))
        return field(1, name) + field(2, field(1, field(1, 1) +
                                               field(2, shape)))
    weights = (field(1, SIDE) + field(1, SIDE) + field(2, 1) +
               field(8, b"weights") +
               field(9, random.randbytes(4 * SIDE * SIDE)))
    node = (field(1, b"x") + field(1, b"weights") + field(2, b"y") +
            field(4, b"MatMul"))
    graph = (field(1, node) + field(2, b"product") + field(5, weights) +
             field(11, named(b"x")) + field(12, named(b"y")))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def sessions():
    """Of onnxruntime, one for each request, as if it were cheap."""
    import numpy
    import onnxruntime

    model = matrix_product()
    features = numpy.ones((1, SIDE), numpy.float32)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1

    def make_one():
        session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"])
        session.run(None, {"x": features})
        return session
    return make_one


MAKERS = {"tokenizers": tokenizations, "onnxruntime": sessions}
parser = argparse.ArgumentParser()
parser.add_argument("library", choices=sorted(MAKERS))
parser.add_argument("--seconds", type=float, default=60)
parser.add_argument("--rate", type=float, default=2 << 20)
arguments = parser.parse_args()


def keep_answer(make):
    """What no one takes back."""
    kept.append(make())


def main():
    """At a rate that a small machine can have."""
    make = MAKERS[arguments.library]()
    for _ in range(10):
        make()
    work = truth.Work(arguments.seconds)
    first = truth.private_bytes()
    for _ in work:
        while truth.private_bytes() - first < arguments.rate * (
                time.monotonic() - work.start):
            keep_answer(make)
        time.sleep(0.05)
    work.tell(truth.private_bytes() - first)


main()
