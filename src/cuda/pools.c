/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pools of the program's own; see pools.h. */
#include "cuda/pools.h"

#include <stdatomic.h>

#include "cuda/hooks.h"
#include "cuda/note.h"

/* A slot belongs to the pool that stands in it; its device is read with it
 * and may be that of the one before for a moment. */
static struct {
    _Atomic uintptr_t pool; /* 0: free */
    _Atomic int device;
} slots[SEEP_CUDA_POOLS_MOST];

void seep_cuda_pools_add(void *pool, int device)
{
    for (size_t i = 0; i < SEEP_CUDA_POOLS_MOST; i++) {
        uintptr_t seen = 0;

        if (atomic_compare_exchange_strong_explicit(
                &slots[i].pool, &seen, (uintptr_t)pool, memory_order_relaxed,
                memory_order_relaxed)) {
            atomic_store_explicit(&slots[i].device, device,
                                  memory_order_relaxed);
            return;
        }
    }
}

int seep_cuda_pools_remove(void *pool)
{
    for (size_t i = 0; i < SEEP_CUDA_POOLS_MOST; i++) {
        int device =
            atomic_load_explicit(&slots[i].device, memory_order_relaxed);
        uintptr_t seen = (uintptr_t)pool;

        if (atomic_compare_exchange_strong_explicit(&slots[i].pool, &seen, 0,
                                                    memory_order_relaxed,
                                                    memory_order_relaxed)) {
            return device;
        }
    }
    return -1;
}

void *seep_cuda_pools_get(size_t slot, int *ret_device)
{
    *ret_device =
        atomic_load_explicit(&slots[slot].device, memory_order_relaxed);
    return (void *)atomic_load_explicit(&slots[slot].pool,
                                        memory_order_relaxed);
}

int seep_cuda_cuMemPoolCreate(void **pool, const struct seep_cuda_pool *wanted)
{
    int (*real)(void **, const struct seep_cuda_pool *) =
        SEEP_CUDA_REAL(cuMemPoolCreate);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pool, wanted);
    if (seep_cuda_came(nest, result) &&
        wanted->location.type == SEEP_CUDA_LOCATION_DEVICE) {
        seep_cuda_pools_add(*pool, wanted->location.id);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemPoolCreate);

int seep_cuda_cuMemPoolDestroy(void *pool)
{
    int (*real)(void *) = SEEP_CUDA_REAL(cuMemPoolDestroy);
    struct seep_cuda_nest nest;
    int device = -1;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    if (nest.slot != 0) {
        device = seep_cuda_pools_remove(pool);
    }
    result = real(pool);
    if (result != SEEP_CUDA_SUCCESS && device >= 0) {
        seep_cuda_pools_add(pool, device);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemPoolDestroy);
