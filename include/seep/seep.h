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
 * changes errno or dlerror(), and a signal handler may call it. What is said
 * before the preload's own constructor has run, by that of a library that the
 * program is linked with, is forgotten.
 *
 * How: the preload exports the four names. They are bound weakly; where a
 * linker has put an end to that (a program at a fixed address), or the preload
 * is beside a static part, a constructor asks dlsym(), once for each program
 * or library that has this file in it.
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
    /* That the process asked for and holds in memory of the host; a report adds
     * what the allocator rounds them up to. */
    uint64_t live_bytes;
    /* How fast they grow over the settled part of the run. NaN: not known yet.
     * It has no interval: no verdict, but cheap. */
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
    __attribute__((weak, visibility("default")));
extern void seep_preload_progress(uint64_t units) __asm__("seep_progress")
    __attribute__((weak, visibility("default")));
extern void seep_preload_label(const char *key,
                               const char *value) __asm__("seep_label")
    __attribute__((weak, visibility("default")));
extern int seep_preload_stats(struct seep_stats *stats) __asm__("seep_stats")
    __attribute__((weak, visibility("default")));
/* A weakref leaves the program's own references as strong as they are: one to
 * dlsym() in the same file still brings it in where a program is static. */
static void *seep_header_dlsym(void *handle, const char *name)
    __attribute__((weakref("dlsym")));
static char *seep_header_dlerror(void) __attribute__((weakref("dlerror")));

enum seep_header_call {
    SEEP_HEADER_MARK,
    SEEP_HEADER_PROGRESS,
    SEEP_HEADER_LABEL,
    SEEP_HEADER_STATS,
    SEEP_HEADER_CALLS
};

/* One for all files of a program or library. What was found, by call; the
 * table itself, if that was nothing; NULL: nobody has looked yet. */
extern void *seep_header_found[SEEP_HEADER_CALLS];
__attribute__((
    weak, visibility("hidden"))) void *seep_header_found[SEEP_HEADER_CALLS];

static inline void seep_header_look_up(void)
{
    static const char *const names[] = {"seep_mark", "seep_progress",
                                        "seep_label", "seep_stats"};
    void *nothing = seep_header_found;
    int is_there = &seep_header_dlsym != NULL;

    for (int i = 0; i < SEEP_HEADER_CALLS; i++) {
        void *found = NULL;

        if (is_there) {
            found = seep_header_dlsym(NULL, names[i]); /* NULL: RTLD_DEFAULT */
        }
        if (is_there && found == NULL) {
            is_there = 0; /* all, or none */
            if (&seep_header_dlerror != NULL) {
                (void)seep_header_dlerror(); /* ours: not the program's */
            }
        }
        found = found != NULL ? found : nothing;
        /* atomic exception: C++ has no <stdatomic.h>; a pointer, and nothing
         * that it leads to was written by who found it. */
        __atomic_store_n(&seep_header_found[i], found, __ATOMIC_RELAXED);
    }
}

/* Now, and not in the first call: a look-up that fails changes what dlerror()
 * says, and the program may be about to ask that. */
__attribute__((constructor)) static void seep_header_begin(void)
{
    /* atomic exception: as above */
    if (&seep_preload_mark == NULL &&
        __atomic_load_n(&seep_header_found[0], __ATOMIC_RELAXED) == NULL) {
        seep_header_look_up();
    }
}

static inline void *seep_header_find(enum seep_header_call call)
{
    /* atomic exception: as above */
    void *found = __atomic_load_n(&seep_header_found[call], __ATOMIC_RELAXED);
    void *nothing = seep_header_found;

    if (found == NULL) { /* a constructor that came before ours */
        seep_header_look_up();
        /* atomic exception: as above */
        found = __atomic_load_n(&seep_header_found[call], __ATOMIC_RELAXED);
    }
    return found == nothing ? NULL : found;
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
    void (*call)(const char *) = &seep_preload_mark;

    if (call == NULL) {
        void *found = seep_header_find(SEEP_HEADER_MARK);

        __builtin_memcpy(&call, &found, sizeof(call));
    }
    if (call != NULL) {
        call(name);
    }
}

/** @units of work were done: requests, batches, steps. */
static inline void seep_progress(uint64_t units)
{
    void (*call)(uint64_t) = &seep_preload_progress;

    if (call == NULL) {
        void *found = seep_header_find(SEEP_HEADER_PROGRESS);

        __builtin_memcpy(&call, &found, sizeof(call));
    }
    if (call != NULL) {
        call(units);
    }
}

/** From here on the process's label @key is @value, whatever it was. */
static inline void seep_label(const char *key, const char *value)
{
    void (*call)(const char *, const char *) = &seep_preload_label;

    if (call == NULL) {
        void *found = seep_header_find(SEEP_HEADER_LABEL);

        __builtin_memcpy(&call, &found, sizeof(call));
    }
    if (call != NULL) {
        call(key, value);
    }
}

/** @return 0, or -1: the process is not recorded, and @ret_stats untouched */
static inline int seep_stats(struct seep_stats *ret_stats)
{
    int (*call)(struct seep_stats *) = &seep_preload_stats;

    if (call == NULL) {
        void *found = seep_header_find(SEEP_HEADER_STATS);

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
