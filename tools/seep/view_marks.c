/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Marks for people. Invariant: of many the last are told, and how many were
 * before them.
 */
#include "view_marks.h"

#include <stdio.h>
#include <stdlib.h>

#include "units.h"

static void print_earlier(FILE *file, size_t count)
{
    char text[SEEP_UNITS_TEXT_BYTES];

    if (count > 0) {
        fprintf(file, "%s before, then ",
                seep_units_count((double)count, text));
    }
}

void seep_view_marks(struct seep_page *page, const struct seep_report *report,
                     size_t indent, size_t most)
{
    size_t from = report->mark_count > most ? report->mark_count - most : 0;
    char *text = NULL;
    size_t size;
    FILE *file = report->mark_count > 0 ? open_memstream(&text, &size) : NULL;

    if (file == NULL) {
        return;
    }
    print_earlier(file, from);
    for (size_t i = from; i < report->mark_count; i++) {
        char at[SEEP_UNITS_TEXT_BYTES];

        fprintf(file, "%s%s at %s", i == from ? "" : ", ",
                report->marks[i].name,
                seep_units_duration(report->marks[i].at_s, at));
    }
    fclose(file);
    if (text != NULL) {
        seep_page_paragraph(page, SEEP_INK_STRONG, "marks", indent, "%s", text);
    }
    free(text);
}
