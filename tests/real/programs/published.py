# SPDX-License-Identifier: LGPL-2.1-or-later
"""Leaks that releases of other people's packages had; later ones do not.

    published.py FUNCTION [--seconds N]

Each function makes one turn of work as a user of the package writes it, the
same for the release that leaks and for the mended one.

Invariant: nothing of this program is kept but a cache of 200 replies.
"""
# pylint: disable=import-outside-toplevel
import argparse
import collections
import contextlib
import io
import json
import random
import time

from truth import Work, private_bytes

CACHED = 200
TURN_S = 0.02


def rows(count):
    """What services pass on."""
    return [{"id": number, "name": f"user {number:06d}",
             "tags": ["a", "b", str(random.random())]}
            for number in range(count)]


def ujson_dump():
    """5.12.0: the text, where write() fails."""
    import ujson

    class FullDisk:
        """As it is."""
        def write(self, text):
            """Never."""
            raise OSError(28, "No space left on device")

    def save_rows():
        with contextlib.suppress(OSError):
            ujson.dump(rows(20), FullDisk())
    return save_rows


def ujson_default():
    """5.9.0: what default() returned and is not ASCII."""
    import ujson

    class Item:
        """Of no type that JSON has."""

    def encode_items():
        return [ujson.dumps({"found": [Item(), Item(), Item()]},
                            default=lambda item: f"{random.random()} 生日快乐" * 9)
                for _ in range(5)]
    return encode_items


def frozendict_repr():
    """2.3.2: repr()."""
    import frozendict

    def describe():
        return repr(frozendict.frozendict({n: n for n in range(300)}))
    return describe


def multidict_istr():
    """6.3.2: each istr."""
    import multidict

    def copy_headers():
        for _ in range(10):
            headers = multidict.CIMultiDict(
                {f"X-Any-{n}": str(n) for n in range(10)})
            copy = multidict.CIMultiDict()
            for key, value in headers.items():
                copy.add(key, value)
    return copy_headers


def multidict_del():
    """6.6.3: what is deleted."""
    import multidict

    def strip_headers():
        for turn in range(10):
            headers = multidict.CIMultiDict()
            for number in range(10):
                headers[f"X-Any-{number}"] = f"value {turn} {number}" * 5
            for number in range(10):
                del headers[f"X-Any-{number}"]
    return strip_headers


def protobuf_bytesize():
    """4.22.1: ByteSize() of what is not set."""
    from google.protobuf.type_pb2 import Type

    message = Type()

    def measure():
        return sum(message.source_context.ByteSize() for _ in range(50))
    return measure


def hiredis_map():
    """2.2.3: the values of a map of RESP3."""
    import hiredis

    def read_hash():
        reader = hiredis.Reader()
        fields = b"".join(b"+field%d\r\n$100\r\n%s\r\n" % (n, b"x" * 100)
                          for n in range(20))
        reader.feed(b"%%20\r\n%s" % fields)
        return reader.gets()
    return read_hash


def pendulum_parse():
    """2.1.2: parse() of what is no date."""
    import pendulum

    def read_date():
        for _ in range(20):
            try:
                pendulum.parse("2020-99-99T00:00:00")
            except ValueError:
                pass
    return read_date


def msgpack_iterate():
    """1.0.7 on Python 3.12: the end of an Unpacker."""
    import msgpack

    packed = b"".join(msgpack.packb(row) for row in rows(5))

    def read_stream():
        for _ in range(10):
            unpacker = msgpack.Unpacker()
            unpacker.feed(packed)
            for _ in unpacker:
                pass
    return read_stream


def orjson_fails():
    """2.6.5: a document that is wrong."""
    import orjson

    def read_body():
        try:
            return orjson.loads("[" + "1234567890," * 100)
        except ValueError:
            return None
    return read_body


def aiohttp_missing():
    """3.10.10: a path that is not found, where there is a middleware."""
    import asyncio
    from aiohttp import ClientSession, web

    @web.middleware
    async def count(request, handler):
        return await handler(request)

    loop = asyncio.new_event_loop()
    app = web.Application(middlewares=[count])
    runner = web.AppRunner(app)
    loop.run_until_complete(runner.setup())
    site = web.TCPSite(runner, "127.0.0.1", 0)
    loop.run_until_complete(site.start())
    port = site._server.sockets[0].getsockname()[1]

    async def make():
        return ClientSession()
    session = loop.run_until_complete(make())

    async def ask():
        async with session.get(f"http://127.0.0.1:{port}/no") as reply:
            return await reply.text()

    def serve():
        return loop.run_until_complete(ask())
    return serve


def tokenizers_long():
    """0.20.3: texts without a space stay in the cache, as long as they are."""
    from tokenizers import Tokenizer, models

    letters = {chr(97 + n): n for n in range(26)}
    tokenizer = Tokenizer(models.BPE(letters, []))

    def encode():
        text = "".join(random.choices("abcdefghijklmnop", k=500))
        return len(tokenizer.encode(text).ids)
    return encode


def pydantic_rebuild():
    """2.12.3: model_rebuild() of models that contain each other."""
    global Block, Leaf, Group, Page
    from typing import Annotated, List, Literal, Union

    from pydantic import BaseModel, Field

    Block = Annotated[Union["Page", "Group", "Leaf"], Field(
        discriminator="kind")]

    class Leaf(BaseModel):
        """Has none."""
        kind: Literal["leaf"]

    class Group(BaseModel):
        """Has more."""
        kind: Literal["group"]
        blocks: List[Block] = []

    class Page(BaseModel):
        """Has some."""
        kind: Literal["page"]
        blocks: List[Block] = []

    def load_plugins():
        if random.random() > 0.1:
            return
        for model in (Page, Group, Leaf):
            model.model_rebuild(force=True)
    return load_plugins


def pandas_json():
    """2.3.2: to_json() of times with a zone."""
    import pandas

    index = pandas.date_range("1/1/2019", "2/1/2019", freq="D", tz="UTC")

    def answer():
        frame = pandas.DataFrame({"price": [12.34]}, index=index)
        return frame.reset_index().to_json()
    return answer


def scipy_cdist():
    """1.7.0: cdist() and pdist()."""
    import numpy
    from scipy.spatial.distance import cdist

    def nearest():
        return cdist(numpy.random.rand(3, 100),
                     numpy.random.rand(5, 100)).argmin()
    return nearest


def numpy_roots():
    """2.4.1: an assignment to flat."""
    import numpy

    def solve():
        return [numpy.roots([3.2, 2, 1]) for _ in range(4)]
    return solve


def onnxruntime_lists():
    """1.19.2: an input that is no array."""
    import onnxruntime
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.STRING, [None])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, [None])])
    model = helper.make_model(graph, opset_imports=[
        helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString())

    def infer():
        return session.run(None, {
            "x": [f"text {random.random()}" for _ in range(20)]})
    return infer


def ssl_session():
    """3.12.1: SSLObject.session."""
    import ssl

    def context(protocol):
        made = ssl.SSLContext(protocol)
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
        made.maximum_version = ssl.TLSVersion.TLSv1_2
        made.set_ciphers("aNULL:@SECLEVEL=0")
        return made

    one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(one, other)
    server = context(ssl.PROTOCOL_TLS_SERVER).wrap_bio(
        other, one, server_side=True)
    for side in (client, server) * 3:
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()

    def resume():
        return [client.session.id for _ in range(5)]
    return resume


def main():
    """All turns."""
    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("--seconds", type=float, default=55)
    parser.add_argument("--turn", type=float, default=TURN_S)
    arguments = parser.parse_args()
    turn = globals()[arguments.case]()
    cache = collections.OrderedDict()
    work = Work(arguments.seconds)
    settled = None
    for count in work:
        turn()
        cache[count] = json.dumps(rows(3))
        if len(cache) > CACHED:
            cache.popitem(last=False)
        if settled is None and (time.monotonic() - work.start
                                > arguments.seconds / 3):
            settled = time.monotonic(), private_bytes()
        time.sleep(arguments.turn)
    span_s = time.monotonic() - settled[0]
    rate = (private_bytes() - settled[1]) / span_s
    work.tell(round(rate * (time.monotonic() - work.start)), turns=count,
              mib_a_minute=round(rate * 60 / 2**20, 2),
              private=private_bytes())


main()
