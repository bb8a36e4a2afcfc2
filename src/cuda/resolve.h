/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Which wrapper stands before which entry point of the driver, and where the
 * entry point itself is.
 *
 * Invariant: a wrapper is handed out only once its real target is known, and
 * only to a caller who would have got that target, or one of the same driver.
 * The driver is never loaded by us. The loader's lock is taken only by the
 * first call of a directly linked caller of whom nothing else tells the target:
 * another thread may hold it, and wait for a lock of the caller's.
 */
#ifndef SEEP_CUDA_RESOLVE_H
#define SEEP_CUDA_RESOLVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum seep_cuda_id {
#define SEEP_CUDA_HOOK(name, base, version, per_thread, parameters) \
    SEEP_CUDA_ID_##name,
#include "cuda/hooks.def"
#undef SEEP_CUDA_HOOK
    SEEP_CUDA_IDS
};

/** No such variant. */
#define SEEP_CUDA_NONE SIZE_MAX

/** The version of CUDA up to which every variant of our names is known. */
#define SEEP_CUDA_NEWEST 13000

typedef void seep_cuda_function(void);

struct seep_cuda_variant {
    const char *name;
    const char *base;
    int version;
    bool per_thread;
    seep_cuda_function *wrapper;
};

struct seep_cuda_table {
    const struct seep_cuda_variant *variants;
    _Atomic uintptr_t *real; /* 0: not known */
    size_t count;
};

extern const struct seep_cuda_table seep_cuda_table
    __attribute__((visibility("hidden")));

/** What became of look-ups, for the recording. */
enum seep_cuda_door_count {
    SEEP_CUDA_LOOKUPS,         /* of names that begin as the driver's do */
    SEEP_CUDA_SUBSTITUTIONS,   /* answered with a wrapper */
    SEEP_CUDA_UNKNOWN_VARIANT, /* newer than this library: passed on */
    SEEP_CUDA_OTHER_DRIVER,    /* a second one: passed on */
    SEEP_CUDA_DEEP_OBJECTS,    /* deep-bound ones, bound to us again */
    SEEP_CUDA_DEEP_MISSED,     /* deep-bound ones that were not looked at */
    SEEP_CUDA_DOOR_COUNTS
};

uint64_t seep_cuda_door_count(enum seep_cuda_door_count which);
void seep_cuda_door_counted(enum seep_cuda_door_count which);

/** The variant that is exported as @name. @return SEEP_CUDA_NONE if none is */
size_t seep_cuda_find_exact(const struct seep_cuda_table *table,
                            const char *name);

/** The variant that a driver gives for @base at @version with @flags. */
size_t seep_cuda_find_version(const struct seep_cuda_table *table,
                              const char *base, int version, uint64_t flags);

/**
 * A look-up of the variant @index found @target.
 *
 * @return what the caller is to get: the wrapper, or @target
 */
uintptr_t seep_cuda_substitute(const struct seep_cuda_table *table,
                               size_t index, uintptr_t target);

/** Look for what the program is linked with; from the constructor only. */
void seep_cuda_prepare(void);

/** The real target of a wrapper, looked for if it is not known. 0: none.
 * @caller: who called the wrapper; 0: nobody. */
uintptr_t seep_cuda_find_target(size_t index, uintptr_t caller);

static inline uintptr_t seep_cuda_target(enum seep_cuda_id id, uintptr_t caller)
{
    uintptr_t real =
        atomic_load_explicit(&seep_cuda_table.real[id], memory_order_relaxed);

    return __builtin_expect(real != 0, 1) ? real
                                          : seep_cuda_find_target(id, caller);
}

/**
 * A driver was found at @handle, where @found lies. One that was known may have
 * been unloaded unseen, by an object that is bound to libc's own dlclose: what
 * is left of it is forgotten first.
 */
void seep_cuda_meet_driver(void *handle, uintptr_t found);

/** Behind a dlclose: targets that went with their object are forgotten, and
 * what we ask of the driver ourselves (driver.h) with it. */
void seep_cuda_forget_unloaded(const struct seep_cuda_table *table);

#endif
