/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the program said of itself: marks, and labels.
 *
 * Invariant: texts are hostile, of any content and length: at most so many
 * bytes of each are looked at, and a label never becomes two.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader/report_build.h"

#define TEXT_MOST 128U
#define GIVEN_MOST 64U /* labels of SEEP_LABELS that may be replaced */

static bool is_of(struct seep_rec_mark *mark, uint32_t kind)
{
    return seep_snapshot_load(mark->state) == SEEP_PUBLISHED &&
           mark->kind == kind;
}

static const char *name_of(const struct seep_report_build *build,
                           const struct seep_rec_mark *mark)
{
    return seep_view_string(&build->snapshot.view, mark->name);
}

struct said {
    uint32_t order;
    struct seep_report_mark mark;
};

static int compare_order(const void *a, const void *b)
{
    const struct said *left = a;
    const struct said *right = b;

    return (left->order > right->order) - (left->order < right->order);
}

static int sort_into(struct seep_report_build *build, struct said *said,
                     size_t count)
{
    struct seep_report_mark *marks =
        seep_store_take(&build->store, count + 1, sizeof(*marks));

    if (marks == NULL) {
        return -ENOMEM;
    }
    if (count > 0) {
        qsort(said, count, sizeof(*said), compare_order);
    }
    for (size_t i = 0; i < count; i++) {
        marks[i] = said[i].mark;
    }
    build->report.marks = marks;
    build->report.mark_count = count;
    return 0;
}

int seep_report_add_marks(struct seep_report_build *build)
{
    const struct seep_view *view = &build->snapshot.view;
    struct said *said = calloc((size_t)view->mark_capacity + 1, sizeof(*said));
    size_t count = 0;
    int error;

    if (said == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < view->mark_capacity; i++) {
        struct seep_rec_mark *mark = &view->marks[i];
        struct said *one = &said[count];

        if (!is_of(mark, SEEP_MARK_MOMENT)) {
            continue;
        }
        one->order = seep_snapshot_load(mark->order);
        one->mark.name = seep_store_text_most(&build->store,
                                              name_of(build, mark), TEXT_MOST);
        one->mark.at_s = seep_sites_seconds(seep_snapshot_load(mark->tick));
        one->mark.units = mark->units;
        if (one->mark.name == NULL) {
            free(said);
            return -ENOMEM;
        }
        count++;
    }
    error = sort_into(build, said, count);
    free(said);
    return error;
}

/* Does a label that was given later take the place of this one? */
static bool is_replaced(const struct seep_report_build *build, const char *key,
                        size_t length, uint32_t order)
{
    const struct seep_view *view = &build->snapshot.view;

    for (uint32_t i = 0; i < view->mark_capacity; i++) {
        struct seep_rec_mark *mark = &view->marks[i];
        const char *name;

        if (!is_of(mark, SEEP_MARK_LABEL) ||
            seep_snapshot_load(mark->order) <= order) {
            continue;
        }
        name = name_of(build, mark);
        if (strncmp(name, key, length) == 0 &&
            (length == TEXT_MOST || name[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* What separates labels and their parts is none inside of them. */
static char *add_text(char *to, const char *from, const char *separators)
{
    for (size_t i = 0; i < TEXT_MOST && from[i] != '\0'; i++) {
        *to++ = strchr(separators, from[i]) == NULL ? from[i] : '_';
    }
    return to;
}

/* Of SEEP_LABELS what the program did not say otherwise. */
static char *add_given(const struct seep_report_build *build, const char *given,
                       char *to)
{
    char *start = to;
    size_t count = 0;

    while (*given != '\0') {
        size_t length = strcspn(given, ",");
        size_t key = strcspn(given, ",=");

        if (length > 0 &&
            (++count > GIVEN_MOST ||
             !is_replaced(build, given, key < TEXT_MOST ? key : TEXT_MOST,
                          0))) {
            if (to != start) {
                *to++ = ',';
            }
            memcpy(to, given, length);
            to += length;
        }
        given += length + (given[length] == ',');
    }
    return to;
}

static char *add_said(const struct seep_report_build *build, char *start,
                      char *to)
{
    const struct seep_view *view = &build->snapshot.view;

    for (uint32_t i = 0; i < view->mark_capacity; i++) {
        struct seep_rec_mark *mark = &view->marks[i];
        const char *key = name_of(build, mark);
        const char *value = seep_view_string(view, mark->text);

        if (!is_of(mark, SEEP_MARK_LABEL) || *key == '\0' ||
            is_replaced(build, key, strnlen(key, TEXT_MOST),
                        seep_snapshot_load(mark->order))) {
            continue;
        }
        if (to != start) {
            *to++ = ',';
        }
        to = add_text(to, key, ",=");
        if (*value != '\0') {
            *to++ = '=';
            to = add_text(to, value, ",");
        }
    }
    return to;
}

const char *seep_report_labels(struct seep_report_build *build,
                               const char *given)
{
    const struct seep_view *view = &build->snapshot.view;
    size_t count = 0;
    char *text;
    char *end;

    for (uint32_t i = 0; i < view->mark_capacity; i++) {
        count += is_of(&view->marks[i], SEEP_MARK_LABEL);
    }
    text = seep_store_take(&build->store,
                           strlen(given) + count * (2 * TEXT_MOST + 2) + 1, 1);
    if (text != NULL) {
        end = add_given(build, given, text);
        *add_said(build, text, end) = '\0';
    }
    return text;
}
