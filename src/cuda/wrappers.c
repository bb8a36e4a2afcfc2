/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of all wrappers, from hooks.def. */
#include "cuda/hooks.h"

static const struct seep_cuda_variant variants[SEEP_CUDA_IDS] = {
#define SEEP_CUDA_HOOK(name, base, version, per_thread, parameters) \
    {#name, #base, version, per_thread, (seep_cuda_function *)seep_cuda_##name},
#include "cuda/hooks.def"
#undef SEEP_CUDA_HOOK
};

static _Atomic uintptr_t targets[SEEP_CUDA_IDS];

const struct seep_cuda_table seep_cuda_table
    __attribute__((visibility("hidden"))) = {variants, targets, SEEP_CUDA_IDS};
