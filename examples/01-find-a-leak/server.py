#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A small model server, with a leak.

POST /predict takes float32 features and answers with float32 scores. Three
lines of it hold memory, and a graph of the process shows only their sum:

    churn    every request allocates some 300 KiB and gives them back
    cache    embeddings of 500 texts are kept: grows at first, then is full
    LEAK     a copy of each answer is kept "for later" and never read again
"""
import argparse
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy

FEATURES = 512
HIDDEN = 256
SCORES = 4096
CACHE_ENTRIES = 500
THREADS = 4


class Model:
    def __init__(self):
        random = numpy.random.default_rng(1)
        self.first = random.standard_normal((FEATURES, HIDDEN), numpy.float32)
        self.second = random.standard_normal((HIDDEN, SCORES), numpy.float32)
        self.cache = {}
        self.audit = []
        self.lock = threading.Lock()

    def embed(self, text_id):
        """The embedding of a text, computed once: a bounded cache."""
        with self.lock:
            if text_id not in self.cache:
                if len(self.cache) >= CACHE_ENTRIES:
                    self.cache.pop(next(iter(self.cache)))
                self.cache[text_id] = numpy.concatenate(
                    [self.second[text_id % HIDDEN, :HIDDEN]] * 16)
            return self.cache[text_id][:HIDDEN]

    def predict(self, features, text_id):
        hidden = numpy.maximum(features @ self.first, 0.0)
        hidden = hidden + self.embed(text_id)
        scores = hidden @ self.second
        self.remember(scores)
        return scores

    def remember(self, scores):
        self.audit.append(scores[-1].copy())  # the leak


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    timeout = 10
    model = None

    def do_POST(self):
        length = int(self.headers['Content-Length'])
        batch = numpy.frombuffer(self.rfile.read(length), numpy.float32)
        scores = self.model.predict(batch.reshape(-1, FEATURES),
                                    int(self.headers['X-Text']))
        answer = scores[-1, :16].tobytes()
        self.send_response(200)
        self.send_header('Content-Length', str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass


class Server(HTTPServer):
    """An HTTP server whose requests run in a pool of threads."""
    request_queue_size = 64

    def __init__(self, model):
        Handler.model = model
        super().__init__(('127.0.0.1', 0), Handler)
        self.pool = ThreadPoolExecutor(THREADS)

    def process_request(self, request, address):
        self.pool.submit(self.serve, request, address)

    def serve(self, request, address):
        try:
            self.finish_request(request, address)
        except (ConnectionError, ValueError):
            pass
        finally:
            self.shutdown_request(request)


def main():
    parser = argparse.ArgumentParser(description='a model server with a leak')
    parser.add_argument('--ready', required=True,
                        help='file to write our pid and port into')
    arguments = parser.parse_args()
    server = Server(Model())

    with open(arguments.ready + '.part', 'w', encoding='ascii') as file:
        file.write(f'{os.getpid()} {server.server_port}\n')
    os.rename(arguments.ready + '.part', arguments.ready)
    # Until SIGTERM, which ends us at once: what is recorded survives that.
    server.serve_forever()


if __name__ == '__main__':
    main()
