/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stacks by libunwind's local unwinding.
 *
 * Invariant: the library is reached through pointers only, so that the preload
 * needs neither it nor its _Unwind_* names; and while it steps, the loader's
 * list is answered to it by seep_objects_iterate().
 */
#include <errno.h>

#include "capture/native/walk.h"

#if defined(SEEP_HAVE_LIBUNWIND) && defined(__x86_64__)

#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <libunwind.h>
#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "base/word.h"
#include "capture/native/elf.h"

/* A cursor and a context are 2 KiB by themselves, and must live at once. */
#pragma GCC diagnostic ignored "-Wframe-larger-than="

static struct {
    int (*get_context)(unw_tdep_context_t *);
    int (*init)(unw_cursor_t *, unw_context_t *);
    int (*step)(unw_cursor_t *);
    int (*get_register)(unw_cursor_t *, int, unw_word_t *);
    int (*is_signal_frame)(unw_cursor_t *);
    void (*flush)(unw_addr_space_t, unw_word_t, unw_word_t);
    unw_addr_space_t space;
} library;

static _Atomic uint64_t flushed_epoch;

static bool find(void *handle, const char *name, void *ret_function)
{
    void *found = dlsym(handle, name);

    memcpy(ret_function, &found, sizeof(found));
    return found != NULL;
}

int seep_libunwind_init(void)
{
    int (*set_policy)(unw_addr_space_t, unw_caching_policy_t);
    unw_addr_space_t *space;
    void *handle = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

    if (handle == NULL ||
        !find(handle, "_Ux86_64_getcontext", &library.get_context) ||
        !find(handle, "_ULx86_64_init_local", &library.init) ||
        !find(handle, "_ULx86_64_step", &library.step) ||
        !find(handle, "_ULx86_64_get_reg", &library.get_register) ||
        !find(handle, "_ULx86_64_is_signal_frame", &library.is_signal_frame)) {
        return -ENOTSUP;
    }
    if (find(handle, "_ULx86_64_local_addr_space", &space)) {
        library.space = *space;
        find(handle, "_Ux86_64_flush_cache", &library.flush);
        if (find(handle, "_ULx86_64_set_caching_policy", &set_policy)) {
            set_policy(library.space, UNW_CACHE_PER_THREAD);
        }
    }
    return 0;
}

/* libunwind goes on using what it knew of an object that was dlclosed: seen as
 * wrong frames, and as a SIGSEGV, once another lay at the same address. */
static void flush_after_unload(void)
{
    uint64_t epoch = seep_objects_epoch();

    if (library.flush != NULL && seep_word_load(&flushed_epoch) != epoch) {
        library.flush(library.space, 0, 0);
        seep_word_store(&flushed_epoch, epoch);
    }
}

static uintptr_t get_register(unw_cursor_t *cursor, int number)
{
    unw_word_t word = 0;

    library.get_register(cursor, number, &word);
    return (uintptr_t)word;
}

/* @return as unw_step() */
static int step(unw_cursor_t *cursor)
{
    int result;

    seep_objects_serve(get_register(cursor, UNW_REG_IP) - 1);
    result = library.step(cursor);
    seep_objects_serve(0);
    return result;
}

size_t seep_libunwind_walk(const struct seep_capture_start *start,
                           uintptr_t *pcs, size_t capacity,
                           struct seep_capture_end *ret_end)
{
    unw_context_t context;
    unw_cursor_t cursor;
    size_t count = 0;
    int more = 1;

    *ret_end = (struct seep_capture_end){.cut = SEEP_CUT_NONE};
    flush_after_unload();
    library.get_context(&context);
    if (library.init(&cursor, &context) != 0) {
        ret_end->cut = SEEP_CUT_DISABLED;
        return 0;
    }
    /* Our own frames. */
    while (more > 0 && get_register(&cursor, UNW_REG_SP) < start->sp) {
        more = step(&cursor);
    }
    while (more > 0) {
        uintptr_t pc = get_register(&cursor, UNW_REG_IP);
        /* libunwind means the frame that was interrupted; the one before it is
         * the trampoline, which nobody called. */
        bool interrupted = library.is_signal_frame(&cursor) > 0;

        if (count == capacity) {
            ret_end->cut = SEEP_CUT_DEPTH;
            return count;
        }
        ret_end->through_signal |= interrupted;
        if (interrupted && count > 0) {
            pcs[count - 1]++;
        }
        if (start->sps != NULL) {
            start->sps[count] = get_register(&cursor, UNW_REG_SP);
        }
        pcs[count++] = pc - !interrupted;
        more = step(&cursor);
    }
    ret_end->cut = more < 0 ? SEEP_CUT_NO_RULE : SEEP_CUT_NONE;
    return count;
}

#else

int seep_libunwind_init(void)
{
    return -ENOTSUP;
}

size_t seep_libunwind_walk(const struct seep_capture_start *start,
                           uintptr_t *pcs, size_t capacity,
                           struct seep_capture_end *ret_end)
{
    (void)start;
    (void)pcs;
    (void)capacity;
    *ret_end = (struct seep_capture_end){.cut = SEEP_CUT_DISABLED};
    return 0;
}

#endif
