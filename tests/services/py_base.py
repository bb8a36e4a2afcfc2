# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the kinds of services in Python have in common."""
KIB = 1024


class Service:
    """Serves five requests a tick, and keeps nothing."""
    NAME = None
    LEAKS = False
    FUNCTIONS = ""
    EVEN = False  # one line, and a rate that is known and does not change

    def __init__(self, run):
        self.run = run

    def load(self, _run):
        """Requests in this tick."""
        return 5

    def request(self, run):
        """Beside what every request does."""

    def tick(self, run):
        """After the requests of a tick."""


def text(run, least, most):
    """So many bytes that nobody else holds."""
    size = run.random.randrange(least, most)
    return b"%016x" % run.random.getrandbits(60) * (size // 16)
