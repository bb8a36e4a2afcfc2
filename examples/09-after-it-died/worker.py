#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A worker that keeps every answer, until it may have no more memory."""
import time

ANSWER_BYTES = 256 << 10
BYTES_PER_S = 12 << 20
answers = []


def predict():
    return bytearray(ANSWER_BYTES)


def main():
    start = time.monotonic()
    while True:
        due = (time.monotonic() - start) * BYTES_PER_S
        while len(answers) * ANSWER_BYTES < due:
            answers.append(predict())
        time.sleep(0.02)


main()
