# SPDX-License-Identifier: LGPL-2.1-or-later
"""The preload's four calls, over ctypes; see seep/seep.h.

Invariant: they are looked up once, as the module is imported, among what the
process has loaded for all to see: the preload is there from the start, or it
never comes.
"""
import math
import typing

try:
    import ctypes
except ImportError:  # a Python that was built without
    ctypes = None

UNKNOWN = 2 ** 64 - 1


class Stats(typing.NamedTuple):
    """The process by its own recording; None: not known."""
    live_bytes: int
    growth_bytes_per_s: typing.Optional[float]
    units: int
    rss_bytes: typing.Optional[int]
    headroom_bytes: typing.Optional[int]
    device_free_bytes: typing.Optional[int]
    device_total_bytes: typing.Optional[int]


def _found(process, name, result, *parameters):
    call = getattr(process, name)
    call.restype = result
    call.argtypes = parameters
    return call


def _look_up():
    # PyDLL keeps the interpreter's lock: none of the calls ever waits.
    process = ctypes.PyDLL(None)
    text = ctypes.c_char_p
    return (_found(process, "seep_mark", None, text),
            _found(process, "seep_progress", None, ctypes.c_uint64),
            _found(process, "seep_label", None, text, text),
            _found(process, "seep_stats", ctypes.c_int, ctypes.c_void_p))


try:
    _mark, _progress, _label, _stats = _look_up()
except (AttributeError, OSError, TypeError):  # no preload; no ctypes
    _mark = _progress = _label = _stats = None

if _stats is not None:
    class _Struct(ctypes.Structure):
        """struct seep_stats, field by field."""
        _fields_ = [("size_bytes", ctypes.c_uint64),
                    ("live_bytes", ctypes.c_uint64),
                    ("growth_bytes_per_s", ctypes.c_double),
                    ("units", ctypes.c_uint64),
                    ("rss_bytes", ctypes.c_uint64),
                    ("headroom_bytes", ctypes.c_uint64),
                    ("device_free_bytes", ctypes.c_uint64),
                    ("device_total_bytes", ctypes.c_uint64)]


def _bytes(text):
    return str(text).encode("utf-8", "replace")


def recorded():
    """Is the preload there? Then something may be recorded."""
    return _mark is not None


def mark(name):
    """A moment worth a name: "warm-up done", "model loaded"."""
    if _mark is not None:
        try:
            _mark(_bytes(name))
        except Exception:  # pylint: disable=broad-except
            pass  # what cannot be said is not, as without the preload


def progress(units=1):
    """So many units of work were done: requests, batches, steps."""
    if _progress is not None:
        try:
            if units > 0:
                _progress(int(units))
        except Exception:  # pylint: disable=broad-except
            pass  # what cannot be said is not, as without the preload


def label(key, value):
    """From here on the process's label key is value."""
    if _label is not None:
        try:
            _label(_bytes(key), _bytes(value))
        except Exception:  # pylint: disable=broad-except
            pass  # what cannot be said is not, as without the preload


def _known(number):
    return None if number == UNKNOWN else number


def stats():
    """Stats of this process; None where nothing is recorded. About 20 us."""
    if _stats is None:
        return None
    found = _Struct(size_bytes=ctypes.sizeof(_Struct))
    if _stats(ctypes.byref(found)) != 0:
        return None
    growth = found.growth_bytes_per_s
    return Stats(found.live_bytes, None if math.isnan(growth) else growth,
                 found.units, _known(found.rss_bytes),
                 _known(found.headroom_bytes),
                 _known(found.device_free_bytes),
                 _known(found.device_total_bytes))
