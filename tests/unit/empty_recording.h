/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A small recording in memory with nothing in it, for tests of its writers.
 *
 * Invariant: the view owns its memory; give it to empty_recording_free().
 */
#ifndef SEEP_TESTS_EMPTY_RECORDING_H
#define SEEP_TESTS_EMPTY_RECORDING_H

#include <stdlib.h>
#include <string.h>

#include "format/layout.h"
#include "format/view.h"

/** @return 0, or -1: no memory */
static inline int empty_recording_make_of(uint64_t size_bytes, bool exact,
                                          struct seep_view *ret_view)
{
    struct seep_rec_header header = {0};
    void *bytes;

    if (seep_layout_make(size_bytes, exact, false, &header) != 0) {
        return -1;
    }
    bytes = calloc(1, header.file_bytes);
    if (bytes == NULL) {
        return -1;
    }
    memcpy(bytes, (void *)&header, sizeof(header));
    seep_layout_start(bytes);
    seep_view_init(ret_view, bytes);
    return 0;
}

/** The least one, of exact mode. */
static inline int empty_recording_make(struct seep_view *ret_view)
{
    return empty_recording_make_of(SEEP_LAYOUT_LEAST_BYTES, true, ret_view);
}

static inline void empty_recording_free(struct seep_view *view)
{
    free(view->header);
}

#endif
