/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Frames in words: a line's worth, in full, and which frames of a stack are
 * told one by one and which as "14 frames in libtorch_cpu.so".
 *
 * Pure functions; any thread. Texts are to be freed; NULL without memory.
 */
#ifndef SEEP_TOOL_WORDS_FRAMES_H
#define SEEP_TOOL_WORDS_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "reader/report/report.h"

/** A frame in a few characters: "json.loads", "libpython3.11". */
char *seep_words_frame(const struct seep_report_frame *frame);

/** The same with the file that it is in: "json.loads", "server.handle". */
char *seep_words_frame_with_file(const struct seep_report_frame *frame);

/** The object of a frame in a few characters: "libtorch_cpu", "_json". */
char *seep_words_object(const struct seep_report_frame *frame);

/** What a site's row is named by: the user's frame, "serve.py:31 handle" or
 * "parse in libfoo"; or the function, module or thread that it stands for. */
char *seep_words_where(const struct seep_report *report,
                       const struct seep_report_site *site);

/** The user's frame of the site's stack, whatever its row is named by. */
char *seep_words_user_frame(const struct seep_report_site *site);

/** A frame in full: "function  file:line  (module+0x12)", and one of Python
 * "file:line function".
 * @param brief  without arguments and what templates take */
char *seep_words_frame_long(const struct seep_report_frame *frame, bool brief);

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
char *seep_fold_words(const struct seep_report_frame **frames, size_t count);

/** Is a Python frame the interpreter's own, of its import statement? */
bool seep_fold_is_machinery(const struct seep_report_frame *frame);

/** Index of the frame that speaks for native @frames, innermost first: the
 * last that is no plumbing, else the first of all. */
size_t seep_fold_speaker(const struct seep_report_frame **frames, size_t count);

bool seep_fold_has_python(const struct seep_report_site *site);

#endif
