/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * How much a folder of recordings may hold, and what goes when it is more.
 *
 * Invariant: what is removed is a recording (by its head), of this user, whose
 * process is gone; never that of a living one, nor one of the few that were
 * killed last. Raw system calls; nothing is waited for.
 */
#ifndef SEEP_RECORD_KEEP_H
#define SEEP_RECORD_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/place.h"
#include "format/view.h"

/** A life below this leaves a recording that goes first, if it holds no call
 * site of as much as that. */
#define SEEP_KEEP_MINOR_NS UINT64_C(1000000000)

/** A process that lived so long and did not end in order may have been killed
 * for what it took: the last so many of these recordings always stay. */
#define SEEP_KEEP_TELLING_NS UINT64_C(60000000000)
#define SEEP_KEEP_TELLING_FILES 4U

/** What this process removed. */
struct seep_keep_removed {
    uint32_t file_count; /* of a bounded part of a folder */
    uint64_t bytes;      /* that they took of the disk */
};

/**
 * Remove recordings from the folder of @pattern until it holds no more than
 * @limits, or until a bounded part of it was looked at: first those marked
 * .minor, then the oldest of what ended in order; then, oldest first, what was
 * killed or called _exit, those that lived less than a minute before the
 * others. Of processes that clean at once one does.
 */
void seep_keep_clean(const char *pattern, const struct seep_place_keep *limits);

/** A cleaning that was left by a jump leaves nothing open. */
void seep_keep_abandon(void);

/** Is it worth folding what is pending, at the end, to know the next? */
bool seep_keep_may_be_minor(const struct seep_view *view);

/** At the end of this process: is its recording one of those that go first? Of
 * one in which something is pending that is not known. */
bool seep_keep_is_minor(const struct seep_view *view);

/** What was removed since this was last asked. */
struct seep_keep_removed seep_keep_take_removed(void);

#endif
