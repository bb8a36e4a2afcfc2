/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A library to preload: at every malloc it captures the stack with both
 * backends and compares them frame by frame.
 *
 * Counts lie in a file, mapped shared, so that they survive any kind of end.
 * Invariant: the program behaves as without it, if slower.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "capture/eh_walk.h"
#include "capture/libunwind_walk.h"
#include "capture/native.h"
#include "capture/objects.h"

#define EXAMPLES_MAX 8U

/* What the test reads: 64-bit words, in this order. */
struct results {
    _Atomic uint64_t compared;
    _Atomic uint64_t equal;   /* the same to the end, complete */
    _Atomic uint64_t shorter; /* the same up to the walker's cut */
    _Atomic uint64_t differing;
    _Atomic uint64_t frames;
    _Atomic uint64_t cuts[16]; /* of the walker, by enum seep_cut */
    _Atomic uint64_t example_count;
    struct {
        uint64_t ours_count;
        uint64_t theirs_count;
        uint64_t cut;
        uint64_t ours[SEEP_STACK_FRAMES_MAX];
        uint64_t theirs[SEEP_STACK_FRAMES_MAX];
    } examples[EXAMPLES_MAX];
};

static __thread bool inside;
static __thread struct seep_stack_bounds bounds;
static struct results *results;
static uint64_t every = 1;
static _Atomic uint64_t calls;
static void *(*real_malloc)(size_t);
static int (*real_iterate)(int (*)(struct dl_phdr_info *, size_t, void *),
                           void *);
static int (*real_dlclose)(void *);

extern void *__libc_malloc(size_t size);

static void resolve(const char *name, void *ret_function)
{
    void *found = dlsym(RTLD_NEXT, name);

    memcpy(ret_function, &found, sizeof(found));
}

static void open_results(void)
{
    const char *pattern = getenv("SEEP_ORACLE_OUT");
    char path[512];
    int file;

    if (pattern == NULL) {
        return;
    }
    snprintf(path, sizeof(path), "%s.%d", pattern, (int)getpid());
    file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct results)) != 0) {
        return;
    }
    results = mmap(NULL, sizeof(struct results), PROT_READ | PROT_WRITE,
                   MAP_SHARED, file, 0);
    close(file);
    if (results == MAP_FAILED) {
        results = NULL;
    }
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("SEEP_ORACLE_EVERY");

    inside = true;
    resolve("malloc", &real_malloc);
    resolve("dl_iterate_phdr", &real_iterate);
    resolve("dlclose", &real_dlclose);
    every = text != NULL ? strtoull(text, NULL, 10) : 1;
    seep_objects_init();
    if (seep_libunwind_init() == 0 &&
        seep_native_init(SEEP_UNWINDER_EH_FRAME) == 0) {
        open_results();
    }
    inside = false;
}

static void add(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

static void keep_example(const uintptr_t *ours, size_t ours_count,
                         const uintptr_t *theirs, size_t theirs_count,
                         enum seep_cut cut)
{
    uint64_t index = atomic_fetch_add_explicit(&results->example_count, 1,
                                               memory_order_relaxed);

    if (index < EXAMPLES_MAX) {
        results->examples[index].ours_count = ours_count;
        results->examples[index].theirs_count = theirs_count;
        results->examples[index].cut = cut;
        memcpy(results->examples[index].ours, ours, ours_count * sizeof(*ours));
        memcpy(results->examples[index].theirs, theirs,
               theirs_count * sizeof(*theirs));
    }
}

static SEEP_NOINLINE void compare(const struct seep_capture_start *start)
{
    uintptr_t ours[SEEP_STACK_FRAMES_MAX];
    uintptr_t theirs[SEEP_STACK_FRAMES_MAX];
    struct seep_capture_end end;
    struct seep_capture_end other;
    size_t ours_count =
        seep_native_capture(start, &bounds, ours, SEEP_STACK_FRAMES_MAX, &end);
    size_t theirs_count =
        seep_libunwind_walk(start, theirs, SEEP_STACK_FRAMES_MAX, &other);
    size_t same = 0;
    enum seep_cut cut = end.cut;

    while (same < ours_count && same < theirs_count &&
           ours[same] == theirs[same]) {
        same++;
    }
    add(&results->compared, 1);
    add(&results->frames, ours_count);
    add(&results->cuts[cut], 1);
    if (same == ours_count && same == theirs_count) {
        add(&results->equal, 1);
    } else if (same == ours_count && cut != SEEP_CUT_NONE) {
        add(&results->shorter, 1);
    } else {
        add(&results->differing, 1);
        keep_example(ours, ours_count, theirs, theirs_count, cut);
    }
    if (same == ours_count && cut != SEEP_CUT_NONE && cut != SEEP_CUT_DEPTH) {
        keep_example(ours, ours_count, theirs, theirs_count, cut);
    }
}

SEEP_EXPORT void *malloc(size_t size)
{
    struct seep_capture_start start = SEEP_CAPTURE_START();
    void *block = real_malloc != NULL ? real_malloc(size) : __libc_malloc(size);

    if (!inside && results != NULL) {
        int saved = errno;

        inside = true;
        if (atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) %
                every ==
            0) {
            compare(&start);
        }
        inside = false;
        errno = saved;
    }
    return block;
}

SEEP_EXPORT int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t,
                                                void *),
                                void *data)
{
    if (seep_objects_serves_this_thread()) {
        return seep_objects_iterate(callback, data);
    }
    if (real_iterate == NULL) {
        resolve("dl_iterate_phdr", &real_iterate);
    }
    return real_iterate(callback, data);
}

SEEP_EXPORT int dlclose(void *handle)
{
    int result;

    if (real_dlclose == NULL) {
        resolve("dlclose", &real_dlclose);
    }
    seep_objects_unload_begin();
    result = real_dlclose(handle);
    seep_objects_unload_end();
    return result;
}
