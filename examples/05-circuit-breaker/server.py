#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""An inference server whose GPU memory leaks, and what defends it.

    POST /infer   an answer; or 503 with Retry-After, at once
    GET  /ready   200 or 503, and why: for a readiness probe
    GET  /live    200 as long as HTTP is answered: what a naive check sees
    GET  /state   the breaker, for people
    POST /reload  the model gives back what it kept

--no-breaker leaves the defence out.
"""
import argparse
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from breaker import CLOSED, OPEN, Breaker, Prober
from gpu import Gpu, Model, Starved

REQUEST_S = 0.5  # the most that a request waits for memory
CANARY_EVERY_S = 0.5
CANARY_S = 0.3


class Guard:
    """What stands between requests and the model."""

    def __init__(self, model, breaker):
        self.model = model
        self.breaker = breaker
        self.canary = (True, 'the canary is well')

    def answer(self, question):
        """The answer, or None: refused."""
        ticket = self.breaker.enter()
        if ticket is None:
            return None
        try:
            answer = self.model.answer(question,
                                       time.monotonic() + REQUEST_S)
        except (Starved, RuntimeError) as failure:
            self.breaker.leave(ticket, False, str(failure))
            return None
        self.breaker.leave(ticket, True)
        return answer

    def ask_canary(self):
        try:
            if self.model.check(time.monotonic() + CANARY_S):
                return True, 'the canary is well'
            return False, 'the canary answers wrongly'
        except (Starved, RuntimeError) as failure:
            return False, f'the canary failed: {failure}'

    def watch(self):
        """Ask the canary for ever, also while the breaker is open: seep looks
        at the device when memory of it is handed out, so the canary also
        keeps fresh what the probe reads."""
        while True:
            self.canary = self.ask_canary()
            if not self.canary[0]:
                self.breaker.tell(*self.canary)
            time.sleep(CANARY_EVERY_S)


class NoGuard:
    """Requests wait for ever."""

    def __init__(self, model):
        self.model = model
        self.breaker = Breaker()
        self.breaker.change(CLOSED, 'there is no breaker')

    def answer(self, question):
        return self.model.answer(question)


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    guard = None

    def reply(self, status, text, **headers):
        data = (text + '\n').encode()
        self.send_response(status)
        self.send_header('Content-Length', str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace('_', '-'), str(value))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        breaker = self.guard.breaker
        if self.path == '/live':
            self.reply(200, 'alive')
        elif self.path == '/ready':
            # Half-open is ready: without traffic there is no trial.
            self.reply(503 if breaker.state == OPEN else 200, breaker.reason)
        elif self.path == '/state':
            self.reply(200, json.dumps({
                'state': breaker.state, 'reason': breaker.reason,
                'history': breaker.history}))
        else:
            self.reply(404, 'no such thing')

    def do_POST(self):
        question = self.rfile.read(int(self.headers['Content-Length'] or 0))
        if self.path == '/reload':
            self.guard.model.reload()
            self.reply(200, 'reloaded')
        elif self.path == '/infer':
            answer = self.guard.answer(question)
            if answer is not None:
                self.reply(200, answer)
            else:
                self.reply(503, self.guard.breaker.reason,
                           Retry_After=self.guard.breaker.retry_after_s())
        else:
            self.reply(404, 'no such thing')

    def log_message(self, *arguments):
        pass


def make_guard(arguments):
    """The canary goes first: with a wrong answer we do not start at all."""
    model = Model(Gpu())
    if not model.check(time.monotonic() + CANARY_S):
        raise SystemExit('the canary\'s answer is wrong')
    if arguments.no_breaker:
        return NoGuard(model)
    guard = Guard(model, Breaker())
    threading.Thread(target=guard.watch, daemon=True).start()
    Prober(guard.breaker, lambda: guard.canary, arguments.probe,
           arguments.gpu_free_mib, arguments.recordings).start()
    return guard


def main():
    parser = argparse.ArgumentParser(description='a defended server')
    parser.add_argument('--ready', required=True,
                        help='file to write our pid and port into')
    parser.add_argument('--recordings', required=True,
                        help='what seep-probe reads: a folder')
    parser.add_argument('--gpu-free-mib', type=int, default=256,
                        help='under this the breaker opens')
    parser.add_argument('--probe', default='seep-probe')
    parser.add_argument('--no-breaker', action='store_true')
    arguments = parser.parse_args()

    Handler.guard = make_guard(arguments)
    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    server.daemon_threads = True
    with open(arguments.ready + '.part', 'w', encoding='ascii') as file:
        file.write(f'{os.getpid()} {server.server_port}\n')
    os.rename(arguments.ready + '.part', arguments.ready)
    server.serve_forever()


if __name__ == '__main__':
    main()
