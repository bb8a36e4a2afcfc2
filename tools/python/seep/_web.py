# SPDX-License-Identifier: LGPL-2.1-or-later
"""Middleware for web applications: one unit of work a finished request.

Invariant: a server and an application cannot tell that it is there, but for
the type of a WSGI body; a request counts once, however it ends.
"""
from . import _calls


class _Body:
    """What a WSGI application answered, until it is used up or closed."""

    def __init__(self, body, units):
        self._body = body
        self._blocks = None
        self._units = units

    def _finish(self):
        units, self._units = self._units, 0
        _calls.progress(units)

    def __iter__(self):
        self._blocks = iter(self._body)
        return self

    def __next__(self):
        if self._blocks is None:
            self._blocks = iter(self._body)
        try:
            return next(self._blocks)
        except BaseException:  # its end is one too
            self._finish()
            raise

    def close(self):
        """Servers call it in any case, also where the body is not sent."""
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._finish()

    def __getattr__(self, name):
        if name == "_body":  # not yet: somebody makes a copy
            raise AttributeError(name)
        return getattr(self._body, name)


class _SizedBody(_Body):
    """Of a body with a length: servers make Content-Length of it."""

    def __len__(self):
        return len(self._body)


class WSGIMiddleware:
    """application = seep.WSGIMiddleware(application)"""

    def __init__(self, app, units=1):
        self.app = app
        self.units = units

    def __call__(self, environ, start_response):
        try:
            body = self.app(environ, start_response)
        except BaseException:
            _calls.progress(self.units)
            raise
        wrapper = environ.get("wsgi.file_wrapper")
        if isinstance(wrapper, type) and isinstance(body, wrapper):
            # The server knows it by its type, and may send it by itself.
            _calls.progress(self.units)
            return body
        kind = _SizedBody if hasattr(body, "__len__") else _Body
        return kind(body, self.units)


class ASGIMiddleware:
    """app.add_middleware(seep.ASGIMiddleware), or seep.ASGIMiddleware(app).

    Of HTTP only: lifespan and websockets go through untouched.
    """

    def __init__(self, app, units=1):
        self.app = app
        self.units = units

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        try:
            return await self.app(scope, receive, send)
        finally:
            _calls.progress(self.units)
