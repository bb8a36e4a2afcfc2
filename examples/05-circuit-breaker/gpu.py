# SPDX-License-Identifier: LGPL-2.1-or-later
"""A model on a GPU, by the CUDA driver itself.

Memory of the device is asked for as serving frameworks do it: who finds none
waits until there is some. That is how a GPU starves silently: no error, no
crash, requests that do not come back.
"""
import ctypes
import hashlib
import threading
import time

MIB = 1 << 20
OUT_OF_MEMORY = 2
WEIGHTS_BYTES = 64 * 1024
SCRATCH_BYTES = 8 * MIB  # an inference needs it
CONTEXT_BYTES = 1 * MIB  # of a conversation
PAUSE_S = 0.01
CANARY = b'the quick brown fox'


class Starved(Exception):
    """No memory came in time."""


class Gpu:
    """The first device; any thread may use it."""

    def __init__(self):
        self.driver = ctypes.CDLL('libcuda.so.1')
        self.context = ctypes.c_void_p()
        self.known = threading.local()
        self.call('cuInit', 0)
        self.call('cuDevicePrimaryCtxRetain', ctypes.byref(self.context), 0)

    def call(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        if status not in (0, OUT_OF_MEMORY):
            raise RuntimeError(f'{name} answers {status}')
        return status

    def attach(self):
        """The context is of a thread: each has to name it once."""
        if not hasattr(self.known, 'attached'):
            self.call('cuCtxSetCurrent', self.context)
            self.known.attached = True

    def take(self, size_bytes, until=None):
        """Memory of the device; waits for it, for ever if no time is given."""
        self.attach()
        pointer = ctypes.c_uint64()
        while self.call('cuMemAlloc_v2', ctypes.byref(pointer),
                        ctypes.c_size_t(size_bytes)) == OUT_OF_MEMORY:
            if until is not None and time.monotonic() >= until:
                raise Starved(f'no {size_bytes >> 20} MiB on the GPU')
            time.sleep(PAUSE_S)
        return pointer

    def give(self, pointer):
        self.attach()
        self.call('cuMemFree_v2', pointer)

    def write(self, pointer, data):
        self.attach()
        self.call('cuMemcpyHtoD_v2', pointer, data,
                  ctypes.c_size_t(len(data)))

    def read(self, pointer, size_bytes):
        self.attach()
        data = ctypes.create_string_buffer(size_bytes)
        self.call('cuMemcpyDtoH_v2', data, pointer,
                  ctypes.c_size_t(size_bytes))
        return data.raw


class Model:
    """Answers depend on the weights that lie on the GPU, so an answer that is
    known before tells whether they, and the way there, are sound."""

    def __init__(self, gpu):
        self.gpu = gpu
        self.contexts = []
        weights = hashlib.shake_128(b'bert-13').digest(WEIGHTS_BYTES)
        self.weights = gpu.take(WEIGHTS_BYTES)
        gpu.write(self.weights, weights)
        self.canary_answer = self.compute(weights, CANARY)

    @staticmethod
    def compute(weights, question):
        return hashlib.sha256(weights + question).hexdigest()[:16]

    def infer(self, question, until=None):
        scratch = self.gpu.take(SCRATCH_BYTES, until)
        try:
            self.gpu.write(scratch, question)
            weights = self.gpu.read(self.weights, WEIGHTS_BYTES)
            return self.compute(weights,
                                self.gpu.read(scratch, len(question)))
        finally:
            self.gpu.give(scratch)

    def keep_context(self, until=None):
        """For the next question of this conversation, which never comes."""
        self.contexts.append(self.gpu.take(CONTEXT_BYTES, until))  # the leak

    def answer(self, question, until=None):
        answer = self.infer(question, until)
        self.keep_context(until)
        return answer

    def check(self, until=None):
        """The canary: a question with a known answer."""
        return self.infer(CANARY, until) == self.canary_answer

    def reload(self):
        """What unloading and loading the model would do."""
        while self.contexts:
            self.gpu.give(self.contexts.pop())
