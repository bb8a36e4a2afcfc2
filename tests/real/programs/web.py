# SPDX-License-Identifier: LGPL-2.1-or-later
"""A WSGI application for gunicorn: each request keeps a line of a log."""
LINE_BYTES = 96 << 10
log = []


def keep_line(text):
    """What max_requests is there for."""
    log.append(bytearray(LINE_BYTES))
    return text


def app(environment, start_response):
    """Any path."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [keep_line(environment["PATH_INFO"].encode())]
