/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Which loaded object an address belongs to, asked from inside a hook.
 *
 * By _dl_find_object where the loader has it (glibc 2.35, found by dlsym at
 * start, lock-free), else from a snapshot taken at start and at times when
 * that is safe. Never takes the loader's lock after seep_objects_init().
 *
 * Invariant: what a caller gets is valid while the object is loaded; code that
 * is on the calling thread's stack cannot be unloaded by a correct program.
 * What is kept longer is tied to seep_objects_epoch().
 */
#ifndef SEEP_CAPTURE_OBJECTS_H
#define SEEP_CAPTURE_OBJECTS_H

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seep_object {
    uintptr_t start;  /* first mapped address */
    uintptr_t end;    /* first address behind it */
    uintptr_t bias;   /* load address: address - bias = file address */
    const char *path; /* "" for the program itself: see /proc/self/exe */
    const void *eh_frame_hdr; /* NULL: none */
    const uint8_t *build_id;  /* NULL: none */
    size_t build_id_bytes;
};

/** Take the first snapshot; from the constructor only. */
void seep_objects_init(void);

/** Find the object of @address. @return true if there is one */
bool seep_objects_find(uintptr_t address, struct seep_object *ret_object);

/** Generation in the upper 48 bits, dlcloses under way in the lower 16. */
extern _Atomic uint64_t seep_objects_unloads
    __attribute__((visibility("hidden")));

#define SEEP_UNLOADS_ACTIVE UINT64_C(0xffff)
#define SEEP_UNLOADS_GENERATION (SEEP_UNLOADS_ACTIVE + 1)

/** Bumped before and after every dlclose: odd while one is under way. */
static inline uint64_t seep_objects_epoch(void)
{
    /* Acquire: pairs with the release in seep_objects_unload_end(), so that
     * what is found after it is found in the objects that are left. */
    uint64_t state =
        atomic_load_explicit(&seep_objects_unloads, memory_order_acquire);

    return (state / SEEP_UNLOADS_GENERATION) << 1 |
           ((state & SEEP_UNLOADS_ACTIVE) != 0);
}

/** Is the epoch that of @generation, with no dlclose under way? */
static inline bool seep_objects_are(uint64_t generation)
{
    /* Acquire: pairs with the release in seep_objects_unload_end(). */
    return atomic_load_explicit(&seep_objects_unloads, memory_order_acquire) ==
           generation * SEEP_UNLOADS_GENERATION;
}

/** Around the real dlclose, from its hook. */
void seep_objects_unload_begin(void);
void seep_objects_unload_end(void);

/**
 * What dl_iterate_phdr answers, from the snapshot and without the loader's
 * lock; for libunwind's walks while a capture of this thread is under way.
 */
int seep_objects_iterate(int (*callback)(struct dl_phdr_info *, size_t, void *),
                         void *data);

/** True while this thread's capture must be served by the call above. */
bool seep_objects_serves_this_thread(void);

#endif
