/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * From the words of a stack to frames with names.
 *
 * Invariant: whatever a word says, it is at least one frame, and no index of
 * the recording is followed unchecked. Texts are the report's, or live as long.
 *
 * Errors: 0 or negative errno. Threads: one at a time.
 */
#ifndef SEEP_READER_REPORT_NAMES_H
#define SEEP_READER_REPORT_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "reader/report.h"

#define SEEP_NAMES_FRAMES_MAX 1024U /* of a stack, with those inlined */

struct seep_report_build;
struct seep_names;

/** One stack of a recording. */
struct seep_names_stack {
    uint64_t words[SEEP_STACK_FRAMES_MAX]; /* innermost first */
    uint32_t count;
    enum seep_cut cut;
    const char *thread; /* "" if it has no name of its own */
};

/** Modules and symbols; lists the modules in the report. It is @build's. */
int seep_names_open(struct seep_report_build *build);
/** All but what the report's frames point into. */
void seep_names_close(struct seep_report_build *build);

/** The stack of site @site of the recording; empty if it has none. */
void seep_names_stack(struct seep_report_build *build, uint32_t site,
                      struct seep_names_stack *ret_stack);

/** Module of a word of machine code: its path; "" if it has none. */
const char *seep_names_module(const struct seep_names *names, uint64_t word);

/**
 * The frames of one word, the innermost inlined call first: 1 to @capacity,
 * which is at least 1.
 */
size_t seep_names_frames(struct seep_report_build *build, uint64_t word,
                         struct seep_report_frame *frames, size_t capacity);

#endif
