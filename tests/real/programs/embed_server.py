# SPDX-License-Identifier: LGPL-2.1-or-later
"""A server of embeddings on the loopback: POST sentences, GET /stop ends it.

Nothing is kept. Its first line says where it listens and which process it is.
"""
import argparse
import http.server
import json
import os
import threading

parser = argparse.ArgumentParser()
parser.add_argument("--model", choices=["bert", "words"], default="bert",
                    help="words: a stand-in that needs no library")
arguments = parser.parse_args()
WIDTH = 384


def bert():
    """The embedder, in oneDNN's layers."""
    import torch
    from torch.utils.mkldnn import to_mkldnn

    import embedder

    model = to_mkldnn(embedder.load("float32"), torch.float)
    return lambda sentences: model.encode(
        sentences, show_progress_bar=False).tolist()


def words():
    """As many numbers a sentence, from its words."""
    def embed(sentence):
        return [sum(hash(word) >> bit & 1 for word in sentence.split())
                for bit in range(0, WIDTH // 8)] * 8
    return lambda sentences: [embed(sentence) for sentence in sentences]


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection: its thread answers its requests, one by one."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    embed = None

    def answer(self, document):
        """As JSON, in one packet where it fits."""
        body = json.dumps(document).encode()
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
                         % len(body) + body)

    def do_POST(self):
        """A request."""
        text = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(Handler.embed(json.loads(text)))

    def do_GET(self):
        """The end."""
        self.answer({})
        threading.Thread(target=self.server.shutdown).start()

    def log_message(self, *_):
        """No line for each request."""


def main():
    """Until it is told to stop."""
    Handler.embed = staticmethod({"bert": bert, "words": words}
                                 [arguments.model]())
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        print(json.dumps({"port": server.server_port, "pid": os.getpid()}),
              flush=True)
        server.serve_forever()


main()
