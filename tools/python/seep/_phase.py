# SPDX-License-Identifier: LGPL-2.1-or-later
"""A phase of a run, marked where it begins and where it ends."""
import contextlib
import functools

from . import _calls

_IS_COROUTINE = 0x80  # inspect.CO_COROUTINE, which is a lot to import


class phase(contextlib.ContextDecorator):
    """with phase("warm-up"): ...  or  @phase("warm-up") above a function.

    Marks "warm-up begins", then "warm-up done", or "warm-up failed" if an
    exception leaves it, which goes on. Of a function that is async, the phase
    lasts until it has been awaited.
    """

    def __init__(self, name):
        self.name = name

    def __call__(self, function):
        code = getattr(function, "__code__", None)
        if not getattr(code, "co_flags", 0) & _IS_COROUTINE:
            return super().__call__(function)

        @functools.wraps(function)
        async def awaited(*arguments, **named):
            with self._recreate_cm():
                return await function(*arguments, **named)
        return awaited

    def __enter__(self):
        _calls.mark(f"{self.name} begins")
        return self

    def __exit__(self, kind, error, trace):
        _calls.mark(f"{self.name} {'done' if kind is None else 'failed'}")
        return False
