#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Load for server.py: a bounded number of requests in a bounded time.

Exit 1 if a request was not answered, or wrongly.
"""
import argparse
import http.client
import random
import struct
import sys
import threading
import time

FEATURES = 512
ROWS = 16
TEXTS = 500
ANSWER_BYTES = 64


class Client(threading.Thread):
    """Keeps its connection, and the pace."""

    def __init__(self, port, requests, rate, seconds, seed):
        super().__init__()
        self.connection = http.client.HTTPConnection('127.0.0.1', port,
                                                     timeout=20)
        self.requests, self.rate, self.seconds = requests, rate, seconds
        self.random = random.Random(seed)
        self.answered = 0
        self.fault = None

    def run(self):
        body = struct.pack('f', 0.5) * (FEATURES * ROWS)
        start = time.monotonic()
        try:
            while (self.answered < self.requests
                   and time.monotonic() < start + self.seconds):
                self.ask(body)
                due = start + self.answered / self.rate
                time.sleep(max(0.0, due - time.monotonic()))
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.fault = error
        finally:
            self.connection.close()

    def ask(self, body):
        text = self.random.randrange(TEXTS)
        self.connection.request('POST', '/predict', body,
                                {'X-Text': str(text)})
        answer = self.connection.getresponse()
        if answer.status != 200 or len(answer.read()) != ANSWER_BYTES:
            raise ValueError(f'a wrong answer, status {answer.status}')
        self.answered += 1


def main():
    parser = argparse.ArgumentParser(description='load for server.py')
    parser.add_argument('--port', type=int, required=True)
    parser.add_argument('--seconds', type=float, default=45)
    parser.add_argument('--requests', type=int, default=20000)
    parser.add_argument('--rate', type=float, default=60,
                        help='requests a second, of all clients together')
    parser.add_argument('--clients', type=int, default=4)
    options = parser.parse_args()

    clients = [Client(options.port, options.requests // options.clients,
                      options.rate / options.clients, options.seconds, seed)
               for seed in range(options.clients)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    faults = [client.fault for client in clients if client.fault]
    print(f'{sum(client.answered for client in clients)} requests answered')
    if faults:
        print(f'load: {faults[0]}', file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == '__main__':
    main()
