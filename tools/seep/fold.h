/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Which frames of a stack are told one by one, and which as "14 frames in
 * libtorch_cpu.so": between Python frames the native ones are the machinery.
 *
 * Pure functions; any thread.
 */
#ifndef SEEP_TOOL_FOLD_H
#define SEEP_TOOL_FOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "reader/report.h"

struct seep_fold_piece {
    size_t first; /* index of its first frame, innermost first */
    size_t count; /* 1 unless folded */
    bool folded;
};

/**
 * The pieces of @site's stack, in order, each frame in one of them. Python
 * frames but those of an import, the user's frame, and what stands next to the
 * allocation are pieces of their own; a stack without Python frames is told
 * whole.
 *
 * @param pieces  room for site->frame_count
 * @return their number
 */
size_t seep_fold(const struct seep_report_site *site,
                 struct seep_fold_piece *pieces);

/** "14 frames in libtorch_cpu.so, libc10.so and 2 more", to be freed; NULL
 * without memory. */
char *seep_fold_words(const struct seep_report_frame *frames, size_t count);

/** Is a Python frame the interpreter's own, of its import statement? */
bool seep_fold_is_machinery(const struct seep_report_frame *frame);

/** Index of the frame that speaks for native @frames, innermost first: the
 * last that is no plumbing, else the first of all. */
size_t seep_fold_speaker(const struct seep_report_frame *frames, size_t count);

bool seep_fold_has_python(const struct seep_report_site *site);

#endif
