# SPDX-License-Identifier: LGPL-2.1-or-later
"""A server that is under load for a while: asked, counted, stopped.

Invariant: requests go to loopback, at a rate, for so many seconds; whoever
does not end after SIGTERM is killed by its pid, and the truth says so.
"""
import http.client
import json
import socket
import subprocess
import threading
import time

from truth import Work

END_S = 60
START_S = 300


def free_port():
    """Of this machine alone."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port, path="/", body=None):
    """One request. @return what it answered, None unless that is a 200"""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET" if body is None else "POST", path, body,
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        return json.loads(text) if answer.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def wait_for(port, path="/"):
    """Until it answers."""
    for _ in Work(START_S):
        if ask(port, path) is not None:
            return
        time.sleep(0.1)
    raise TimeoutError(f"nobody answers on port {port}")


class Load:
    """Threads that ask at a rate, all together; how many were answered, and how
    many not. No answer is kept: who asks may be recorded, too."""

    def __init__(self, port, path="/", body=None, threads=2, take=None):
        self.take = take or (lambda answer: None)
        self.lock = threading.Lock()
        self.answered = 0
        self.failed = 0
        self.threads = [threading.Thread(target=self.go)
                        for _ in range(threads)]
        self.request = (port, path, body)
        self.pause = self.work = None

    def go(self):
        """One of them."""
        for _ in self.work:
            answer = ask(*self.request)
            with self.lock:
                if answer is None:
                    self.failed += 1
                else:
                    self.answered += 1
                    self.take(answer)
            time.sleep(self.pause)

    def run(self, seconds, rate):
        """To its end. @return the Work, which is asked for the truth"""
        self.pause = len(self.threads) / rate
        self.work = Work(seconds)
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join()
        return self.work


def stop(server):
    """By SIGTERM. @return its exit status"""
    server.terminate()
    try:
        return server.wait(END_S)
    except subprocess.TimeoutExpired:
        server.kill()
        return server.wait(END_S)
