# SPDX-License-Identifier: LGPL-2.1-or-later
"""A line that keeps what another line lends it; two leaks that are two.

    python_lender.py SECONDS

parse() makes thousands of dicts for each request and keeps none. store() keeps
one small document of three: its dicts come from the list of freed ones that
CPython keeps, and stay charged to parse(). first_of() and second_of() keep
texts, for the same requests, and have nothing to do with each other.

A planted line ends in the comment "keeps: NAME". Prints JSON: for each its
line and how many things it kept.
"""
import json
import sys
import time

REQUESTS_PER_SECOND = 60
DOCUMENTS = 6
PARTS = 200

stored, first, second = [], [], []


def parse(number):
    """What a request is: nothing of it stays."""
    rows = [{"row": index, "of": {"number": number}}  # lends
            for index in range(PARTS)]
    return len(rows)


def store(number):
    """One of three documents stays."""
    text = '{"id": "%d", "at": {"path": "%d"}}' % (number, number)
    documents = [json.loads(text) for _ in range(3)]  # keeps: store
    stored.append(documents[0])


def first_of(number):
    """Texts are never lent."""
    first.append(("%012d" % number) * 90)  # keeps: first


def second_of(number):
    """Of another cause."""
    second.append(("%09d" % number) * 120)  # keeps: second


def place_of(mark):
    """The line that ends in @mark."""
    with open(__file__, encoding="utf-8") as lines:
        return next(number for number, text in enumerate(lines, 1)
                    if text.rstrip().endswith(f"# {mark}"))


def main(seconds):
    """Requests at a steady pace; one that is late is made up for."""
    start = time.monotonic()
    for number in range(int(seconds * REQUESTS_PER_SECOND)):
        time.sleep(max(0, start + number / REQUESTS_PER_SECOND
                       - time.monotonic()))
        parse(number)
        for document in range(DOCUMENTS):
            store(number * DOCUMENTS + document)
        first_of(number)
        second_of(number)
    print(json.dumps({
        "lender": place_of("lends"),
        "kept": {name: [place_of(f"keeps: {name}"), len(things)]
                 for name, things in (("store", stored), ("first", first),
                                      ("second", second))}}), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
