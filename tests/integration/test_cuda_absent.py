# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who looks for a CUDA driver finds what he would find without us.

As libraries of Python do: by ctypes, by the name of the library, in the
program itself; PyTorch; the vendor's libraries, where they are installed. With
no driver at all, and with the one in host memory. (What dlsym answers in C is
test_cuda_lookup.py's.)
"""
import glob
import os
import pathlib
import subprocess
import sys

import pytest

from command_line import PYTHON
from conftest import dump, execute, recordings_in

DRIVER = os.environ.get("SEEP_FAKE_CUDA", "")
TOOLKIT = pathlib.Path("/usr/local/cuda/lib64")
LIMIT_S = 300

PROBE = """
import ctypes, ctypes.util, os

def told(what, *arguments, **more):
    try:
        return what(*arguments, **more)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def name_of(library, name):
    found = told(getattr, library, name)
    return found if isinstance(found, str) else "found"

NAMES = ("cuInit", "cuMemAlloc_v2", "cuMemAlloc", "cuMemFree_v2",
         "cuGetProcAddress_v2", "cuMemCreate", "cuNoSuchName", "cudaMalloc",
         "cudnnCreate", "cublasCreate_v2", "curl_easy_init", "cu", "dlsym")
MODES = {"default": ctypes.DEFAULT_MODE, "global": ctypes.RTLD_GLOBAL,
         "lazy": os.RTLD_LAZY, "noload": os.RTLD_NOLOAD | os.RTLD_LAZY,
         "deep": os.RTLD_DEEPBIND | os.RTLD_NOW}

def show_program(title):
    program = ctypes.CDLL(None)
    print(title, [name_of(program, name) for name in NAMES])

for name in ("cuda", "cudart", "c", "nvidia-ml"):
    print("find", name, told(ctypes.util.find_library, name))
show_program("at first")
for word, mode in MODES.items():
    for file in ("libcuda.so.1", "libcuda.so", "/no/such/libcuda.so.1"):
        library = told(ctypes.CDLL, file, mode=mode)
        if isinstance(library, str):
            print(word, file, library)
            continue
        print(word, file, [name_of(library, name) for name in NAMES])
        number = ctypes.c_int(-1)
        pointer = ctypes.c_uint64(5)
        print(library.cuMemAlloc_v2(ctypes.byref(pointer), 100), pointer)
        print(library.cuInit(0), library.cuDriverGetVersion(
            ctypes.byref(number)), number)
        print(library.cuDeviceGetCount(ctypes.byref(number)), number)
        print(library.cuMemAlloc_v2(ctypes.byref(pointer), 100), pointer)
        print(library.cuMemFree_v2(ctypes.c_uint64(5)))
show_program("at last")
"""

TORCH = """
import torch
a = torch.arange(4096, dtype=torch.float32).reshape(64, 64)
print(torch.cuda.is_available(), torch.cuda.device_count(),
      torch.version.cuda, torch.backends.cudnn.is_available())
print(float((a @ a).sum()), float(torch.nn.Linear(64, 8)(a).shape[1]))
try:
    torch.ones(1, device="cuda")
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0])
"""

# All its libraries, some hundreds, look past us.
DEEP = "import os, sys; sys.setdlopenflags(os.RTLD_NOW | os.RTLD_DEEPBIND)"

# Each is loaded, and makes its handle, which asks for a driver.
VENDOR = """
import ctypes, sys
for path, name, extra in [line.split() for line in sys.argv[1:]]:
    library = ctypes.CDLL(path)
    handle = ctypes.c_void_p()
    number = ctypes.c_int(-1)
    if extra == "number":
        print(name, getattr(library, name)(ctypes.byref(number)), number)
    else:
        print(name, getattr(library, name)(ctypes.byref(handle)),
              handle.value is None)
"""
LIBRARIES = (("libcublas.so", "cublasCreate_v2", "handle"),
             ("libcublasLt.so", "cublasLtCreate", "handle"),
             ("libcudnn.so", "cudnnCreate", "handle"),
             ("libcurand.so", "curandGetVersion", "number"),
             ("libcufft.so", "cufftGetVersion", "number"),
             ("libcusparse.so", "cusparseCreate", "handle"),
             ("libcusolver.so", "cusolverDnCreate", "handle"),
             ("libnvrtc.so", "nvrtcGetNumSupportedArchs", "number"),
             ("libnccl.so", "ncclGetVersion", "number"))


def drivers():
    """No driver, and where there is one, that."""
    fake = pytest.param(str(pathlib.Path(DRIVER).parent), id="driver",
                        marks=pytest.mark.skipif(not DRIVER, reason="no driver "
                                                 "of the tests"))
    return pytest.mark.parametrize("path", [pytest.param("", id="none"), fake])


def compare(folder, code, *words, path="", python=PYTHON):
    """Run it without and with us; @return what both said."""
    more = {"LD_LIBRARY_PATH": path} if path else {}
    command = [python, "-c", code, *words]
    plain = execute(command, timeout=LIMIT_S, **more)
    recorded = execute(command, folder, timeout=LIMIT_S, **more)
    assert recorded.recordings
    assert recorded.seen == plain.seen
    return plain


@drivers()
def test_a_python_that_probes_finds_the_same(path, folder):
    said = compare(folder, PROBE, path=path)
    assert said.status == 0, said
    assert (b"undefined symbol: cuInit" in said.stdout) or path
    assert said.stdout.count(b"undefined symbol: cuNoSuchName") > 1


def test_nothing_looks_like_a_driver_where_there_is_none(folder):
    """The names that we export are no answer to any look-up."""
    said = compare(folder, PROBE)
    first = [line for line in said.stdout.splitlines()
             if line.startswith(b"at first")][0]
    assert b"cuMemAlloc_v2" in first
    assert first.count(b"undefined symbol") == 12 and b"'found'" in first


def need_torch():
    found = subprocess.run([PYTHON, "-c", "import torch"], check=False,
                           stderr=subprocess.DEVNULL, timeout=LIMIT_S)
    if found.returncode != 0:
        pytest.skip("no PyTorch")


@drivers()
def test_torch_without_a_device_computes_the_same(path, folder):
    need_torch()
    said = compare(folder, TORCH, path=path)
    assert said.status == 0, said
    assert said.stdout.startswith(b"False 0")


def test_torch_that_is_bound_deeply_is_told_and_computes_the_same(folder):
    need_torch()
    said = compare(folder, f"{DEEP}\n{TORCH}")
    assert said.status == 0, said
    counters = dump(*recordings_in(folder))["counters"]
    assert counters["cuda_deep_missed"] > 0


@drivers()
def test_the_vendors_libraries_answer_the_same(path, folder):
    found = []
    for library, *words in LIBRARIES:
        files = sorted(glob.glob(str(TOOLKIT / (library + ".[0-9]*"))))
        if files:
            found.append(" ".join([files[0], *words]))
    if not found:
        pytest.skip("no CUDA toolkit is installed")
    said = compare(folder, VENDOR, *found, path=path, python=sys.executable)
    assert said.stdout.count(b"\n") == len(found), said
