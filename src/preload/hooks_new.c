/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * operator new and delete.
 *
 * Each is forwarded to the next definition in scope, so the program's own and
 * the allocator's own stay in force, with their new_handler and exceptions.
 *
 * Invariant: counted here only where the next definition is the allocator's
 * own (jemalloc's, tcmalloc's): that of the C++ runtime calls malloc, and is
 * counted there.
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

static bool counts;

void seep_new_init(void)
{
    counts = seep_real_new_is_allocators();
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

#define ALLOCATED(block, size)                                      \
    do {                                                            \
        if (seep_unlikely(counts) &&                                \
            seep_unlikely(!seep_track_passes(block, size))) {       \
            struct seep_capture_start start = SEEP_CAPTURE_START(); \
                                                                    \
            seep_track_allocated(&start, block, size);              \
        }                                                           \
    } while (0)

/* A new of this name: @real with its arguments, else malloc's family. */
#define DEFINE_NEW(name, parameters, real_arguments, otherwise) \
    void *name parameters                                       \
    {                                                           \
        void *block;                                            \
                                                                \
        if (!FIND(name)) {                                      \
            return otherwise;                                   \
        }                                                       \
        block = seep_real.name real_arguments;                  \
        ALLOCATED(block, size);                                 \
        return block;                                           \
    }

DEFINE_NEW(_Znwm, (size_t size), (size), malloc(size))
DEFINE_NEW(_Znam, (size_t size), (size), malloc(size))
DEFINE_NEW(_ZnwmRKSt9nothrow_t, (size_t size, const void *tag), (size, tag),
           malloc(size))
DEFINE_NEW(_ZnamRKSt9nothrow_t, (size_t size, const void *tag), (size, tag),
           malloc(size))
DEFINE_NEW(_ZnwmSt11align_val_t, (size_t size, size_t alignment),
           (size, alignment), memalign(alignment, size))
DEFINE_NEW(_ZnamSt11align_val_t, (size_t size, size_t alignment),
           (size, alignment), memalign(alignment, size))
DEFINE_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t,
           (size_t size, size_t alignment, const void *tag),
           (size, alignment, tag), memalign(alignment, size))
DEFINE_NEW(_ZnamSt11align_val_tRKSt9nothrow_t,
           (size_t size, size_t alignment, const void *tag),
           (size, alignment, tag), memalign(alignment, size))

#define DEFINE_DELETE(name, parameters, real_arguments)  \
    void name parameters                                 \
    {                                                    \
        if (!FIND(name)) {                               \
            free(block);                                 \
            return;                                      \
        }                                                \
        if (seep_unlikely(counts) &&                     \
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
