#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Asks the service for --seconds, one request after the other."""
import argparse
import http.client
import time


def main():
    parser = argparse.ArgumentParser(description='load for server.py')
    parser.add_argument('--port', type=int, required=True)
    parser.add_argument('--seconds', type=float, default=20)
    parser.add_argument('--rate', type=float, default=200,
                        help='requests a second, at most')
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    requests = 0
    while time.monotonic() < end:
        begin = time.monotonic()
        connection = http.client.HTTPConnection('127.0.0.1', arguments.port,
                                                timeout=10)
        connection.request('GET', '/')
        connection.getresponse().read()
        connection.close()
        requests += 1
        time.sleep(max(0, 1 / arguments.rate - (time.monotonic() - begin)))
    print(f'{requests} requests')


if __name__ == '__main__':
    main()
