/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The call sites of a process, added up by what the verdict makes of them.
 *
 * Invariant: a site counts in one place at most, a suppressed one in its own.
 * Pure; any thread.
 */
#ifndef SEEP_READER_VERDICT_COUNTS_H
#define SEEP_READER_VERDICT_COUNTS_H

#include "reader/verdict.h"

/* What of them is in one memory. */
struct seep_verdict_part {
    size_t count;
    double estimate; /* bytes per second */
    double low;      /* sum of the lower ends */
    double now;      /* as estimate, at the present rate of work */
    double now_squares;
};

/* Several sites taken together; sites are sampled independently. */
struct seep_verdict_tally {
    size_t count;
    double estimate; /* bytes per second */
    double squares;  /* of half intervals */
    double first;    /* estimate of the first one */
    struct seep_verdict_part parts[SEEP_PLACE_COUNT];
    size_t unit_count;
    double unit_estimate;
    double unit_squares;
    const char *reason; /* of the first one */
    const char *id;     /* of the first one */
};

/* All sites by what the verdict makes of them. */
struct seep_verdict_counts {
    struct seep_verdict_tally leak;
    struct seep_verdict_tally suspect;
    struct seep_verdict_tally filling;
    struct seep_verdict_tally filled;
    struct seep_verdict_tally minor;
    struct seep_verdict_tally suppressed;
    size_t known;
    size_t doubtful;         /* may leak, too little of it to count */
    double untold_bytes;     /* of the host's memory */
    double bound_left_bytes; /* of what fills of the host: INFINITY if a
                                bound is unknown */
};

void seep_verdict_count(const struct seep_verdict_input *input,
                        struct seep_verdict_counts *ret_counts);

#endif
