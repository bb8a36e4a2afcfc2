/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * One frame of `seep top` as lines of text: who, the verdict, the other
 * processes, memory and its limits, call sites; or the stack of one, or help.
 *
 * A line holds the colour sequences of page.h and nothing else that a terminal
 * obeys, and is never wider than was asked for. Pure.
 *
 * Errors: 0 or -ENOMEM.
 */
#ifndef SEEP_TOOL_TOP_FRAME_H
#define SEEP_TOOL_TOP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "page.h"
#include "top_model.h"

#define SEEP_TOP_NO_LINE SIZE_MAX
#define SEEP_TOP_SITES_DEFAULT 10

struct seep_top_size {
    size_t columns;
    size_t lines;       /* 0: as many as there are, and no keys: for a script */
    size_t rows;        /* of call sites, where .lines is 0; 0: all */
    const char *notice; /* "x.seep: is cut short"; NULL: none */
    bool waiting;       /* nothing has been read yet */
    const char *target; /* what is followed: a folder, a file, a pid */
};

struct seep_top_frame {
    char **lines;
    size_t count;
    size_t selected;    /* index of a line, or SEEP_TOP_NO_LINE */
    size_t process;     /* the same of the process */
    size_t scroll_most; /* of the text that lies over the rows */
};

int seep_top_frame_make(const struct seep_top_model *model,
                        const struct seep_top_size *size,
                        struct seep_top_frame *ret_frame);
void seep_top_frame_fini(struct seep_top_frame *frame);

/** As plain text, with or without colours. */
void seep_top_frame_print(const struct seep_top_frame *frame, FILE *file,
                          bool color);

/** Bytes and columns of the next piece of a @line: a colour sequence, whose
 * ink is returned, or a text up to one or the end. */
struct seep_top_piece {
    size_t bytes;
    bool is_ink;
    enum seep_ink ink;
};
struct seep_top_piece seep_top_frame_piece(const char *line);

#endif
