# SPDX-License-Identifier: LGPL-2.1-or-later
"""A phase of a run, marked where it begins and where it ends."""
import contextlib

from . import _calls


class phase(contextlib.ContextDecorator):
    """with phase("warm-up"): ...  or  @phase("warm-up") above a function.

    Marks "warm-up begins", then "warm-up done", or "warm-up failed" if an
    exception leaves it, which goes on.
    """

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        _calls.mark(f"{self.name} begins")
        return self

    def __exit__(self, kind, error, trace):
        _calls.mark(f"{self.name} {'done' if kind is None else 'failed'}")
        return False
