/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * One recording that is followed, and whether its process lives; between
 * follow.c and follow_entry.c only.
 */
#ifndef SEEP_TOOL_FOLLOW_ENTRY_H
#define SEEP_TOOL_FOLLOW_ENTRY_H

#include <sys/stat.h>

#include "follow.h"

enum seep_follow_state {
    SEEP_FOLLOW_NEW, /* not known to be a recording yet */
    SEEP_FOLLOW_LIVE,
    SEEP_FOLLOW_ENDED,
    SEEP_FOLLOW_REFUSED
};

struct seep_follow_entry {
    char *path;
    dev_t device;
    ino_t inode;
    uint64_t start_ns; /* CLOCK_REALTIME, as .end_ns */
    uint64_t end_ns;   /* of SEEP_FOLLOW_ENDED */
    enum seep_follow_state state;
    unsigned tries;
    bool named;
    bool found;                 /* by the scan of this refresh */
    bool chosen;                /* to be kept */
    bool final;                 /* read after its end */
    struct seep_followed *kept; /* NULL: not kept */
    struct seep_report *report; /* of it */
};

/**
 * Bring .state up to date with the file and its process.
 *
 * @param ret_renewed  what was known is of another file, or another run in it
 * @return -ENOENT if there is no such file any more
 */
int seep_follow_entry_look(struct seep_follow_entry *entry, bool *ret_renewed);

/** Seconds since its end; 0 while it lives. */
double seep_follow_entry_ended_s(const struct seep_follow_entry *entry);

#endif
