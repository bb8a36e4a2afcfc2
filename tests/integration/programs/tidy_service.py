# SPDX-License-Identifier: LGPL-2.1-or-later
"""A Python service that leaks or not, and the ways in which Python ends.

    tidy_service.py KIND END SECONDS

The work is the same in every END up to the last moment of the run. Prints the
bytes that were kept for good a second.
"""
import json
import multiprocessing
import os
import random
import signal
import sys
import threading
import time


class Service:
    """Requests, a cache that is full early, and perhaps a leak."""

    def __init__(self, kind):
        self.kind = kind
        self.kept = []
        self.cache = {}
        self.kept_bytes = 0
        self.spent = 0
        self.stopped = False
        self.random = random.Random(1)

    def keep_request(self):
        size = self.random.randrange(2000, 10000)
        self.kept.append(bytearray(size))
        self.kept_bytes += size

    def fill_cache(self, number):
        self.cache[number % 500] = bytearray(
            self.random.randrange(2000, 10000))

    def serve(self, seconds):
        start = time.monotonic()
        number = 0
        while not self.stopped and time.monotonic() - start < seconds:
            request = bytearray(self.random.randrange(500, 20000))
            self.fill_cache(number)
            if self.kind == "leak":
                self.keep_request()
            number += 1
            del request
            time.sleep(0.005)
        self.spent += time.monotonic() - start

    def tell(self):
        print(json.dumps({"leaked_per_s": self.kept_bytes / self.spent}),
              flush=True)

    def stop(self, *_):
        self.stopped = True


def work(kind, end, seconds):
    """All that the service has belongs to this call."""
    service = Service(kind)
    if end == "sigterm":
        signal.signal(signal.SIGTERM, service.stop)
        threading.Timer(seconds, os.kill,
                        (os.getpid(), signal.SIGTERM)).start()
        seconds += 60
    service.serve(seconds)
    service.tell()
    if end == "abrupt":
        os.kill(os.getpid(), signal.SIGKILL)
    if end == "sys.exit":
        sys.exit(0)


def work_in_tests(kind, seconds):
    """A suite's fixture has the service, until the last test has run."""
    import pytest  # pylint: disable=import-outside-toplevel
    os.environ.update(TIDY_KIND=kind, TIDY_SECONDS=str(seconds))
    suite = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                         "tidy_suite.py")
    sys.exit(pytest.main(["-s", "--noconftest", "-p", "no:terminal", "-p",
                          "no:cacheprovider", "--rootdir", os.getcwd(), suite]))


def main():
    kind, end, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    if end == "worker":
        worker = multiprocessing.get_context("fork").Process(
            target=work, args=(kind, end, seconds))
        worker.start()
        worker.join()
        return
    if end == "pytest":
        work_in_tests(kind, seconds)
    work(kind, end, seconds)


if __name__ == "__main__":
    main()
