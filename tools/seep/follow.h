/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Recordings followed while their processes come and go: for who shows the
 * same things again and again (metrics, a live view).
 *
 * A recording is known by path, inode and start: a file that was replaced is
 * another one. Those of processes that live are read anew at each refresh;
 * when one has ended it is read once more, kept for a while, and forgotten.
 * Bounded: of at most .limit recordings a report is kept, those that live
 * before those that ended, then by their start, the latest first; the others
 * are counted. What is remembered of a file beyond that are its name and
 * inode, as long as it is there.
 *
 * Nothing is printed, no process is touched. One thread.
 */
#ifndef SEEP_TOOL_FOLLOW_H
#define SEEP_TOOL_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/report.h"

#define SEEP_FOLLOW_LIMIT_DEFAULT 64

struct seep_follow;

struct seep_follow_options {
    struct seep_report_options report; /* of each; what it points to must
                                          outlive the follower */
    size_t limit;  /* recordings that are read; 0: the default */
    double keep_s; /* one that ended so long ago is forgotten, unless it was
                      named itself; INFINITY: never */
    /* Takes a report that is no longer in the list, to close it later, where
     * another thread may still look at it. NULL: it is closed at once. */
    void (*let_go)(void *context, struct seep_report *report);
    void *context;
};

/** One of those that are kept. */
struct seep_followed {
    const char *path;
    uint64_t inode;
    uint64_t start_realtime_ns;
    bool named;     /* by its own path: not found in a folder */
    bool ended;     /* no more will be written, as far as is known */
    double ended_s; /* so long ago; 0 while it lives */
    const struct seep_report *report; /* the last that could be made; never
                                         NULL in a list */
    int error; /* of the last reading; then .report is older */
    struct seep_refusal refusal; /* and why */
    uint64_t read_ns;            /* CLOCK_MONOTONIC, when .report was made */
};

struct seep_follow_counts {
    size_t live; /* of those in the list */
    size_t ended;
    size_t left_out;         /* live, or ended lately, and beyond the limit */
    size_t refused;          /* files that cannot be read as recordings */
    uint64_t forgotten_ever; /* had been in the list, and are no more */
    uint64_t readings_ever;
};

/**
 * @param paths  recordings, folders or process ids; a folder may be empty, and
 *               need not be there yet. Borrowed.
 */
int seep_follow_open(char *const *paths, size_t count,
                     const struct seep_follow_options *options,
                     struct seep_follow **ret_follow);
void seep_follow_close(struct seep_follow *follow);

/**
 * Look which recordings there are and read those that may have changed. What
 * seep_follow_list() gave before is no longer valid.
 *
 * @return 0; negative errno of the first of @paths that means nothing, with
 *         @ret_refusal and @ret_path, both of which may be NULL, filled: the
 *         others are followed all the same
 */
int seep_follow_refresh(struct seep_follow *follow,
                        struct seep_refusal *ret_refusal,
                        const char **ret_path);

/** Those that are kept: who lives first, then the latest start first. */
const struct seep_followed *const *
seep_follow_list(const struct seep_follow *follow, size_t *ret_count);

void seep_follow_counts(const struct seep_follow *follow,
                        struct seep_follow_counts *ret_counts);

#endif
