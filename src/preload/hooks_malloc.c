/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * malloc and kin.
 *
 * Invariant: arguments, results and errno are those of the next definition.
 * An allocation is told after the real call, a free before it, so that the
 * events of one address are in the order in which they happened.
 *
 * seep_real.malloc is NULL until everything is looked up; until then calls go
 * to the arena, and nothing that a relocation fills is read.
 */
#include <errno.h>
#include <string.h>

#include "preload/bootstrap.h"
#include "preload/hooks.h"
#include "preload/real.h"
#include "preload/track.h"

/* True when the real functions are there. */
SEEP_INLINE bool is_ready(void)
{
    return seep_likely(seep_real.malloc != NULL) || seep_real_resolve();
}

SEEP_COLD static void *arena_allocate(size_t alignment, size_t size_bytes)
{
    void *block = seep_bootstrap_allocate(alignment, size_bytes);

    if (block == NULL) {
        errno = ENOMEM;
    }
    return block;
}

void *malloc(size_t size)
{
    void *block;

    if (!is_ready()) {
        return arena_allocate(0, size);
    }
    block = seep_real.malloc(size);
    if (seep_unlikely(!seep_track_passes(block, size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_track_allocated(&start, block, size);
    }
    return block;
}

void *calloc(size_t count, size_t size)
{
    void *block;

    if (!is_ready()) {
        size_t total;

        if (__builtin_mul_overflow(count, size, &total)) {
            errno = ENOMEM;
            return NULL;
        }
        return arena_allocate(0, total);
    }
    block = seep_real.calloc(count, size);
    /* It succeeded, so the product does not overflow. */
    if (seep_unlikely(!seep_track_passes(block, count * size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_track_allocated(&start, block, count * size);
    }
    return block;
}

/* A block of the arena moves out at its first realloc. */
SEEP_COLD static void *leave_arena(void *block, size_t size)
{
    size_t old = seep_bootstrap_size(block);
    void *moved = malloc(size);

    if (moved != NULL) {
        memcpy(moved, block, old < size ? old : size);
    }
    return moved;
}

/* In line in the two hooks below: the stack begins at the caller of each. */
SEEP_INLINE void *change_size(void *block, size_t size)
{
    struct seep_track_out out = {false, 0};
    void *moved;

    if (!is_ready()) {
        return block == NULL ? arena_allocate(0, size)
                             : leave_arena(block, size);
    }
    if (seep_unlikely(seep_bootstrap_owns(block))) {
        return leave_arena(block, size);
    }
    if (seep_unlikely(!seep_track_ignores(block))) {
        out = seep_track_realloc_out(block);
    }
    moved = seep_real.realloc(block, size);
    if (seep_unlikely(moved == NULL)) {
        /* NULL for size 0 is glibc's way to say that it has freed. */
        if (size != 0) {
            seep_track_realloc_failed(block, out);
        }
        return NULL;
    }
    if (seep_unlikely(!seep_track_passes(moved, size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_track_allocated(&start, moved, size);
    }
    return moved;
}

void *realloc(void *block, size_t size)
{
    return change_size(block, size);
}

/* Not forwarded where we are in front: glibc's calls realloc, which is ours,
 * and would count twice; an allocator's own does nothing else than this. */
void *reallocarray(void *block, size_t count, size_t size)
{
    size_t total;

    if (seep_unlikely(seep_real_is_behind) && seep_real.reallocarray != NULL) {
        return seep_real.reallocarray(block, count, size);
    }
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    return change_size(block, total);
}

void free(void *block)
{
    if (seep_unlikely(!is_ready() || seep_bootstrap_owns(block))) {
        return; /* blocks of the arena stay: nobody else knows them */
    }
    if (seep_unlikely(!seep_track_ignores(block))) {
        seep_track_freed(block);
    }
    seep_real.free(block);
}

void cfree(void *block)
{
    free(block);
}

void free_sized(void *block, size_t size)
{
    if (seep_real.free_sized == NULL || !is_ready() ||
        seep_bootstrap_owns(block)) {
        free(block);
        return;
    }
    if (seep_unlikely(!seep_track_ignores(block))) {
        seep_track_freed(block);
    }
    seep_real.free_sized(block, size);
}

void free_aligned_sized(void *block, size_t alignment, size_t size)
{
    if (seep_real.free_aligned_sized == NULL || !is_ready() ||
        seep_bootstrap_owns(block)) {
        free(block);
        return;
    }
    if (seep_unlikely(!seep_track_ignores(block))) {
        seep_track_freed(block);
    }
    seep_real.free_aligned_sized(block, alignment, size);
}

int posix_memalign(void **ret_block, size_t alignment, size_t size)
{
    int result;

    if (!is_ready()) {
        void *block = seep_bootstrap_allocate(alignment, size);

        if (block == NULL) {
            return ENOMEM;
        }
        *ret_block = block;
        return 0;
    }
    result = seep_real.posix_memalign(ret_block, alignment, size);
    if (seep_likely(result == 0) &&
        seep_unlikely(!seep_track_passes(*ret_block, size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_track_allocated(&start, *ret_block, size);
    }
    return result;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    void *block;

    if (!is_ready()) {
        return arena_allocate(alignment, size);
    }
    block = seep_real.aligned_alloc(alignment, size);
    if (seep_unlikely(!seep_track_passes(block, size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_track_allocated(&start, block, size);
    }
    return block;
}

void *memalign(size_t alignment, size_t size)
{
    void *block;

    if (!is_ready()) {
        return arena_allocate(alignment, size);
    }
    block = seep_real.memalign(alignment, size);
    if (seep_unlikely(!seep_track_passes(block, size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_track_allocated(&start, block, size);
    }
    return block;
}

void *valloc(size_t size)
{
    void *block;

    if (!is_ready()) {
        return arena_allocate(SEEP_PAGE_BYTES, size);
    }
    block = seep_real.valloc(size);
    if (seep_unlikely(!seep_track_passes(block, size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_track_allocated(&start, block, size);
    }
    return block;
}

void *pvalloc(size_t size)
{
    void *block;

    if (!is_ready() || seep_real.pvalloc == NULL) {
        size_t whole =
            (size + SEEP_PAGE_BYTES - 1) & ~(size_t)(SEEP_PAGE_BYTES - 1);

        return is_ready() ? valloc(whole)
                          : arena_allocate(SEEP_PAGE_BYTES, whole);
    }
    block = seep_real.pvalloc(size);
    if (seep_unlikely(!seep_track_passes(block, size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_track_allocated(&start, block, size);
    }
    return block;
}

size_t malloc_usable_size(void *block)
{
    if (!is_ready() || seep_bootstrap_owns(block)) {
        return block == NULL ? 0 : seep_bootstrap_size(block);
    }
    return seep_real.malloc_usable_size(block);
}
