#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A soak harness: warms the model server up, loads it, and says so to seep.

Exit 0 if every request was answered; whether memory may grow as it did is for
`seep run --check` to say.
"""
import argparse
import http.client
import os
import sys
import threading
import time
from wsgiref.simple_server import WSGIRequestHandler, make_server

from model_server import Model, application_of

try:
    import seep
except ImportError:  # not installed: beside us in the source
    sys.path.insert(0, os.path.join(os.path.dirname(
        os.path.abspath(__file__)), '..', '..', 'tools', 'python'))
    import seep

WORDS = 600  # more than are cached


class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments):
        pass


def ask(port, number):
    text = ' '.join(f'word{(number * 7 + i) % WORDS}' for i in range(10))
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=10)
    try:
        connection.request('POST', '/', text.encode())
        answer = connection.getresponse()
        return answer.status == 200 and len(answer.read()) > 0
    finally:
        connection.close()


def load(port, seconds, rate):
    """Requests at a steady rate. @return how many, and how many failed"""
    begin = time.monotonic()
    sent = failed = 0
    while time.monotonic() < begin + seconds:
        failed += not ask(port, sent)
        sent += 1
        time.sleep(max(0, begin + sent / rate - time.monotonic()))
    return sent, failed


def main():
    parser = argparse.ArgumentParser(description='soak the model server')
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--rate', type=float, default=50,
                        help='requests a second')
    parser.add_argument('--leak', action='store_true',
                        help='let the server keep 4 KiB of each request')
    arguments = parser.parse_args()

    with seep.phase('warm-up'):
        server = make_server('127.0.0.1', 0, seep.WSGIMiddleware(
            application_of(Model(keeps_answers=arguments.leak))),
            handler_class=Quiet)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        load(server.server_port, arguments.seconds / 5, arguments.rate)
    with seep.phase('soak'):
        sent, failed = load(server.server_port, arguments.seconds * 4 / 5,
                            arguments.rate)
    server.shutdown()
    server.server_close()
    print(f'{sent} requests, {failed} failed')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
