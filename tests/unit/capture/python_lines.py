# SPDX-License-Identifier: LGPL-2.1-or-later
"""Make python_lines.txt: line tables, and what PyCode_Addr2Line says of them.

    for p in python3.8 python3.9 ...; do $p python_lines.py; done

prints, for each code object of a source that has every kind of entry:

    table MINOR FIRST_LINE CODE_BYTES HEX
    lines LASTI:LINE LASTI:LINE ...     (where the line changes; 0: none)
"""
import ctypes
import sys

SOURCE = '''
def plain(a):
    b = a + 1

    return b * 2
def jumps(a):
    x = [
        a,
        a
        + 1, (a,
    a)]
    try:
        with open(a) as f: y = 1; z = 2
        for i in x:
            if i: continue
            yield i
    except (ValueError, OSError) as e:
        raise RuntimeError(
            e
        ) from e
    finally:
        x = None
    return [i for i in x
            if i]
''' + "\n" * 300 + '''
def far(a):
    a(1)
''' + "\n" * 700 + '''
    a(2); ''' + "a(3); " * 70 + '''
    a(
      4,
''' + "\n" * 150 + '''
      5)
    return lambda: (
        a)
async def waits(a):
    async with a as b:
        await b
    async for i in a: await i
class Class(object):
    "doc"
    member = 1
    def method(self): return super().method()
'''


def codes(code):
    yield code
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            yield from codes(constant)


def main():
    line_of = ctypes.pythonapi.PyCode_Addr2Line
    line_of.argtypes = [ctypes.py_object, ctypes.c_int]
    minor = sys.version_info[1]
    for code in codes(compile(SOURCE, "source.py", "exec")):
        table = code.co_linetable if minor >= 10 else code.co_lnotab
        size = len(code.co_code)
        print("table", minor, code.co_firstlineno, size, table.hex() or "-")
        lines = [max(line_of(code, i), 0) for i in range(0, size, 2)]
        print("lines", *("%d:%d" % (2 * i, line)
                         for i, line in enumerate(lines)
                         if i == 0 or line != lines[i - 1]))


main()
