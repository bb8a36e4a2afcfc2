# SPDX-License-Identifier: LGPL-2.1-or-later
"""Requests come as a batch."""


def batch(function):
    return function
