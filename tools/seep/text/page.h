/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What text goes to people through: a stream with a width and maybe colours.
 *
 * Everything printed by a view goes through here, and everything is cleaned
 * (words/clean.h) on the way: no view can send a recording's bytes to a
 * terminal.
 */
#ifndef SEEP_TOOL_TEXT_PAGE_H
#define SEEP_TOOL_TEXT_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "options/option.h"
#include "words/clean.h"

enum seep_style {
    SEEP_STYLE_PLAIN,
    SEEP_STYLE_STRONG,
    SEEP_STYLE_FAINT,
    SEEP_STYLE_BAD,
    SEEP_STYLE_WARNING,
    SEEP_STYLE_GOOD,
};

struct seep_page {
    FILE *file;
    size_t columns;
    bool color;
};

/**
 * A page on @file. Colours when it is a terminal, unless NO_COLOR is set and
 * not empty or TERM is dumb; width of the terminal, else COLUMNS, else 120.
 */
void seep_page_init(struct seep_page *page, FILE *file, enum seep_color color);

/** Print without a line end; a line end in the result is shown, not made. */
__attribute__((format(printf, 3, 4))) void
seep_page_print(struct seep_page *page, enum seep_style style,
                const char *format, ...);

void seep_page_end_line(struct seep_page *page);

/**
 * A labelled paragraph, wrapped at the width: @label, padded to @indent
 * columns, then the text, later lines indented as much.
 */
__attribute__((format(printf, 5, 6))) void
seep_page_paragraph(struct seep_page *page, enum seep_style style,
                    const char *label, size_t indent, const char *format, ...);

/**
 * Read back what a page with colours printed: is there a sequence at @text?
 *
 * @param ret_style  that it begins; SEEP_STYLE_PLAIN: it ends one
 * @return bytes of the sequence; 0: there is none
 */
size_t seep_page_read_style(const char *text, enum seep_style *ret_style);

#endif
