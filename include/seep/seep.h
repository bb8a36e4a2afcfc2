/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * For programs that seep may record: say what you are at, and ask how you are.
 *
 * C11 and C++11, this file alone, nothing to link with. Without the preload
 * every call does nothing, at the cost of a look at a pointer.
 *
 *     seep_mark("warm-up done");            growth counts from here
 *     seep_progress(1);                     a request is done
 *     seep_label("model", "bert-13");       what `seep report --by label` has
 *     struct seep_stats stats;
 *     if (seep_stats(&stats) == 0) { ... }  live bytes, growth, headroom
 *
 * Any thread, also several at once. Nothing here allocates, waits, prints or
 * changes errno, and a signal handler may call it, but for the first call of
 * each in a source file where it could not be bound as the program was linked:
 * that one asks dlsym().
 *
 * How: the preload exports the four names. They are bound weakly; where a
 * linker has put an end to that (a program at a fixed address), or the preload
 * is beside a static part, dlsym() finds them.
 */
#ifndef SEEP_SEEP_H
#define SEEP_SEEP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SEEP_UNKNOWN UINT64_MAX

/** A process, by its own recording. What is not known is SEEP_UNKNOWN. */
struct seep_stats {
    uint64_t size_bytes; /* of this struct, by who calls; set by seep_stats() */
    uint64_t live_bytes; /* that the process holds in memory of the host */
    /* How fast they grow, by a line through the later half of the run. NaN:
     * not known yet. The report tells more truly what leaks; this is cheap. */
    double growth_bytes_per_s;
    uint64_t units;              /* that seep_progress() told */
    uint64_t rss_bytes;          /* when it was last looked at */
    uint64_t headroom_bytes;     /* to the limit of the control group */
    uint64_t device_free_bytes;  /* of the GPU that has the least left */
    uint64_t device_total_bytes; /* of that GPU */
};

#ifndef SEEP_NO_CALLS /* the preload itself needs no more than the struct */

/* The preload's, by names of our own; the functions below carry others, since
 * one name cannot be both this file's own and another's. */
extern void seep_preload_mark(const char *name) __asm__("seep_mark")
    __attribute__((weak));
extern void seep_preload_progress(uint64_t units) __asm__("seep_progress")
    __attribute__((weak));
extern void seep_preload_label(const char *key,
                               const char *value) __asm__("seep_label")
    __attribute__((weak));
extern int seep_preload_stats(struct seep_stats *stats) __asm__("seep_stats")
    __attribute__((weak));
extern void *seep_header_dlsym(void *handle, const char *name) __asm__("dlsym")
    __attribute__((weak));

/** @slot holds what was found: itself, if that was nothing. */
static inline void *seep_header_find(void **slot, const char *name)
{
    /* atomic exception: C++ has no <stdatomic.h>; a pointer, and nothing that
     * it leads to was written by who found it. */
    void *found = __atomic_load_n(slot, __ATOMIC_RELAXED);

    if (found == NULL) {
        if (&seep_header_dlsym != NULL) {
            found = seep_header_dlsym(NULL, name); /* NULL: RTLD_DEFAULT */
        }
        found = found != NULL ? found : (void *)slot;
        /* atomic exception: as above */
        __atomic_store_n(slot, found, __ATOMIC_RELAXED);
    }
    return found == (void *)slot ? NULL : found;
}

static inline void seep_mark(const char *name) __asm__("seep_header_mark");
static inline void
seep_progress(uint64_t units) __asm__("seep_header_progress");
static inline void seep_label(const char *key,
                              const char *value) __asm__("seep_header_label");
static inline int
seep_stats(struct seep_stats *ret_stats) __asm__("seep_header_stats");

/** A moment worth a name: "warm-up done", "model loaded". */
static inline void seep_mark(const char *name)
{
    static void *slot;
    void (*call)(const char *) = &seep_preload_mark;

    if (call == NULL) {
        void *found = seep_header_find(&slot, "seep_mark");

        __builtin_memcpy(&call, &found, sizeof(call));
    }
    if (call != NULL) {
        call(name);
    }
}

/** @units of work were done: requests, batches, steps. */
static inline void seep_progress(uint64_t units)
{
    static void *slot;
    void (*call)(uint64_t) = &seep_preload_progress;

    if (call == NULL) {
        void *found = seep_header_find(&slot, "seep_progress");

        __builtin_memcpy(&call, &found, sizeof(call));
    }
    if (call != NULL) {
        call(units);
    }
}

/** From here on the process's label @key is @value, whatever it was. */
static inline void seep_label(const char *key, const char *value)
{
    static void *slot;
    void (*call)(const char *, const char *) = &seep_preload_label;

    if (call == NULL) {
        void *found = seep_header_find(&slot, "seep_label");

        __builtin_memcpy(&call, &found, sizeof(call));
    }
    if (call != NULL) {
        call(key, value);
    }
}

/** @return 0, or -1: the process is not recorded, and @ret_stats untouched */
static inline int seep_stats(struct seep_stats *ret_stats)
{
    static void *slot;
    int (*call)(struct seep_stats *) = &seep_preload_stats;

    if (call == NULL) {
        void *found = seep_header_find(&slot, "seep_stats");

        __builtin_memcpy(&call, &found, sizeof(call));
    }
    ret_stats->size_bytes = sizeof(*ret_stats);
    return call != NULL ? call(ret_stats) : -1;
}

#endif

#ifdef __cplusplus
}
#endif

#endif
