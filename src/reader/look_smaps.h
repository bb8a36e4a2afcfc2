/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The text of /proc/PID/smaps or /proc/PID/maps, piece by piece as read()
 * gives it.
 *
 * Of smaps only what has bytes, resident or in swap, is kept: a large process
 * has thousands of mappings that never had any. Keys that are not known are
 * skipped, missing ones count as 0: kernels differ. Of maps, which does not
 * say, what cannot grow is left out.
 *
 * Errors: 0 or negative errno. Threads: one at a time.
 */
#ifndef SEEP_READER_LOOK_SMAPS_H
#define SEEP_READER_LOOK_SMAPS_H

#include <stdbool.h>

#include "reader/look.h"

/** More mappings than this go into the sums only. */
#define SEEP_SMAPS_LIMIT ((size_t)1 << 20)
/** Of a line, PATH_MAX and the fields before it; what is longer is cut. */
#define SEEP_SMAPS_LINE_BYTES 4352U
#define SEEP_SMAPS_NAME_BYTES 512U

enum seep_smaps_kind { SEEP_SMAPS, SEEP_MAPS };

struct seep_smaps {
    enum seep_smaps_kind kind;
    struct seep_look_mapping *mappings; /* by address */
    size_t count;
    size_t capacity;
    struct seep_look_mapping open; /* whose lines are being read */
    bool is_open;
    bool is_worth; /* of maps: it is kept */
    char name[SEEP_SMAPS_NAME_BYTES];
    char carried[SEEP_SMAPS_LINE_BYTES]; /* a line that is not whole yet */
    size_t carried_length;
};

void seep_smaps_init(struct seep_smaps *smaps, enum seep_smaps_kind kind);
int seep_smaps_feed(struct seep_smaps *smaps, const char *text, size_t length);
/** The text has ended. */
int seep_smaps_finish(struct seep_smaps *smaps);
void seep_smaps_fini(struct seep_smaps *smaps);

/** Leave out what has no bytes. @return how many stay; the rest is freed */
size_t seep_smaps_drop_empty(struct seep_look_mapping *mappings, size_t count);

/**
 * Make at most @limit of @count mappings. Small anonymous neighbours, and
 * neighbours of one file, are joined into one; then the largest stay.
 *
 * @return how many stay, in front and by address; the rest is freed
 */
size_t seep_smaps_select(struct seep_look_mapping *mappings, size_t count,
                         size_t limit);

#endif
