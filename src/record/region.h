/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The recording's file: made, reserved, mapped, named, closed.
 *
 * Invariant: the file is valid from the moment that it has a name; its bytes
 * are reserved before they are mapped, so a full disk is a refusal here and
 * not a SIGBUS later; an existing file is never opened, followed or changed;
 * no descriptor is left, and none below 3 is used.
 *
 * Only raw system calls, errno untouched. Every refusal is a negative errno.
 */
#ifndef SEEP_RECORD_REGION_H
#define SEEP_RECORD_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "seep/recording.h"

struct seep_region_options {
    const char *pattern;         /* of the path; %p %e %h %t %n are replaced */
    const char *fallback_folder; /* used when the pattern is relative and the
                                    current folder refuses; may be NULL */
    const char *executable;      /* base name, for %e */
    const char *host;            /* for %h */
    uint64_t start_s;            /* for %t, seconds since the epoch */
    uint32_t pid;                /* for %p */
    void (*complete)(void *mapping); /* adds strings before the name */
    bool any_filesystem; /* also where a reservation does not protect */
};

/**
 * Create a recording with @header as its first page; start its rings and
 * shards, let .complete add what else belongs in it, publish it under its name.
 *
 * @return 0, or: -ENOSPC no room, -EFBIG over RLIMIT_FSIZE, -EXDEV a file
 *         system on which a reservation does not protect, -EPERM a folder
 *         that others may write, else what open, mmap or link answered
 */
int seep_region_create(const struct seep_region_options *options,
                       const struct seep_rec_header *header,
                       void **ret_mapping);

/** The thread that was in seep_region_create() left it by a jump: close and
 * unmap what it had; a file without a name is gone with that. */
void seep_region_abandon(void);

/** Unmap a parent's recording in its child. */
void seep_region_drop(void *mapping, size_t size_bytes);

/**
 * Put zeros of this process's own in the place of a mapping. If that cannot be
 * done it stays as it is.
 */
void seep_region_replace(void *mapping, size_t size_bytes);

#endif
