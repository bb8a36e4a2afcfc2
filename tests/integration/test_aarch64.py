# SPDX-License-Identifier: LGPL-2.1-or-later
"""The walker and the recorder on aarch64, under an emulator.

What runs in the worker needs nothing but libc, so a cross compiler is enough:
gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user, where they are
installed. The reader that looks at the recording is the one under test here.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

from conftest import dump

SOURCE = pathlib.Path(os.environ.get(
    "SEEP_SOURCE", pathlib.Path(__file__).parents[2]))
SYSROOT = pathlib.Path("/usr/aarch64-linux-gnu")
COMPILER = shutil.which("aarch64-linux-gnu-gcc")
EMULATOR = shutil.which("qemu-aarch64")
TIMEOUT_S = 240
WORKER = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-fPIC",
          "-fvisibility=hidden", "-ftls-model=initial-exec",
          "-fno-builtin-malloc", "-fno-builtin-calloc", "-fno-stack-protector",
          "-fexceptions", "-fasynchronous-unwind-tables"]

pytestmark = pytest.mark.skipif(
    not COMPILER or not EMULATOR or not (SYSROOT / "include").exists(),
    reason="no cross compiler or no emulator for aarch64")


def sources(*folders):
    return [path for folder in folders
            for path in sorted((SOURCE / "src" / folder).rglob("*.[cS]"))]


def build(output, *words):
    done = subprocess.run(
        [COMPILER, "-Wall", "-Wextra", f"-I{SOURCE}/include",
         f"-I{SOURCE}/src", f"-I{output.parent}", "-o", output, *words,
         "-ldl", "-lpthread"],
        capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr.decode()


def emulate(*argv, **variables):
    words = [word for name, value in variables.items()
             for word in ("-E", f"{name}={value}")]
    return subprocess.run([EMULATOR, "-L", SYSROOT, *words, *argv],
                          capture_output=True, timeout=TIMEOUT_S, check=False)


# With signed return addresses, and as they come from a compiler that is not
# asked for anything.
@pytest.mark.parametrize("flags", [
    ["-O0"], ["-O1", "-mbranch-protection=standard"],
    ["-O3", "-fomit-frame-pointer"]], ids=" ".join)
def test_every_frame_is_as_libgcc_finds_it(flags):
    with tempfile.TemporaryDirectory(prefix="seep-aarch64-") as name:
        binary = pathlib.Path(name) / "capture"
        walker = sources("capture/native")
        build(binary, "-std=c11", "-D_GNU_SOURCE",
              "-fasynchronous-unwind-tables", *flags,
              SOURCE / "tests/integration/programs/capture_aarch64.c", *walker,
              SOURCE / "src/base/own.c", SOURCE / "src/base/state.c",
              SOURCE / "src/base/text.c")
        done = emulate(binary)
        assert done.returncode == 0, done.stdout.decode()
        assert b"stacks 141, through signals 2, differing 0" in done.stdout


def functions(site):
    """What the program itself has called, from the innermost on."""
    names = site["frames"]
    return names[:names.index("main") + 1]


def test_a_recording_has_the_stacks_of_the_program():
    with tempfile.TemporaryDirectory(prefix="seep-aarch64-") as name:
        folder = pathlib.Path(name)
        (folder / "seep_version.h").write_text('#define SEEP_VERSION "0"\n',
                                               encoding="ascii")
        build(folder / "libseep.so", *WORKER, "-shared", "-Wl,-z,now",
              "-Wl,-z,nodelete", "-Wl,--no-undefined",
              f"-Wl,--version-script={SOURCE}/src/cuda/exports.map",
              *sources("base", "format", "record", "capture", "cuda",
                       "preload"))
        build(folder / "recorded", "-std=gnu11", "-O1", "-fno-builtin",
              "-fno-optimize-sibling-calls",
              SOURCE / "tests/integration/programs/recorded_aarch64.c")
        done = emulate(folder / "recorded", LD_PRELOAD=folder / "libseep.so",
                       SEEP_OUT=folder / "out.seep", SEEP_SAMPLE=1)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        document = dump(folder / "out.seep")
    stacks = {site["live_bytes"]: site for site in document["sites"]}
    for depth in range(20):
        site = stacks[50000 + depth]
        assert functions(site) == ["keep"] + ["nest"] * (depth + 1) + ["main"]
        assert site["frames"][-1] == "_start"
        assert site["cut"] == 0
    assert functions(stacks[70000]) == (["keep"] + ["nest"] * 4
                                        + ["with_array", "main"])


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-v", "-s"]))
