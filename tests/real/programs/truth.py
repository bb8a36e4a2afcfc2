# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a program knows of itself: its last line, as JSON.

Invariant: nothing here knows how seep decides.
"""
import json
import os
import pathlib
import time

PAGE_BYTES = 4096


def statm():
    """Sizes of this process, in pages: all, resident, shared of that."""
    return [int(word) for word in
            pathlib.Path("/proc/self/statm").read_text("ascii").split()]


def rss_bytes():
    """What of this process is in memory."""
    return PAGE_BYTES * statm()[1]


def private_bytes():
    """Of that, what is not of files or shared: a recording is."""
    _, resident, shared, *_ = statm()
    return PAGE_BYTES * (resident - shared)


class Work:
    """The part of a run after the imports: how long, and what it kept."""

    def __init__(self, seconds):
        self.start = time.monotonic()
        self.seconds = seconds
        self.first = rss_bytes()

    def __iter__(self):
        count = 0
        while time.monotonic() - self.start < self.seconds:
            yield count
            count += 1

    def tell(self, kept=0, **more):
        """The line; @kept is 0 where nothing is kept for good."""
        print(json.dumps({"kept_bytes": kept, "rss_first_bytes": self.first,
                          "rss_last_bytes": rss_bytes(),
                          "work_s": time.monotonic() - self.start,
                          "pid": os.getpid(), **more}),
              flush=True)
