/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * From a hook into the recorder: the fast paths in line, then the guard, the
 * capture and the event.
 *
 * Invariant: what is told here happened (an allocation), or is about to (a
 * free); nothing of the program's call changes by it.
 */
#ifndef SEEP_PRELOAD_TRACK_H
#define SEEP_PRELOAD_TRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/thread.h"
#include "capture/native.h"
#include "record/filter.h"
#include "record/sites.h"
#include "seep/recording.h"

/** True if a block of @size_bytes at @block need not be looked at further. */
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

/** After the real call: @block of @size_bytes is the program's. */
void seep_track_allocated(const struct seep_capture_start *start,
                          const void *block, size_t size_bytes);

/** The same of one of Python's objects. */
void seep_track_object_allocated(const struct seep_capture_start *start,
                                 const void *block, size_t size_bytes);

/** Before the real call: @block goes. */
void seep_track_freed(const void *block);

/** Around a realloc: before it, and after one that failed. */
struct seep_track_out {
    bool recorded;
    uint32_t tick;
};
struct seep_track_out seep_track_realloc_out(const void *block);
void seep_track_realloc_failed(const void *block, struct seep_track_out out);

/** Mappings. @start is NULL for what needs no stack. */
struct seep_track_out seep_track_range(const struct seep_capture_start *start,
                                       enum seep_event_kind kind,
                                       const void *address, size_t size_bytes);

/** Is any of this recorded? A file's mapping, say, is not. */
bool seep_track_knows_range(const void *address, size_t size_bytes);
void seep_track_remap_failed(const void *address, struct seep_track_out out);

/** Begin the recording now, which is not begun by two threads at once: what
 * one of them tells meanwhile is lost. */
void seep_track_begin(void);

/** Things of the CUDA driver, by key: recorded whole. @from is the caller of
 * the hook; the others as with a realloc. */
void seep_track_key_allocated(const struct seep_capture_start *from,
                              struct seep_place place, uint64_t key,
                              uint64_t size_bytes);
struct seep_track_out seep_track_key_out(uint64_t key);
void seep_track_key_restored(uint64_t key, struct seep_track_out out);

/** A mapping that is not recorded, only counted. */
void seep_track_count(enum seep_counter counter, uint64_t amount);

#endif
