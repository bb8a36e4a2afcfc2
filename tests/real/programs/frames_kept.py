# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tables of a library that has an allocator of its own, and keeps them."""
import argparse
import time

from truth import Work

ROWS = 32768
kept = []
rows = [0]


def frames():
    """Of polars: two columns."""
    import polars

    def make_one():
        return polars.DataFrame({"x": range(ROWS)}).with_columns(
            (polars.col("x") * 2).alias("y"))
    return make_one, 16 * ROWS


def arrays():
    """Of Arrow."""
    import pyarrow
    import pyarrow.compute

    base = pyarrow.array(range(ROWS), pyarrow.int64())

    def make_one():
        return pyarrow.compute.add(base, 1)
    return make_one, 8 * ROWS


def rows_inserted():
    """Of a table of DuckDB in memory; numbers that do not compress."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    connection.execute("create table kept (x ubigint, y ubigint)")

    def make_one():
        connection.execute(
            "insert into kept select hash(range + ?), hash(range - ?) "
            f"from range({ROWS})", [rows[0], rows[0]])
        rows[0] += ROWS
    return make_one, 16 * ROWS


MAKERS = {"polars": frames, "pyarrow": arrays, "duckdb": rows_inserted}
parser = argparse.ArgumentParser()
parser.add_argument("library", choices=sorted(MAKERS))
parser.add_argument("--seconds", type=float, default=60)
parser.add_argument("--rate", type=float, default=2 << 20)
arguments = parser.parse_args()


def keep_table(make):
    """What no one takes back."""
    kept.append(make())


def main():
    """At a rate that a small machine can have."""
    make, size = MAKERS[arguments.library]()
    work = Work(arguments.seconds)
    for _ in work:
        while len(kept) * size < arguments.rate * (
                time.monotonic() - work.start):
            keep_table(make)
        time.sleep(0.05)
    work.tell(len(kept) * size)


main()
