#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a fleet leaks, by DuckDB.

    fleet.py FILES

FILES is a path or a pattern of files that `seep digest` printed. Needs the
duckdb of PyPI.
"""
import pathlib
import sys

import duckdb

HERE = pathlib.Path(__file__).parent
TOP = """
select version, clock, "where", having_it || ' of ' || workers as workers,
    leaks, format('{:.0f}', growth) as growth,
    format('{:.0f} to {:.0f}', low, high) as "bytes, 95 %",
    format('{:.0f} %', 100 * i2) as i2
from sites where share >= 0.01 order by clock, leaks = 0, "where", version
"""


def load(files):
    """A connection that has the tables."""
    database = duckdb.connect()
    database.execute("set variable DIGESTS = ?", [files])
    for name in ("digests.duckdb.sql", "sites.duckdb.sql"):
        database.execute((HERE / name).read_text(encoding="utf-8"))
    return database


def main(files):
    database = load(files)
    database.sql(TOP).show(max_width=120, max_rows=60)
    database.sql("from first_versions").show(max_width=120)


if __name__ == "__main__":
    main(sys.argv[1])
