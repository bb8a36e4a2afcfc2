#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A WSGI service that keeps 1 KiB of each request.

It says what it is at: where its warm-up ends, which model it serves, and, by
the middleware, each request that it has answered.
"""
import argparse
import os
import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server

try:
    import seep
except ImportError:  # not installed: beside us in the source
    sys.path.insert(0, os.path.join(os.path.dirname(
        os.path.abspath(__file__)), '..', '..', 'tools', 'python'))
    import seep

PAYLOAD_BYTES = 1024 - sys.getsizeof(b'')
history = []


def application(environ, start_response):
    """Answers in three blocks, and forgets to forget."""
    history.append(bytes(PAYLOAD_BYTES))  # the leak
    start_response('200 OK', [('Content-Type', 'text/plain')])
    for block in range(3):
        yield b'%d\n' % block


class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments):
        pass


def main():
    parser = argparse.ArgumentParser(description='a WSGI service with a leak')
    parser.add_argument('--ready', required=True,
                        help='file to write our pid and port into')
    arguments = parser.parse_args()

    with seep.phase('warm-up'):
        model = [bytes(1 << 20) for _ in range(16)]
    seep.label('model', 'bert-13')
    server = make_server('127.0.0.1', 0, seep.WSGIMiddleware(application),
                         handler_class=Quiet)
    with open(arguments.ready + '.part', 'w', encoding='ascii') as file:
        file.write(f'{os.getpid()} {server.server_port}\n')
    os.rename(arguments.ready + '.part', arguments.ready)
    server.serve_forever()
    del model


if __name__ == '__main__':
    main()
