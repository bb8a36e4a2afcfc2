/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The recording's file: made, reserved, mapped, named, closed.
 *
 * Invariant: the file is valid from the moment that it has a name; what of it
 * is touched was reserved before (at the start, then page by page), so a
 * full disk is a refusal and never a SIGBUS; an existing file is never opened,
 * followed or changed; no descriptor is left, and none below 3 is used.
 *
 * Only raw system calls, errno untouched. Every refusal is a negative errno.
 */
#ifndef SEEP_RECORD_REGION_H
#define SEEP_RECORD_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/view.h"
#include "seep/recording.h"

/** Who is meant by a name that has no placeholder. */
enum seep_region_role {
    SEEP_REGION_ANY,     /* whoever comes first */
    SEEP_REGION_COMMAND, /* this process, whatever it was before an exec */
    SEEP_REGION_OTHER,   /* another: this one has a number */
};

struct seep_region_options {
    const char *pattern;         /* of the path; %p %e %h %t %n are replaced */
    const char *fallback_folder; /* used when the pattern is relative and the
                                    current folder refuses; may be NULL */
    const char *executable;      /* base name, for %e */
    const char *host;            /* for %h */
    uint64_t start_s;            /* for %t, seconds since the epoch */
    uint32_t pid;                /* for %p */
    void (*complete)(void *mapping); /* adds strings before the name */
    bool (*is_wanted)(void);         /* no: a child of a fork goes on in here */
    bool any_filesystem; /* also where a reservation does not protect */
    enum seep_region_role role;
};

/**
 * Create a recording with @header as its first page; start its rings and
 * shards, let .complete add what else belongs in it, publish it under its name.
 *
 * @return 0 or a negative errno, which seep_place_reason_of() explains
 */
int seep_region_create(const struct seep_region_options *options,
                       const struct seep_rec_header *header,
                       void **ret_mapping);

/** Path of the last recording that was created, or could not be. */
const char *seep_region_path(void);

/** What was created is in use: what is abandoned later is not this. */
void seep_region_settle(void);

/** The thread that created a recording left by a jump before it was settled:
 * close and unmap what it had. Its file is gone with that, named or not. */
void seep_region_abandon(void);

/** The same in a child, of what its parent was creating: that file stays. */
void seep_region_leave(void);

/** In a child that goes on in seep_region_create(), since a handler forked in
 * it: what it does from now on reaches nothing of its parent's, and fails. */
void seep_region_forsake(void);

/** Unmap a recording: a parent's in its child, or one that nobody needs. */
void seep_region_drop(void *mapping, size_t size_bytes);

/**
 * Put zeros of this process's own in the place of a mapping.
 *
 * @return false: that cannot be done, and it stays as it is
 */
bool seep_region_replace(void *mapping, size_t size_bytes);

/*
 * What of the recording's file is on the disk, and more of it.
 *
 * The file has its full size from the start, as a hole. A place for a page is
 * asked for without a descriptor, for none stays open, and the path may have
 * become another's: the kernel is made to write to the page on our behalf.
 *
 * Invariant: a page whose bit is set can be written at any time; no other is
 * ever touched. A refusal is counted, and not tried again for a while. No lock,
 * no wait, no memory of the program's.
 */

/** Let @view, of the mapping that was begun with, know. */
void seep_room_attach(struct seep_view *view);

/** Is any of the @bytes at @address the recording's? Then where it lies. */
bool seep_room_is_in(const void *address, size_t bytes, char **ret_start,
                     char **ret_end);

/** Nobody is inside of a hook, nor will be: all goes but the header, counters
 * and timeline. */
void seep_region_shrink(void);

/** What goes by that, of addresses, and of private memory. */
uint64_t seep_region_held_bytes(uint64_t *ret_private_bytes);

/** No system call from now on: what a run will need is reserved before. */
void seep_room_restrict(void);

/** How pages are asked for. For tests; the first that works is used. */
enum seep_room_way { SEEP_ROOM_POPULATE, SEEP_ROOM_TOUCH };
void seep_room_set_way(enum seep_room_way way);

#endif
