/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Physical memory that is mapped into sparse arrays; see hooks_sparse.h.
 *
 * Invariant: as in hooks.h. A part is known by its array, level or tail, layer
 * and first element, so who unmaps other parts than he mapped leaves some of
 * them behind.
 */
#include "cuda/hooks_sparse.h"

#include "base/hash.h"
#include "cuda/hooks.h"
#include "cuda/note.h"

/* Was there ever one? Without, no table is searched. */
static _Atomic bool are_used;

static uint64_t mix(uint64_t value, uint64_t more)
{
    return seep_hash_mix(value ^ seep_hash_mix(more + 1));
}

static uint64_t value_of(const struct seep_cuda_array_map *map)
{
    uint64_t value = mix((uintptr_t)map->array, (uint64_t)map->part_type);

    if (map->part_type == SEEP_CUDA_PART_TAIL) {
        value = mix(mix(value, map->part.tail.layer), map->part.tail.offset);
    } else {
        value = mix(mix(value, map->part.level.level), map->part.level.layer);
        for (int i = 0; i < 3; i++) {
            value = mix(value, map->part.level.offset[i]);
        }
    }
    return value | 1;
}

static void note(const struct seep_capture_start *from,
                 const struct seep_cuda_array_map *map)
{
    struct seep_cuda_leave leave;

    if (map->operation == SEEP_CUDA_ARRAY_UNMAP) {
        leave = seep_cuda_ledger_leave(SEEP_CUDA_PART, value_of(map));
        seep_cuda_ledger_settle(&leave, true);
        return;
    }
    atomic_store_explicit(&are_used, true, memory_order_relaxed);
    seep_cuda_ledger_add(from, &(struct seep_cuda_block){
                                   .kind = SEEP_CUDA_PART,
                                   .space = SEEP_SPACE_DEVICE,
                                   .device = -1,
                                   .silent = true,
                                   .value = value_of(map),
                                   .context = map->array,
                                   .holder = map->handle,
                                   .holder_kind = SEEP_CUDA_HANDLE,
                               });
}

uint32_t seep_cuda_sparse_mark(void)
{
    return atomic_load_explicit(&are_used, memory_order_relaxed)
               ? seep_cuda_ledger_mark()
               : 0;
}

void seep_cuda_sparse_gone(uint32_t mark, const void *array)
{
    if (atomic_load_explicit(&are_used, memory_order_relaxed)) {
        seep_cuda_ledger_context_gone(mark, array);
    }
}

/* What is unmapped is let go behind the call: it may be any number of parts,
 * and whoever is given one of them anew waits for this caller. */
int seep_cuda_cuMemMapArrayAsync(struct seep_cuda_array_map *list,
                                 unsigned int count, void *stream)
{
    int (*real)(struct seep_cuda_array_map *, unsigned int, void *) =
        SEEP_CUDA_REAL(cuMemMapArrayAsync);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(list, count, stream);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        for (unsigned int i = 0; i < count; i++) {
            note(&start, &list[i]);
        }
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemMapArrayAsync);

int seep_cuda_cuMemMapArrayAsync_ptsz(struct seep_cuda_array_map *list,
                                      unsigned int count, void *stream)
{
    int (*real)(struct seep_cuda_array_map *, unsigned int, void *) =
        SEEP_CUDA_REAL(cuMemMapArrayAsync_ptsz);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(list, count, stream);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        for (unsigned int i = 0; i < count; i++) {
            note(&start, &list[i]);
        }
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemMapArrayAsync_ptsz);
