/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * operator new and delete.
 *
 * Each is forwarded to the next definition in scope, so the program's own and
 * the allocator's own stay in force, with their new_handler and exceptions.
 *
 * Invariant: counted here only where the next definition is the allocator's
 * own (jemalloc's, tcmalloc's) and does not come back through malloc's hooks:
 * that of the C++ runtime calls malloc, and is counted there. A free that is
 * told twice, here and there, is one free and one of an unknown block.
 *
 * The C++ runtime may come later than we do, and not into the global scope:
 * what was not found at start is looked for at the first call.
 */
#include <stdatomic.h>
#include <string.h>

#include "preload/hooks.h"
#include "preload/new.h"
#include "preload/real.h"
#include "preload/track.h"
#include "record/sampler.h"

/* One for each operator new, by the number of its definition below. */
static bool counts[8];
static bool counts_frees;

/* Does the allocator's own operator new come back through one of malloc's
 * hooks (jemalloc's aligned ones do)? Then it is counted there. */
#define PROBE(index, name, arguments, release)                                 \
    do {                                                                       \
        if (seep_real.name != NULL && seep_real.release != NULL) {             \
            seep_thread.countdown_bytes = SEEP_SAMPLER_NEVER;                  \
            seep_real.release(seep_real.name arguments);                       \
            counts[index] = seep_thread.countdown_bytes == SEEP_SAMPLER_NEVER; \
        }                                                                      \
    } while (0)

void seep_new_init(void)
{
    static const char tag = 0;

    counts_frees = seep_real_new_is_allocators();
    if (!counts_frees) {
        return;
    }
    PROBE(0, _Znwm, (16), _ZdlPv);
    PROBE(1, _Znam, (16), _ZdaPv);
    PROBE(2, _ZnwmRKSt9nothrow_t, (16, &tag), _ZdlPv);
    PROBE(3, _ZnamRKSt9nothrow_t, (16, &tag), _ZdaPv);
    PROBE(4, _ZnwmSt11align_val_t, (64, 64), _ZdlPv);
    PROBE(5, _ZnamSt11align_val_t, (64, 64), _ZdaPv);
    PROBE(6, _ZnwmSt11align_val_tRKSt9nothrow_t, (64, 64, &tag), _ZdlPv);
    PROBE(7, _ZnamSt11align_val_tRKSt9nothrow_t, (64, 64, &tag), _ZdaPv);
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
    if (symbol == NULL) {
        symbol = seep_real_find_cxx(name);
        memcpy(pointer, &symbol, size);
    }
    return symbol != NULL;
}

#define ALLOCATED(index, block, size)                               \
    do {                                                            \
        if (seep_unlikely(counts[index]) &&                         \
            seep_unlikely(!seep_track_passes(block, size))) {       \
            struct seep_capture_start start = SEEP_CAPTURE_START(); \
                                                                    \
            seep_track_allocated(&start, block, size);              \
        }                                                           \
    } while (0)

/* A new of this name: @real with its arguments, else malloc's family. */
#define DEFINE_NEW(index, name, parameters, real_arguments, otherwise) \
    void *name parameters                                              \
    {                                                                  \
        void *block;                                                   \
                                                                       \
        if (!FIND(name)) {                                             \
            return otherwise;                                          \
        }                                                              \
        block = seep_real.name real_arguments;                         \
        ALLOCATED(index, block, size);                                 \
        return block;                                                  \
    }

DEFINE_NEW(0, _Znwm, (size_t size), (size), malloc(size))
DEFINE_NEW(1, _Znam, (size_t size), (size), malloc(size))
DEFINE_NEW(2, _ZnwmRKSt9nothrow_t, (size_t size, const void *tag), (size, tag),
           malloc(size))
DEFINE_NEW(3, _ZnamRKSt9nothrow_t, (size_t size, const void *tag), (size, tag),
           malloc(size))
DEFINE_NEW(4, _ZnwmSt11align_val_t, (size_t size, size_t alignment),
           (size, alignment), memalign(alignment, size))
DEFINE_NEW(5, _ZnamSt11align_val_t, (size_t size, size_t alignment),
           (size, alignment), memalign(alignment, size))
DEFINE_NEW(6, _ZnwmSt11align_val_tRKSt9nothrow_t,
           (size_t size, size_t alignment, const void *tag),
           (size, alignment, tag), memalign(alignment, size))
DEFINE_NEW(7, _ZnamSt11align_val_tRKSt9nothrow_t,
           (size_t size, size_t alignment, const void *tag),
           (size, alignment, tag), memalign(alignment, size))

#define DEFINE_DELETE(name, parameters, real_arguments)  \
    void name parameters                                 \
    {                                                    \
        if (!FIND(name)) {                               \
            free(block);                                 \
            return;                                      \
        }                                                \
        if (seep_unlikely(counts_frees) &&               \
            seep_unlikely(!seep_track_ignores(block))) { \
            seep_track_freed(block);                     \
        }                                                \
        seep_real.name real_arguments;                   \
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
