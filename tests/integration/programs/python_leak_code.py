# SPDX-License-Identifier: LGPL-2.1-or-later
"""Leaks by the kind of code that they are in; see python_leak.py.

Nothing kept here is of a kind that Python keeps lists of freed ones of, but
the heads of dicts, and of lists those that a comprehension makes.
"""
import importlib
import sys
import zipfile

from python_leak import Load, Planted

WORD = "%012d"
KEYS = "number name text score tags owner state place size note".split()
MODULE = '''\
kept = []


def {function}(number):
    kept.append(("%012d" % number) * 30)  # leak: {name}
'''
TEXT = '''\
def keep_in_text(number):
    kept.append(("%012d" % number) * 30)
'''


def plant_dicts():
    """Records, among churn that makes dicts, too."""
    kept = []

    def handle(n):
        kept.append({key: n * 3 for key in KEYS})  # leak: dict
    return Planted("dict", handle, kept, lent_bytes=sys.getsizeof({}))


def plant_comprehension():
    kept = []

    def handle(n):
        kept.append([WORD % i * 4 for i in range(n, n + 8)])  # leak: listcomp
    return Planted("listcomp", handle, kept, lent_bytes=sys.getsizeof([]))


def plant_lambda():
    kept = []
    handle = lambda n: kept.append(("%012d" % n) * 30)  # leak: lambda
    return Planted("lambda", handle, kept)


class ServiceWithAnExtraordinarilyLongNameForWhatItDoes:
    """As generated code has them."""

    class HandlerOfRequestsThatAreNeitherReadsNorWritesNorAnything:
        """One level further in."""
        kept = []

        @classmethod
        def handle_the_request_and_remember_it_for_ever(cls, n):
            cls.kept.append(("%012d" % n) * 30)  # leak: method


def plant_method():
    handler = (ServiceWithAnExtraordinarilyLongNameForWhatItDoes
               .HandlerOfRequestsThatAreNeitherReadsNorWritesNorAnything)
    step = handler.handle_the_request_and_remember_it_for_ever
    return Planted("method", step, handler.kept, __file__)


def plant_callers():
    """Two ways to one line."""
    kept = []

    def store(n):
        kept.append(("%012d" % n) * 30)  # leak: callers

    def read(n):
        store(n + 1)

    def write(n):
        return store(n + 2)

    def handle(n):
        if n % 2:
            read(n)
        else:
            write(n)
    return Planted("callers", handle, kept)


def plant_text():
    """Code from exec has no file: the line to go to is who calls it."""
    names = {"kept": []}
    exec(TEXT, names)  # pylint: disable=exec-used

    def handle(n):
        names["keep_in_text"](n)  # leak: text
    return Planted("text", handle, names["kept"])


def plant_module(name, function, module_name, zipped):
    """In a module that is written to the current folder first."""
    text = MODULE.format(function=function, name=name)
    path = f"{module_name}.py"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    if zipped:
        with zipfile.ZipFile("bundle.zip", "w") as bundle:
            bundle.writestr(f"inside_{path}", text)
        module_name = f"inside_{module_name}"
    sys.path[:0] = ["bundle.zip" if zipped else "."]
    module = importlib.import_module(module_name)
    planted = Planted(name, getattr(module, function), module.kept, path)
    planted.where[0] = f"{module_name}.py"
    return planted


def plant(_seconds, _seed):
    """All of them."""
    return Load([
        plant_dicts(), plant_comprehension(), plant_lambda(), plant_method(),
        plant_callers(), plant_text(),
        plant_module("umlaut", "größer_漏れ", "größe_漏れ", False),
        plant_module("zip", "keep_in_zip", "packed", True),
    ])
