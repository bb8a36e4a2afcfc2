#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Requests to server.py by four clients; a line for each second.

A client that is refused asks again at once, as many do, whatever Retry-After
says.
"""
import argparse
import collections
import http.client
import threading
import time

CLIENTS = 4
GIVE_UP_S = 3
PAUSE_S = 0.05


def ask(port, path='/infer', method='POST', timeout_s=GIVE_UP_S):
    """(status or None, seconds, text, Retry-After) of one request."""
    begin = time.monotonic()
    connection = http.client.HTTPConnection('127.0.0.1', port,
                                            timeout=timeout_s)
    try:
        connection.request(method, path, b'a question')
        answer = connection.getresponse()
        text = answer.read().decode().strip()
        return (answer.status, time.monotonic() - begin, text,
                answer.headers['Retry-After'])
    except TimeoutError:
        return None, time.monotonic() - begin, 'no answer', None
    finally:
        connection.close()


class Client(threading.Thread):
    """Asks until it is told to stop; `asked` is what came of it."""

    def __init__(self, port, stop):
        super().__init__(daemon=True)
        self.port = port
        self.stop = stop
        self.asked = []

    def run(self):
        while not self.stop.is_set():
            self.asked.append((time.monotonic(), *ask(self.port)))
            time.sleep(PAUSE_S)


def start(port, count=CLIENTS):
    stop = threading.Event()
    clients = [Client(port, stop) for _ in range(count)]
    for client in clients:
        client.start()
    return stop, clients


def collect(clients, begin=0.0, end=float('inf')):
    """What came of the requests that ended in that time."""
    return [asked for client in clients for asked in list(client.asked)
            if begin <= asked[0] + asked[2] < end]


def main():
    parser = argparse.ArgumentParser(description='load for server.py')
    parser.add_argument('--port', type=int, required=True)
    parser.add_argument('--seconds', type=int, default=10)
    arguments = parser.parse_args()
    stop, clients = start(arguments.port)
    begin = time.monotonic()
    names = {200: 'answered', 503: 'refused', None: 'hung'}

    for second in range(arguments.seconds):
        time.sleep(max(0.0, begin + second + 1 - time.monotonic()))
        asked = collect(clients, begin + second, begin + second + 1)
        counts = collections.Counter(names[one[1]] for one in asked)
        slowest_ms = max((one[2] for one in asked), default=0) * 1000
        state = ask(arguments.port, '/ready', 'GET')
        print(f'{second + 1:3} s ' + ' '.join(
            f'{counts[name]:4} {name}' for name in names.values()) +
            f', slowest {slowest_ms:.0f} ms; {state[2]}', flush=True)
    stop.set()


if __name__ == '__main__':
    main()
