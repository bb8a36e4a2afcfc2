/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a verdict on a Python process says besides: which line to look at, why
 * there is none, and what its own allocator hides. Invariant: of a process
 * without Python nothing is said.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fold.h"
#include "reader/where.h"
#include "verdict_words.h"
#include "words.h"

static bool is_interpreter(const char *path)
{
    const char *name = seep_where_base_name(path);

    return strncmp(name, "python", 6) == 0 ||
           strncmp(name, "libpython", 9) == 0;
}

/* It is told by hand that no frames are wanted: then no version is known. */
static bool is_turned_off(const struct seep_report *report)
{
    return report->python_state == SEEP_PYTHON_NONE &&
           is_interpreter(report->executable);
}

static bool has_python(const struct seep_report *report)
{
    return seep_words_has_python(report) || is_turned_off(report);
}

/* Who holds what lies in an arena is not who needed the arena. */
static bool may_be_arena(const struct seep_report *report,
                         const struct seep_report_site *site)
{
    return site->space == SEEP_SPACE_MAPPED && has_python(report) &&
           report->python_objects != SEEP_PYTHON_OBJECTS_ON &&
           site->frame_count > 0 && !site->frames[0].python &&
           is_interpreter(site->frames[0].module);
}

char *seep_verdict_words_holder(const struct seep_report *report,
                                const struct seep_report_site *site)
{
    const struct seep_report_frame *frame;
    char *text;

    if (site->where_frame >= site->frame_count) {
        return NULL;
    }
    frame = &site->frames[site->where_frame];
    if (!frame->python || frame->line == 0 || may_be_arena(report, site)) {
        return NULL;
    }
    return asprintf(&text, "what %s:%u keeps",
                    seep_where_base_name(frame->file), frame->line) < 0
               ? NULL
               : text;
}

void seep_verdict_words_add_python_reason(const struct seep_report *report,
                                          const struct seep_report_site *site,
                                          struct seep_verdict_words *words)
{
    if (site != NULL && may_be_arena(report, site)) {
        seep_verdict_words_reason(
            words, "it is a mapping of Python's allocator, for small objects: "
                   "which lines keep them is told where those are recorded");
    }
    if (site != NULL && site->space == SEEP_SPACE_PYTHON &&
        report->verdict.growing_count > 1) {
        seep_verdict_words_reason(
            words, "Python lends freed dicts, lists, tuples and floats again: "
                   "the line that keeps them can be another of those that "
                   "grow");
    }
}

void seep_verdict_words_add_python_advice(const struct seep_report *report,
                                          const struct seep_report_site *site,
                                          struct seep_verdict_words *words)
{
    bool hidden =
        site == NULL ? has_python(report) : may_be_arena(report, site);

    if (hidden && report->python_objects == SEEP_PYTHON_OBJECTS_OFF) {
        seep_verdict_words_advise(
            words, "seep run --python objects -- COMMAND, or "
                   "SEEP_PYTHON=objects: Python's own objects by the lines "
                   "that made them");
        return; /* with its lines */
    }
    if (site == NULL || seep_fold_has_python(site)) {
        return;
    }
    if (seep_words_is_without_python(report)) {
        seep_verdict_words_advise(
            words,
            "a release build of Python 3.8 to 3.14: in this one frames are %s",
            seep_python_state_words(report->python_state));
    } else if (is_turned_off(report)) {
        seep_verdict_words_advise(words,
                                  "seep run --python frames -- COMMAND, or "
                                  "SEEP_PYTHON=frames: the lines of Python");
    }
}
