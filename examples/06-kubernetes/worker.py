#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stands for the worker in the pod: answers, and keeps each answer."""
import time

ANSWER_BYTES = 16 * 1024
PAUSE_S = 0.01
answers = []


def embed(number):
    return bytes([number % 256]) * ANSWER_BYTES


def serve():
    number = 0
    while True:
        answers.append(embed(number))  # the leak
        number += 1
        time.sleep(PAUSE_S)


if __name__ == '__main__':
    serve()
