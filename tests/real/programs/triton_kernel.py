# SPDX-License-Identifier: LGPL-2.1-or-later
"""A kernel that is compiled for each value of FACTOR."""
import triton
import triton.language as tl


@triton.jit
def scale(source, target, count, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    """target = source * FACTOR"""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(source + at, mask=at < count)
    tl.store(target + at, values * FACTOR, mask=at < count)
