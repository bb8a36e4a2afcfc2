# SPDX-License-Identifier: LGPL-2.1-or-later
"""A process that loads much and then only serves; see python_leak.py."""
import numpy

from python_leak import Load


def plant(_seconds, _seed):
    """What an import keeps is no leak."""
    numpy.ones(1000).sum()
    return Load()
