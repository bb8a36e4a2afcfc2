# SPDX-License-Identifier: LGPL-2.1-or-later
"""Arrays of CuPy or JAX on a GPU, of which each request keeps one.

    arrays_on_gpu.py cupy|jax|jax-pool [--seconds S]

CuPy has a pool of its own. JAX asks the driver for each array, or with jax-pool
takes three quarters of the device at its start, as it does by default (here
less, by XLA_PYTHON_CLIENT_MEM_FRACTION).
"""
import argparse
import os
import time

from truth import Work

BYTES = 256 << 10
kept = []


def keep_array(make):
    """What a request should give back."""
    kept.append(make())


def cupy_maker():
    """256 KiB, after something larger that comes and goes."""
    import cupy  # noqa: PLC0415

    def make():
        cupy.ones(1 << 20, dtype="float32").sum()
        return cupy.zeros(BYTES, dtype="uint8")
    return make


def jax_maker():
    """The same."""
    import jax  # noqa: PLC0415
    import jax.numpy as jnp  # noqa: PLC0415

    def make():
        jax.block_until_ready(jnp.ones(1 << 20).sum())
        return jax.block_until_ready(
            jnp.zeros(BYTES, dtype="uint8") + len(kept) % 7)
    return make


def main():
    """Requests at a steady pace."""
    parser = argparse.ArgumentParser()
    parser.add_argument("library", choices=["cupy", "jax", "jax-pool"])
    parser.add_argument("--seconds", type=float, default=45)
    arguments = parser.parse_args()
    if arguments.library == "jax":
        os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = "platform"
    os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = ".1"
    make = cupy_maker() if arguments.library == "cupy" else jax_maker()
    make()
    work = Work(arguments.seconds)
    for _ in work:
        keep_array(make)
        time.sleep(0.02)
    # cuMemCreate gives whole pieces
    work.tell(len(kept) * (2 << 20 if arguments.library == "jax" else BYTES))


main()
