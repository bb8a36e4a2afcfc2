/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * malloc and kin.
 *
 * Invariant: arguments, results and errno are those of the next definition.
 * An allocation is recorded after the real call, a free before it, so that the
 * events of one address are in the order in which they happened.
 *
 * seep_real.malloc is NULL until everything is looked up; until then calls go
 * to the arena, and nothing that a relocation fills is read.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "cuda/resolve.h"
#include "preload/hooks.h"
#include "preload/real.h"
#include "preload/track.h"
#include "preload/twins.h"
#include "record/sampler.h"

/* The head of a block that glibc's malloc has mapped by itself: the bytes of
 * its pages, and this bit. Only a realloc makes one smaller than the least. */
#define HEAD_PAGE_BYTES 4096U
#define HEAD_BYTES 16U
#define HEAD_IS_MAPPED 2U
#define MAPPED_LEAST_BYTES (128U << 10)

/* True when the real functions are there. */
SEEP_INLINE bool is_ready(void)
{
    return seep_likely(seep_real.malloc != NULL) || seep_real_resolve();
}

/* In line in the hooks: the stack begins at the caller of each. */
SEEP_INLINE void record_allocated(const void *block, size_t size)
{
    if (seep_unlikely(block == NULL || !seep_track_passes(block, size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_track_allocated(&start, block, size);
    }
}

/* The same of malloc and calloc: what a limit refused only because of us is
 * tried once more. */
static SEEP_NOINLINE void *look_at(const struct seep_capture_start *start,
                                   void *block, size_t size, bool is_cleared)
{
    if (block != NULL) {
        seep_track_allocated(start, block, size);
    } else if (seep_track_refused(start, size)) {
        block = is_cleared ? seep_real.calloc(1, size) : seep_real.malloc(size);
    }
    return block;
}

SEEP_INLINE void *recorded(void *block, size_t size, bool is_cleared)
{
    if (seep_unlikely(block == NULL || !seep_track_passes(block, size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        block = look_at(&start, block, size, is_cleared);
    }
    return block;
}

SEEP_INLINE void record_freed(const void *block)
{
    if (seep_unlikely(!seep_track_ignores(block))) {
        seep_track_freed(block);
    }
}

SEEP_COLD static void *arena_allocate(size_t alignment, size_t size_bytes)
{
    void *block = seep_bootstrap_allocate(alignment, size_bytes);

    if (block == NULL) {
        seep_real_set_errno(ENOMEM);
    }
    return block;
}

/* In place of a function of this file: whose address, as that of all that
 * another library may have too, is filled by a relocation. */
SEEP_COLD static void *allocate_anywhere(size_t alignment, size_t size_bytes)
{
    if (!seep_real_resolve()) {
        return arena_allocate(alignment, size_bytes);
    }
    return alignment == 0 ? malloc(size_bytes)
                          : memalign(alignment, size_bytes);
}

void *malloc(size_t size)
{
    void *block;

    if (!is_ready()) {
        return arena_allocate(0, size);
    }
    block = seep_real.malloc(size);
    return recorded(block, size, false);
}

void *calloc(size_t count, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(count, size, &total)) {
        total = SIZE_MAX; /* refused too */
    }
    if (!is_ready()) {
        return arena_allocate(0, total);
    }
    return recorded(seep_real.calloc(count, size), total, true);
}

/* A twin goes back to where it came from. What is of the first moments stays:
 * nobody else knows it. */
SEEP_COLD static void free_of_arena(const void *block)
{
    if (seep_twins_own(block)) {
        record_freed(block);
        seep_twins_free(block);
    }
}

SEEP_COLD static void free_anywhere(void *block)
{
    if (seep_real_resolve()) {
        free(block);
    } else {
        free_of_arena(block);
    }
}

/* memcpy() is behind a relocation. */
static void copy(volatile char *to, const char *from, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        to[i] = from[i];
    }
}

/* A block of the arena moves out at its first realloc. */
SEEP_COLD static void *leave_arena(void *block, size_t size)
{
    size_t old = seep_arena_size(block);
    void *moved = allocate_anywhere(0, size);

    if (moved != NULL) {
        copy(moved, block, old < size ? old : size);
        free_of_arena(block);
    }
    return moved;
}

/*
 * The bytes that a block takes after a realloc. glibc leaves a block that it
 * mapped by itself where it is, however little of it is asked for, and that
 * keeps whole pages: twenty bytes of a former mebibyte are a page. The head
 * before it says so.
 *
 * The head is read in the page of the block itself, and only where that page
 * has a byte of it: hardened allocators keep a block of no bytes in a page that
 * nobody may read. The same word of another allocator's page is no head, and
 * its malloc_usable_size() tells another size.
 */
SEEP_INLINE size_t size_left(void *block, size_t size)
{
    size_t head;
    size_t left;

    if (seep_likely((uintptr_t)block % HEAD_PAGE_BYTES != HEAD_BYTES ||
                    size == 0 || size >= MAPPED_LEAST_BYTES)) {
        return size;
    }
    head = ((const size_t *)block)[-1];
    if (head % HEAD_PAGE_BYTES != HEAD_IS_MAPPED) {
        return size;
    }
    left = seep_real.malloc_usable_size(block);
    return left > size && left + HEAD_BYTES + HEAD_IS_MAPPED == head ? left
                                                                     : size;
}

SEEP_INLINE void *change_size(void *block, size_t size)
{
    struct seep_track_out out = {false, 0};
    void *moved;

    if (!is_ready()) {
        return block == NULL ? arena_allocate(0, size)
                             : leave_arena(block, size);
    }
    if (seep_unlikely(seep_arena_owns(block))) {
        return leave_arena(block, size);
    }
    if (seep_unlikely(!seep_track_ignores(block))) {
        out = seep_track_realloc_out(block);
    }
    moved = seep_real.realloc(block, size);
    if (seep_unlikely(moved == NULL) && size != 0 &&
        seep_limits_give_way(size)) {
        moved = seep_real.realloc(block, size);
    }
    if (seep_unlikely(moved == NULL)) {
        /* NULL for size 0 is glibc's way to say that it has freed. */
        if (size != 0) {
            seep_track_realloc_failed(block, out);
            record_allocated(NULL, size);
        }
        return NULL;
    }
    record_allocated(moved, size_left(moved, size));
    return moved;
}

void *realloc(void *block, size_t size)
{
    return change_size(block, size);
}

/* Not forwarded where we are in front: glibc's calls realloc, which is ours,
 * and would count twice; an allocator's own does nothing else than this.
 * Not tested: a C library without it (glibc before 2.26). */
void *reallocarray(void *block, size_t count, size_t size)
{
    size_t total;

    if (seep_unlikely(seep_real_is_behind) && seep_real.reallocarray != NULL) {
        return seep_real.reallocarray(block, count, size);
    }
    if (__builtin_mul_overflow(count, size, &total)) {
        seep_real_set_errno(ENOMEM);
        return NULL;
    }
    return change_size(block, total);
}

void free(void *block)
{
    if (seep_unlikely(!is_ready() || seep_arena_owns(block))) {
        free_of_arena(block);
        return;
    }
    record_freed(block);
    seep_real.free(block);
}

/*
 * What not every libc has: glibc 2.26 took cfree() away but from programs of
 * before, and has the two of C23 since 2.43. A dlsym() finds them where it did
 * without us, and then gets ours: another object's may be given a block of the
 * arena, and is not seen. Who is bound to them gets ours in any case, also by a
 * weak reference that would be NULL without us: then they do what free() does.
 */

static void own_cfree(void *block)
{
    free_anywhere(block);
}

static void own_free_sized(void *block, size_t size)
{
    if (seep_real.free_sized == NULL || seep_arena_owns(block)) {
        free_anywhere(block);
        return;
    }
    record_freed(block);
    seep_real.free_sized(block, size);
}

static void own_free_aligned_sized(void *block, size_t alignment, size_t size)
{
    if (seep_real.free_aligned_sized == NULL || seep_arena_owns(block)) {
        free_anywhere(block);
        return;
    }
    record_freed(block);
    seep_real.free_aligned_sized(block, alignment, size);
}

#if defined(__x86_64__)
SEEP_EXPORT_AS(own_cfree, cfree, "GLIBC_2.2.5", cfree_old);
#else
SEEP_EXPORT_AS(own_cfree, cfree, "GLIBC_2.17", cfree_old);
#endif
SEEP_EXPORT_AS(own_free_sized, free_sized, "GLIBC_2.43", free_sized_new);
SEEP_EXPORT_AS(own_free_aligned_sized, free_aligned_sized, "GLIBC_2.43",
               free_aligned_sized_new);
SEEP_EXPORT_AS(own_cfree, cfree, "SEEP_CUDA", cfree);
SEEP_EXPORT_AS(own_free_sized, free_sized, "SEEP_CUDA", free_sized);
SEEP_EXPORT_AS(own_free_aligned_sized, free_aligned_sized, "SEEP_CUDA",
               free_aligned_sized);

void seep_malloc_answer(void)
{
    seep_cuda_answer_for("cfree", (uintptr_t)own_cfree,
                         (uintptr_t)seep_real.cfree);
    seep_cuda_answer_for("free_sized", (uintptr_t)own_free_sized,
                         (uintptr_t)seep_real.free_sized);
    seep_cuda_answer_for("free_aligned_sized",
                         (uintptr_t)own_free_aligned_sized,
                         (uintptr_t)seep_real.free_aligned_sized);
}

SEEP_COLD static int arena_memalign(void **ret_block, size_t alignment,
                                    size_t size)
{
    void *block;

    if (alignment % sizeof(void *) != 0 || alignment == 0 ||
        (alignment & (alignment - 1)) != 0) {
        return EINVAL;
    }
    block = seep_bootstrap_allocate(alignment, size);
    if (block == NULL) {
        return ENOMEM;
    }
    *ret_block = block;
    return 0;
}

int posix_memalign(void **ret_block, size_t alignment, size_t size)
{
    int result;

    if (!is_ready()) {
        return arena_memalign(ret_block, alignment, size);
    }
    result = seep_real.posix_memalign(ret_block, alignment, size);
    if (seep_unlikely(result == ENOMEM) &&
        seep_limits_give_way(size + alignment)) {
        result = seep_real.posix_memalign(ret_block, alignment, size);
    }
    if (result != EINVAL) {
        record_allocated(result == 0 ? *ret_block : NULL, size);
    }
    return result;
}

#define DEFINE_ALIGNED(name, parameters, arguments, alignment)            \
    void *name parameters                                                 \
    {                                                                     \
        void *block;                                                      \
                                                                          \
        if (!is_ready()) {                                                \
            return arena_allocate(alignment, size);                       \
        }                                                                 \
        block = seep_real.name arguments;                                 \
        if (seep_unlikely(block == NULL) && seep_limits_give_way(size)) { \
            block = seep_real.name arguments;                             \
        }                                                                 \
        if (block != NULL || errno != EINVAL) {                           \
            record_allocated(block, size);                                \
        }                                                                 \
        return block;                                                     \
    }

DEFINE_ALIGNED(aligned_alloc, (size_t alignment, size_t size),
               (alignment, size), alignment)
DEFINE_ALIGNED(memalign, (size_t alignment, size_t size), (alignment, size),
               alignment)
/* Not tested: EINVAL. Nobody says that of a page, a power of two. */
DEFINE_ALIGNED(valloc, (size_t size), (size), SEEP_PAGE_BYTES)

void *pvalloc(size_t size)
{
    void *block;

    /* Not tested: a C library without it. */
    if (!is_ready() || seep_real.pvalloc == NULL) {
        size_t whole =
            (size + SEEP_PAGE_BYTES - 1) & ~(size_t)(SEEP_PAGE_BYTES - 1);

        return allocate_anywhere(SEEP_PAGE_BYTES,
                                 whole < size ? SIZE_MAX : whole);
    }
    block = seep_real.pvalloc(size);
    record_allocated(block, size);
    return block;
}

size_t malloc_usable_size(void *block)
{
    if (!is_ready() || seep_arena_owns(block)) {
        return block == NULL ? 0 : seep_arena_size(block);
    }
    return seep_real.malloc_usable_size(block);
}

/*
 * operator new and delete.
 *
 * Each is forwarded to the next definition in scope, so the program's own and
 * the allocator's own stay in force, with their new_handler and exceptions.
 *
 * Invariant: counted here only where the next definition is the allocator's
 * own (jemalloc's, tcmalloc's) and does not come back through malloc's hooks:
 * that of the C++ runtime calls malloc, and is counted there. A free that is
 * recorded twice, here and there, is one free and one of an unknown block.
 *
 * The C++ runtime may come later than we do, and not into the global scope:
 * what was not found at start is looked for at the first call.
 */

/* Of each operator new: what stands for it where there is none, what it is
 * probed with, and the delete for that. */
#define NEWS(X)                                                                \
    X(_Znwm, (size_t size), (size), allocate_anywhere(0, size), (16), _ZdlPv)  \
    X(_Znam, (size_t size), (size), allocate_anywhere(0, size), (16), _ZdaPv)  \
    X(_ZnwmRKSt9nothrow_t, (size_t size, const void *tag), (size, tag),        \
      allocate_anywhere(0, size), (16, &tag), _ZdlPv)                          \
    X(_ZnamRKSt9nothrow_t, (size_t size, const void *tag), (size, tag),        \
      allocate_anywhere(0, size), (16, &tag), _ZdaPv)                          \
    X(_ZnwmSt11align_val_t, (size_t size, size_t alignment),                   \
      (size, alignment), allocate_anywhere(alignment, size), (64, 64), _ZdlPv) \
    X(_ZnamSt11align_val_t, (size_t size, size_t alignment),                   \
      (size, alignment), allocate_anywhere(alignment, size), (64, 64), _ZdaPv) \
    X(_ZnwmSt11align_val_tRKSt9nothrow_t,                                      \
      (size_t size, size_t alignment, const void *tag),                        \
      (size, alignment, tag), allocate_anywhere(alignment, size),              \
      (64, 64, &tag), _ZdlPv)                                                  \
    X(_ZnamSt11align_val_tRKSt9nothrow_t,                                      \
      (size_t size, size_t alignment, const void *tag),                        \
      (size, alignment, tag), allocate_anywhere(alignment, size),              \
      (64, 64, &tag), _ZdaPv)

static struct {
#define COUNTS(name, ...) bool name;
    NEWS(COUNTS)
#undef COUNTS
} counts;
static bool counts_frees;

/* Does the allocator's own operator new come back through one of malloc's
 * hooks (jemalloc's aligned ones do)? Then it is counted there. One that no
 * delete is found for is not tried, and not counted. */
#define PROBE(name, parameters, arguments, otherwise, probe, release)    \
    if (seep_real.name != NULL && seep_real.release != NULL) {           \
        seep_thread.countdown_bytes = SEEP_SAMPLER_NEVER;                \
        seep_real.release(seep_real.name probe);                         \
        counts.name = seep_thread.countdown_bytes == SEEP_SAMPLER_NEVER; \
    }

void seep_new_init(void)
{
    static const char tag = 0;

    counts_frees = seep_real_new_is_allocators();
    if (counts_frees) {
        /* Not tested: that _Znwm is missing, which is the allocator's here. */
        NEWS(PROBE)
    }
}

/* The address of a hooked name's pointer as data, to fill it. */
#define FIND(name)                          \
    (seep_likely(seep_real.name != NULL) || \
     find(#name, &seep_real.name, sizeof(seep_real.name)))

SEEP_COLD static bool find(const char *name, void *pointer, size_t size)
{
    void *symbol;

    if (!seep_real_resolve()) {
        return false;
    }
    memcpy(&symbol, pointer, size);
    if (symbol == NULL) { /* Not tested: another thread was faster. */
        symbol = seep_real_find_cxx(name);
        memcpy(pointer, &symbol, size);
    }
    return symbol != NULL;
}

#define DEFINE_NEW(name, parameters, arguments, otherwise, probe, release) \
    void *name parameters                                                  \
    {                                                                      \
        void *block;                                                       \
                                                                           \
        if (!FIND(name)) {                                                 \
            return otherwise;                                              \
        }                                                                  \
        block = seep_real.name arguments;                                  \
        if (seep_unlikely(counts.name)) {                                  \
            record_allocated(block, size);                                 \
        }                                                                  \
        return block;                                                      \
    }
NEWS(DEFINE_NEW)

#define DEFINE_DELETE(name, parameters, real_arguments) \
    void name parameters                                \
    {                                                   \
        if (!FIND(name)) {                              \
            free_anywhere(block);                       \
            return;                                     \
        }                                               \
        if (seep_unlikely(counts_frees)) {              \
            record_freed(block);                        \
        }                                               \
        seep_real.name real_arguments;                  \
    }

DEFINE_DELETE(_ZdlPv, (void *block), (block))
DEFINE_DELETE(_ZdaPv, (void *block), (block))
DEFINE_DELETE(_ZdlPvm, (void *block, size_t size), (block, size))
DEFINE_DELETE(_ZdaPvm, (void *block, size_t size), (block, size))
DEFINE_DELETE(_ZdlPvRKSt9nothrow_t, (void *block, const void *tag),
              (block, tag))
DEFINE_DELETE(_ZdaPvRKSt9nothrow_t, (void *block, const void *tag),
              (block, tag))
DEFINE_DELETE(_ZdlPvSt11align_val_t, (void *block, size_t alignment),
              (block, alignment))
DEFINE_DELETE(_ZdaPvSt11align_val_t, (void *block, size_t alignment),
              (block, alignment))
DEFINE_DELETE(_ZdlPvmSt11align_val_t,
              (void *block, size_t size, size_t alignment),
              (block, size, alignment))
DEFINE_DELETE(_ZdaPvmSt11align_val_t,
              (void *block, size_t size, size_t alignment),
              (block, size, alignment))
DEFINE_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t,
              (void *block, size_t alignment, const void *tag),
              (block, alignment, tag))
DEFINE_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t,
              (void *block, size_t alignment, const void *tag),
              (block, alignment, tag))
