# SPDX-License-Identifier: LGPL-2.1-or-later
"""A small model server: WSGI, an embedding of each word, a bounded cache.

With `keeps_answers` it keeps 4 KiB of each request, and never reads them.
"""
import collections
import json

WIDTH = 64
CACHED_WORDS = 500


class Model:
    """Embeddings by word, the last ones cached."""

    def __init__(self, keeps_answers=False):
        self.weights = [float(i % 7) for i in range(WIDTH * WIDTH)]
        self.cache = collections.OrderedDict()
        self.keeps_answers = keeps_answers
        self.answers = []

    def embed(self, word):
        found = self.cache.get(word)
        if found is None:
            seed = sum(word.encode())
            found = [self.weights[(seed * 31 + i) % len(self.weights)]
                     for i in range(WIDTH)]
            self.cache[word] = found
            if len(self.cache) > CACHED_WORDS:
                self.cache.popitem(last=False)
        return found

    def predict(self, text):
        scores = [0.0] * WIDTH
        for word in text.split():
            for i, value in enumerate(self.embed(word)):
                scores[i] += value
        answer = bytearray(json.dumps(scores).encode().ljust(4096))
        if self.keeps_answers:
            self.answers.append(bytes(answer))  # the leak
        return answer.rstrip()


def application_of(model):
    """The model behind a WSGI interface."""
    def application(environ, start_response):
        text = environ['wsgi.input'].read(
            int(environ.get('CONTENT_LENGTH') or 0)).decode()
        answer = model.predict(text)
        start_response('200 OK', [('Content-Type', 'application/json')])
        return [bytes(answer)]
    return application
