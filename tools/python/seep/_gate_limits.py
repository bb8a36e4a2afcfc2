# SPDX-License-Identifier: LGPL-2.1-or-later
"""The markers' arguments: sizes, rates, and what is wrong with them.

Invariant: a limit that was read is one that can be held; all else is a
BadLimit, whose text names the argument and what would do.
"""
import difflib
import fractions
import re
import typing

# As the command reads them (base/text.h); a test holds the two together.
_UNITS = {"": 1, "B": 1} | {
    letter + rest: base ** power
    for power, letter in enumerate("KMGTPE", 1)
    for rest, base in (("", 1024), ("I", 1024), ("IB", 1024), ("B", 1000))}
_TIMES_S = {"s": 1, "min": 60, "h": 3600, "d": 86400}
_SIZE = re.compile(r"([0-9]+|[0-9]*\.[0-9]+)[ \t]*([A-Za-z]*)")


class BadLimit(ValueError):
    """What is wrong with a marker, in words for who wrote it."""


class Limit(typing.NamedTuple):
    """One marker of one test, read."""
    marker: str
    text: str        # the limit as it was written
    bound: float     # bytes; a call, a second, or in all
    calls: int       # a round; 0: a round is so many seconds
    seconds: float
    warmup: float    # calls or seconds


def size(text):
    """Bytes of "64 B", "1.5 MiB", 4096."""
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        return float(text)
    found = _SIZE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise BadLimit(f"{text!r} is not a size: write it like '64 B' or "
                       f"'1 MiB'")
    unit = found.group(2).upper()
    if unit not in _UNITS:
        names = [name for name in _UNITS if name.endswith("B")]
        near = difflib.get_close_matches(unit, names, 1, 0)
        raise BadLimit(f"{text!r}: {found.group(2)!r} is not a unit; did you "
                       f"mean {near[0].replace('IB', 'iB')!r}?")
    exact = fractions.Fraction(found.group(1)) * _UNITS[unit]
    if ("." in found.group(1) and _UNITS[unit] == 1) or 0 < exact < 1:
        raise BadLimit(f"{text!r}: a byte cannot be divided")
    if exact >= 2 ** 64:
        raise BadLimit(f"{text!r} is more than any memory")
    return float(int(exact))


def rate(text):
    """Bytes a second of "1 MiB/min"."""
    amount, slash, time = text.partition("/") if isinstance(text, str) \
        else ("", "", "")
    if not slash:
        raise BadLimit(f"{text!r} is not a rate: write it like '1 MiB/min'")
    if time.strip() not in _TIMES_S:
        near = difflib.get_close_matches(time.strip(), _TIMES_S, 1, 0)
        raise BadLimit(f"{text!r}: {time.strip()!r} is not a time; did you "
                       f"mean '{amount}/{near[0] if near else 'min'}'?")
    return size(amount.strip()) / _TIMES_S[time.strip()]


_FORMS = {  # marker: how its limit is read, its other arguments with defaults
    "limit_growth": (rate, {"seconds": 5.0, "warmup": 1.0}),
    "limit_growth_per_call": (size, {"calls": 200, "warmup": 20}),
    "limit_device_memory": (size, {}),
}
MARKERS = tuple(_FORMS)
_CALLS_MIN = 10  # in fewer there is no interval worth the name


def _options(marker, given):
    defaults = _FORMS[marker][1]
    for name in given:
        if name not in defaults:
            near = difflib.get_close_matches(name, defaults, 1, 0.5)
            raise BadLimit(
                f"no argument {name!r}" +
                (f"; did you mean {near[0]!r}?" if near else
                 f"; expected {', '.join(defaults) or 'the limit alone'}"))
    options = {**defaults, **given}
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) \
                or value < 0:
            raise BadLimit(f"{name}={value!r} is not a number from 0 on")
    return options


def read(mark):
    """The Limit of a pytest mark; BadLimit."""
    parse, _ = _FORMS[mark.name]
    if len(mark.args) != 1:
        raise BadLimit("expected one limit, such as "
                       f"{'1 MiB/min' if parse is rate else '1 MiB'!r}; "
                       f"got {len(mark.args)}")
    options = _options(mark.name, mark.kwargs)
    calls = options.get("calls", 0)
    if "calls" in options and (calls != int(calls) or calls < _CALLS_MIN):
        raise BadLimit(f"calls={calls!r}: expected a whole number from "
                       f"{_CALLS_MIN} on")
    if options.get("seconds", 1) <= 0:
        raise BadLimit("seconds=0: expected a time above 0")
    return Limit(mark.name, str(mark.args[0]), parse(mark.args[0]),
                 int(calls), float(options.get("seconds", 0)),
                 options.get("warmup", 0))


_SCALES = (("B", 0), ("KiB", 1), ("MiB", 2), ("GiB", 3), ("TiB", 4))


def _scale_of(count):
    for unit, power in _SCALES:
        if round(abs(count) / 1024 ** power) < 1000:
            break
    return unit, 1024 ** power


def _number(count, scale):
    value = count / scale
    digits = 0 if scale == 1 or abs(value) >= 99.95 else \
        1 if abs(value) >= 9.995 else 2
    text = f"{value:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def written(low, high=None):
    """Bytes for people: 1.5 MiB, or 1.4 to 1.6 MiB."""
    high = low if high is None else high
    unit, scale = _scale_of(max(abs(low), abs(high)))
    texts = [_number(low, scale), _number(high, scale)]
    return " to ".join(dict.fromkeys(texts)) + " " + unit
