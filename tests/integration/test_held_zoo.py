# SPDX-License-Identifier: LGPL-2.1-or-later
"""All kinds of holders there are, once each, in every process that can have
them: SEEP_TEST_LONG=1, half an hour.

    tools/test --long held_zoo      (the table is printed at the end)

Each is asked once, while it goes on, and never again until the answer suits.
SEEP_TEST_PYTHONS=PATH:PATH are interpreters beside those that pyenv has.
"""
import contextlib
import itertools
import os
import pathlib
import shutil
import subprocess

import pytest

from command_line import PYTHON
from conftest import ALLOCATORS, LONG, program
from zoo import CLEAR, MOVING, judged, native_zoo, python_zoo

RIGHT_LEAST = 0.98
WRONG_SHARE = 0.8
LEAST = 8  # blocks, for an answer
PYTHONS = sorted(map(str, itertools.chain.from_iterable(
    pathlib.Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3")
    for minor in range(8, 16))))
MORE_PYTHONS = [path for path in
                os.environ.get("SEEP_TEST_PYTHONS", "").split(":") if path]
OTHERS = [name for name, path in ALLOCATORS.items()
          if path is not None and path.exists()]
KINDS_LEAST = 60

pytestmark = pytest.mark.skipif(not LONG, reason="long: SEEP_TEST_LONG=1")


def stripped(name, folder):
    """The program without symbols, which only who reads lines still finds."""
    path = folder / name
    shutil.copy(program(name), path)
    debug = folder / f"{name}.debug"
    for words in (("--only-keep-debug", path, debug), ("--strip-all", path),
                  (f"--add-gnu-debuglink={debug}", path)):
        subprocess.run(["objcopy", *map(str, words)], check=True, cwd=folder)
    return path


def make_native(name, is_stripped=False, **how):
    def make(folder):
        path = stripped(name, folder) if is_stripped else program(name)
        return native_zoo(folder, path, **how)
    return make


def make_python(python, **how):
    return lambda folder: python_zoo(folder, python, **how)


def zoos():
    """{name: (what opens it, whether its globals have names)}"""
    found = {f"python {path.split('/')[-3]}": (make_python(path), True)
             for path in PYTHONS}
    found |= {pathlib.Path(path).name: (make_python(path), True)
              for path in MORE_PYTHONS}
    found["python"] = make_python(PYTHON), True
    found["python exact"] = make_python(PYTHON, sample="1"), True
    found["python malloc"] = make_python(PYTHON, PYTHONMALLOC="malloc"), True
    for name in ("holders", "holders_cc"):
        found[name] = make_native(name), True
        found[f"{name} exact"] = make_native(name, sample="1"), True
        found[f"{name} stripped"] = make_native(name, True), False
    found["holders_cc_static"] = make_native("holders_cc_static"), True
    for other in OTHERS:
        found[f"python {other}"] = make_python(PYTHON, allocator=other), True
        for name in ("holders", "holders_cc"):
            found[f"{name} {other}"] = make_native(name, allocator=other), True
    return found


ZOOS = zoos()


def has_root(kept, kind, group):
    """Without symbols: the root is where the program says, or the next root is
    beyond it."""
    _, _, _, root = kept.truth[kind]
    roots = sorted(address for *_, address in kept.truth.values())
    after = [address for address in roots if address > root] or [1 << 64]
    at = int(group["steps"][-1]["address"], 16)
    return not root or root <= at < after[0]


def judge(kept, kind, has_names):
    """(how it was judged, share, what was said)"""
    answer = kept.answer(kept.truth[kind][0], *MOVING.get(kind, ()))
    if answer["asked"] < LEAST:
        return "unclear", 0, "too few blocks"
    group = answer["groups"][0]
    found = judged(kept.truth[kind], group, has_names)
    if found == "right" and not has_names and group["end"] == "held" and \
            not has_root(kept, kind, group):
        found = "wrong"
    return found, group["share"], group["sentence"]


@pytest.fixture(scope="module", name="told")
def told_fixture():
    return {}


@pytest.mark.parametrize("name", ZOOS)
def test_no_wrong_holder_is_told_as_if_it_were_sure(tmp_path, told, name):
    make, has_names = ZOOS[name]

    with contextlib.ExitStack() as stack:
        kept = stack.enter_context(make(tmp_path))
        told[name] = {kind: judge(kept, kind, has_names)
                      for kind in kept.truth if kept.truth[kind][0]
                      in kept.sites}
        missing = set(kept.truth) - set(told[name])

    assert not missing
    assert not {kind: found for kind, found in told[name].items()
                if found[0] == "wrong" and found[1] > WRONG_SHARE}


def rows_of(told):
    for name, kinds in told.items():
        found = list(kinds.values())
        yield (name, len(found), sum(x[0] == "right" for x in found),
               sum(x[0] == "unclear" for x in found),
               sum(x[0] == "wrong" and x[1] <= WRONG_SHARE for x in found),
               sum(x[0] == "wrong" and x[1] > WRONG_SHARE for x in found))


def test_the_right_holder_is_first_in_98_of_100(told, capsys):
    rows = [*rows_of(told)]
    sums = [sum(column) for column in zip(*(row[1:] for row in rows))]

    with capsys.disabled():
        print(f"\n{'':24} kinds right unclear wrong  wrong above "
              f"{WRONG_SHARE:.0%}")
        for row in [*rows, ("all", *sums)]:
            print("{:24} {:5} {:5} {:7} {:5} {:12}".format(*row))
        for name, kinds in told.items():
            for kind, (found, share, sentence) in kinds.items():
                if found != "right":
                    print(f"{name}, {kind}: {found} ({share:.0%}): {sentence}")

    assert len(set(itertools.chain(*told.values()))) >= KINDS_LEAST
    assert sums[1] >= RIGHT_LEAST * sums[0]
    assert CLEAR <= WRONG_SHARE
