/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * From a hook into the recorder: the fast paths in line, then the guard, the
 * capture and the event.
 *
 * Invariant: what is recorded here happened (an allocation), or is about to (a
 * free); nothing of the program's call changes by it.
 */
#ifndef SEEP_PRELOAD_TRACK_H
#define SEEP_PRELOAD_TRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/thread.h"
#include "capture/native/unwind.h"
#include "format/view.h"
#include "record/ring.h"
#include "record/sampler.h"
#include "record/sites.h"
#include "seep/recording.h"

/** True if a block of @size_bytes at @block need not be looked at further;
 * NULL is none. */
SEEP_INLINE bool seep_track_passes(const void *block, size_t size_bytes)
{
    if (seep_unlikely(block == NULL)) {
        return true;
    }
    seep_thread.countdown_bytes -= (int64_t)size_bytes;
    return seep_thread.countdown_bytes > 0;
}

/** True if a free of @block need not be looked at further. */
SEEP_INLINE bool seep_track_ignores(const void *block)
{
    return !seep_filter_maybe((uintptr_t)block);
}

/**
 * The real call refused @size_bytes, which is more than a limit allows with
 * what we take, and less without: it goes (preload/limits.c).
 *
 * @return the call is worth a second try. errno stays
 */
bool seep_limits_give_way(size_t size_bytes);

/** The same, of a caller of malloc, who is told as one that found no room. */
bool seep_track_refused(const struct seep_capture_start *start,
                        size_t size_bytes);

/** After the real call: @block of @size_bytes is the program's. NULL: there was
 * no room for it, which is counted. */
void seep_track_allocated(const struct seep_capture_start *start,
                          const void *block, size_t size_bytes);

/** The same of one of Python's objects. */
void seep_track_object_allocated(const struct seep_capture_start *start,
                                 const void *block, size_t size_bytes);

/** The same of a tensor, by its address on the device that is @device - 1,
 * where no block of the host lies. Its end is that of any block. */
void seep_track_tensor_allocated(const struct seep_capture_start *from,
                                 uint32_t device, const void *block,
                                 size_t size_bytes);

/** Before the real call: @block goes. */
void seep_track_freed(const void *block);

/** Around a realloc: before it, and after one that failed. */
struct seep_track_out {
    bool recorded;
    uint32_t tick;
};
struct seep_track_out seep_track_realloc_out(const void *block);
void seep_track_realloc_failed(const void *block, struct seep_track_out out);

/** Mappings: one was made, of memory or of a file (@space). */
void seep_track_mapped(const struct seep_capture_start *start,
                       enum seep_space space, const void *address,
                       size_t size_bytes);
/** One goes, or what lies there does: it needs no stack. */
struct seep_track_out seep_track_range(enum seep_event_kind kind,
                                       const void *address, size_t size_bytes);

/** Would a mapping of @size_bytes be recorded now? */
bool seep_track_wants_range(size_t size_bytes);

/** Is any of this recorded, as what, and how much behind @address? A device's
 * mapping, say, is not. */
bool seep_track_knows_range(const void *address, size_t size_bytes,
                            enum seep_space *ret_space, uint64_t *ret_bytes);
void seep_track_remap_failed(const void *address, struct seep_track_out out);

/** Begin the recording now, which is not begun by two threads at once: what
 * one of them records meanwhile is lost. */
void seep_track_begin(void);

/** Things of the CUDA driver, by key: recorded whole. @from is the caller of
 * the hook. They go, and come back, as with a realloc. */
void seep_track_key_allocated(const struct seep_capture_start *from,
                              struct seep_place place, uint64_t key,
                              uint64_t size_bytes);

/** In the recording of this process, if there is one. */
void seep_track_count(enum seep_counter counter, uint64_t amount);

/*
 * The mark of a thread that is inside of Python's allocator, and records a
 * block of it itself (python/wrap.h): what is malloced there is no event.
 */

/** A mark is more than any countdown. What is malloced beneath is taken from
 * it: 128 KiB before it names another block. */
SEEP_INLINE int64_t seep_track_mark(const void *block)
{
    /* That of no block is the last: no thread mallocs as much under it. */
    uint64_t granule =
        (((uintptr_t)block >> 4) - 1) & ((UINT64_C(1) << 44) - 1);

    return SEEP_SAMPLER_NEVER + (int64_t)((granule + 1) << 17);
}

/** Is this thread inside of Python's allocator? */
SEEP_INLINE bool seep_track_is_marked(void)
{
    return seep_unlikely(seep_thread.countdown_bytes > SEEP_SAMPLER_NEVER);
}

/** And is it for @block, whose end was recorded? */
SEEP_INLINE bool seep_track_is_marked_for(const void *block)
{
    return seep_track_is_marked() &&
           (uint64_t)(seep_track_mark(block) - seep_thread.countdown_bytes) <
               UINT64_C(1) << 17;
}

/** The thread is as one that was never seen: a threshold is drawn at its next
 * block. The process has no memory, so nothing is lost by that. */
SEEP_INLINE void seep_track_unmark(void)
{
    if (seep_track_is_marked()) {
        seep_thread.sample_log2 = 0;
        seep_thread.countdown_bytes = 0;
    }
}

/** Mark the thread; @block is the one that will go, or NULL.
 * @return for leave() */
SEEP_INLINE int64_t seep_track_enter_mark(const void *block)
{
    int64_t countdown_bytes;

    seep_track_unmark(); /* one that a jump has left */
    countdown_bytes = seep_thread.countdown_bytes;
    seep_thread.countdown_bytes = seep_track_mark(block);
    return countdown_bytes;
}

SEEP_INLINE void seep_track_leave_mark(int64_t countdown_bytes)
{
    seep_thread.countdown_bytes = countdown_bytes;
}

/* From the caller of a hook to its call site (stacks.c). */

/** From the constructor, after seep_objects_init(). */
void seep_stacks_init(void);

/**
 * The site of @from at @place.
 *
 * @param may_ask  on entry: is it wanted? Then: is this thread outside of the
 *                 allocator, so that the allocator may be asked?
 * @return its index; 0 if there is no room
 */
uint32_t seep_stacks_site(const struct seep_view *view,
                          const struct seep_capture_start *from,
                          struct seep_place place, bool *may_ask);

/** Write into the recording what became of Python. */
void seep_stacks_describe(const struct seep_view *view);

/** In the child of a fork: forget what belongs to threads that are gone. */
void seep_stacks_after_fork(void);

/** System calls are no longer welcome: make none from now on. */
void seep_stacks_restrict(void);

/** The calling thread was just named @name, or with NULL another was: the name
 * is the last frame of its stacks. Makes no system call: whether one is still
 * allowed is not known here. */
void seep_thread_name_changed(const char *name);

#endif
