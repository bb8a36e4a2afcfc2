/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why a recording has not a part; see span.h. Invariant: it names what is
 * there, so that the next try can be right.
 */
#include "words/span.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "words/units.h"
#include "words/words.h"

#define MARKS_SAID 5 /* of those that there are */

static bool is_there(const struct seep_report *report, const char *name)
{
    for (size_t i = 0; name != NULL && i < report->mark_count; i++) {
        if (strcmp(report->marks[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The mark that is not there. */
static const char *missing_mark(const struct seep_report *report,
                                const struct seep_span_wish *wish)
{
    const char *names[] = {wish->at.mark, wish->since.mark, wish->until.mark};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i] != NULL && !is_there(report, names[i])) {
            return names[i];
        }
    }
    return "";
}

/* Each once. */
static void put_marks(FILE *file, const struct seep_report *report)
{
    size_t said = 0;

    for (size_t i = 0; i < report->mark_count && said <= MARKS_SAID; i++) {
        struct seep_report before = *report;

        before.mark_count = i;
        if (is_there(&before, report->marks[i].name)) {
            continue;
        }
        if (said++ == MARKS_SAID) {
            fputs(", ...", file);
        } else {
            fprintf(file, "%s%s", said == 1 ? "; its marks are " : ", ",
                    report->marks[i].name);
        }
    }
}

char *seep_words_span_refused(const struct seep_report *report,
                              const struct seep_span_wish *wish, int error)
{
    struct seep_words_text text;
    FILE *file = seep_words_open(&text);

    if (file == NULL) {
        return NULL;
    }
    if (error == -ENOENT) {
        fprintf(file, "no time, and no mark of this recording, is named \"%s\"",
                missing_mark(report, wish));
        put_marks(file, report);
    } else if (error == -ERANGE) {
        fprintf(file, "the run ended before that, after %s",
                SEEP_UNITS_DURATION(report->duration_s));
    } else if (error == -EINVAL) {
        fputs("it would end before it begins", file);
    } else {
        fputs("not enough memory", file);
    }
    return seep_words_close(&text);
}
