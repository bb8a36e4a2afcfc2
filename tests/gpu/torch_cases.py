# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tensors that are kept, and models that come and go.

    torch_cases.py kept|cycles|asynchronous|look

The allocator is chosen by PYTORCH_CUDA_ALLOC_CONF. Prints the truth: what
PyTorch itself says, and what is kept at which function. look: nothing more than
whether it can be. What is kept lives when the process ends: an interpreter that
ends in order frees it.
"""
import gc
import json
import os
import sys

NUMBER = 40
BYTES = 3_000_000  # the cache rounds up to 512
ROUNDED = -(-BYTES // 512) * 512
SAMPLED = 0.1  # by 512 KiB at the most: of 40 such tensors hardly one is missed


def skip(why):
    print(json.dumps({"skipped": why}))
    sys.exit(77)


try:
    import torch
except Exception as error:  # whatever an import may raise
    skip(f"torch cannot be imported: {type(error).__name__}")


def keep_tensor(kept):
    kept.append(torch.empty(BYTES, dtype=torch.uint8, device="cuda"))


def use_model():
    model = torch.nn.Linear(2048, 2048).cuda()
    return float(model(torch.ones(8, 2048, device="cuda")).sum())


def main(how):
    if not torch.cuda.is_available():
        skip(f"torch {torch.__version__} sees no device")
    if how == "look":
        return
    kept = []
    sites = []
    torch.zeros(1, device="cuda")
    for _ in range(NUMBER):
        if how == "cycles":
            use_model()
            gc.collect()
            torch.cuda.empty_cache()
        else:
            keep_tensor(kept)
            torch.empty(BYTES, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    if how == "asynchronous":
        sites.append({"function": "keep_tensor", "space": "device",
                      "live_bytes": NUMBER * BYTES, "tolerance": 0.001})
    else:
        sites.append({"function": None, "space": "tensor",
                      "live_bytes": torch.cuda.memory_allocated(),
                      "tolerance": SAMPLED})
        # What a library takes beside the cache (a workspace) is more.
        sites.append({"function": None, "space": "device",
                      "live_bytes": torch.cuda.memory_reserved(),
                      "more": how == "cycles"})
    if how == "kept":
        sites.append({"function": "keep_tensor", "space": "tensor",
                      "live_bytes": NUMBER * ROUNDED, "tolerance": SAMPLED})
    print(json.dumps({"sites": sites, "errors": 0,
                      "torch": torch.__version__}), flush=True)
    os._exit(0)


main(sys.argv[1])
