# SPDX-License-Identifier: LGPL-2.1-or-later
"""A process that loads much and then does nothing; see python_leak.py."""
import time

import numpy


def run(seconds, _seed):
    """What an import keeps is no leak."""
    numpy.ones(1000).sum()
    time.sleep(seconds)
    return []
