# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Python package: it does nothing without the preload, and its middleware
counts each request once."""
import asyncio
import copy
import io
import json
import os
import pathlib
import sys
import textwrap
from wsgiref import util, validate
from wsgiref.handlers import SimpleHandler

import pytest

from conftest import execute, report

SOURCE = pathlib.Path(os.environ.get(
    "SEEP_SOURCE", pathlib.Path(__file__).parents[2]))
PACKAGE = SOURCE / "tools/python"
sys.path.insert(0, str(PACKAGE))

import seep  # noqa: E402 pylint: disable=wrong-import-position
from seep import _calls  # noqa: E402 pylint: disable=wrong-import-position

SPEAKS = """
    import json, seep
    with seep.phase("warm-up"):
        kept = bytearray(3000000)
    try:
        with seep.phase("load"):
            raise KeyError("x")
    except KeyError:
        pass
    @seep.phase("step")
    def step():
        return 5
    assert step() == 5
    seep.progress(); seep.progress(41); seep.progress(0); seep.progress(-3)
    seep.label("model", "bert-\u00e9")
    seep.label("count", 3)
    seep.mark(None)
    stats = seep.stats()
    print(json.dumps([seep.recorded(), stats and stats._asdict()]))
"""


def speak(folder, code=SPEAKS, **variables):
    return execute(["/usr/bin/python3", "-c", textwrap.dedent(code)], folder,
                   PYTHONPATH=PACKAGE, **variables)


def test_without_the_preload_it_does_nothing():
    run = speak(None)

    assert run.seen == (0, b"[false, null]\n", b"")


def test_without_ctypes_it_does_nothing(tmp_path):
    run = speak(tmp_path, "import sys; sys.modules['ctypes'] = None"
                + textwrap.dedent(SPEAKS), sample=1)

    assert run.seen == (0, b"[false, null]\n", b"")


def test_what_it_says_is_in_the_recording(tmp_path):
    run = speak(tmp_path, sample=1)

    assert run.status == 0, run.stderr
    path, = run.recordings
    process = report(path)["processes"][0]
    assert [m["name"] for m in process["marks"]] == [
        "warm-up begins", "warm-up done", "load begins", "load failed",
        "step begins", "step done", "None"]
    assert process["process"]["units"] == 42
    assert process["process"]["labels"] == {"model": "bert-é", "count": "3"}
    recorded, stats = json.loads(run.stdout)
    assert recorded
    assert stats["units"] == 42
    assert stats["live_bytes"] > 3000000
    assert stats["device_free_bytes"] is None


CANNOT = """
    import seep
    class Odd:
        def __str__(self):
            raise ValueError("no")
    seep.mark(Odd()); seep.label("key", Odd()); seep.label(Odd(), "value")
    for units in (None, "3", [], float("inf"), float("nan")):
        seep.progress(units)
    seep.progress(2)
    print("still here")
"""


def test_what_cannot_be_said_raises_no_more_than_without_the_preload(tmp_path):
    run = speak(tmp_path, CANNOT, sample=1)

    assert run.seen == speak(None, CANNOT).seen == (0, b"still here\n", b"")
    path, = run.recordings
    process = report(path)["processes"][0]
    assert process["process"]["units"] == 2
    assert process["marks"] == []


def test_the_phase_of_an_async_function_lasts_until_it_is_done(monkeypatch):
    said = []
    monkeypatch.setattr(_calls, "_mark", lambda name: said.append(name))

    @seep.phase("load")
    async def load(what):
        await asyncio.sleep(0)
        said.append(what)
        return 5

    assert asyncio.run(load("inside")) == 5
    assert said == [b"load begins", "inside", b"load done"]


@pytest.fixture(name="units")
def counted(monkeypatch):
    """What was told, one call after the other."""
    told = []
    monkeypatch.setattr(_calls, "_progress",
                        lambda units: told.append(int(units)))
    return told


def serve(app, wrapper=True):
    """What a server sends for one request."""
    environ = {}
    util.setup_testing_defaults(environ)
    out = io.BytesIO()
    handler = SimpleHandler(io.BytesIO(), out, io.StringIO(), environ)
    if not wrapper:
        handler.wsgi_file_wrapper = None
    handler.run(app)
    return out.getvalue()


def plain(_, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"answer"]


def streaming(_, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    yield b"one"
    yield b"two"


def failing(_, start_response):
    raise KeyError("before")


def failing_late(_, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    yield b"one"
    raise KeyError("late")


def writing(_, start_response):
    write = start_response("200 OK", [("Content-Type", "text/plain")])
    write(b"written")
    return []


def of_a_file(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return environ["wsgi.file_wrapper"](io.BytesIO(b"of a file"))


@pytest.mark.parametrize("app", [plain, streaming, failing, failing_late,
                                 writing, of_a_file])
def test_a_request_counts_once_and_nothing_else_changes(units, app):
    wanted = serve(app)
    assert units == []

    assert serve(seep.WSGIMiddleware(app)) == wanted
    assert [u for u in units if u] == [1]


def test_a_file_that_the_server_sends_by_itself_stays_one(units):
    body = seep.WSGIMiddleware(of_a_file)(
        {"wsgi.file_wrapper": util.FileWrapper}, lambda *_: None)

    assert isinstance(body, util.FileWrapper)
    assert units == [1]


@pytest.mark.parametrize("app", [plain, streaming])
def test_it_is_a_wsgi_application(units, app):
    assert serve(validate.validator(seep.WSGIMiddleware(
        validate.validator(app)))).startswith(b"HTTP/1.0 200")
    assert [u for u in units if u] == [1]


def test_a_body_counts_when_it_is_used_up_not_before(units):
    body = iter(seep.WSGIMiddleware(streaming)({}, lambda *_: None))

    next(body)
    next(body)
    assert units == []
    assert next(body, None) is None
    body.close()
    assert [u for u in units if u] == [1]


def test_a_body_that_nobody_reads_counts_when_it_is_closed(units):
    closed = []

    class Body:
        def __iter__(self):
            return iter([b"x"])

        def close(self):
            closed.append(True)

    body = seep.WSGIMiddleware(lambda *_: Body(), units=7)({}, None)
    body.close()
    assert closed == [True]
    assert [u for u in units if u] == [7]


def test_a_body_may_be_copied(units):
    body = copy.copy(seep.WSGIMiddleware(plain)({}, lambda *_: None))

    assert list(body) == [b"answer"]
    assert units == [1]


async def http_app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200})
    for block in (b"one", b"two"):
        await send({"type": "http.response.body", "body": block,
                    "more_body": True})
    await send({"type": "http.response.body"})


async def failing_app(scope, receive, send):
    raise KeyError(scope["type"])


def call(app, kind):
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(app({"type": kind}, None, send))
    return sent


def test_a_request_over_asgi_counts_when_it_is_answered(units):
    async def app(scope, receive, send):
        await http_app(scope, receive, send)
        assert units == []

    assert call(seep.ASGIMiddleware(app), "http") == call(http_app, "http")
    assert units == [1]


def test_a_request_over_asgi_that_fails_counts_and_fails(units):
    with pytest.raises(KeyError):
        call(seep.ASGIMiddleware(failing_app), "http")
    assert units == [1]


def test_a_request_over_asgi_that_is_cancelled_counts(units):
    async def hang(scope, receive, send):
        await asyncio.sleep(100)

    async def cancel():
        await asyncio.wait_for(seep.ASGIMiddleware(hang)(
            {"type": "http"}, None, None), 0.01)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(cancel())
    assert units == [1]


@pytest.mark.parametrize("kind", ["lifespan", "websocket"])
def test_what_is_no_request_goes_through(units, kind):
    assert call(seep.ASGIMiddleware(http_app), kind) == call(http_app, kind)
    with pytest.raises(KeyError):
        call(seep.ASGIMiddleware(failing_app), kind)
    assert units == []
