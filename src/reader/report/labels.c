/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a program said of itself, marks and labels, and processes by what they
 * are labelled.
 *
 * Invariant: texts are hostile, of any content and length. Of what was said at
 * most TEXT_MOST bytes of each are looked at, and a label never becomes two; at
 * most LABELS_MAX of a process count.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/report/build.h"

#define TEXT_MOST 128U
#define GIVEN_MOST 64U /* labels of SEEP_LABELS that may be replaced */

static bool is_of(struct seep_rec_mark *mark, uint32_t kind)
{
    return seep_word_load(&mark->state) == SEEP_PUBLISHED && mark->kind == kind;
}

static const char *name_of(const struct seep_report_build *build,
                           const struct seep_rec_mark *mark)
{
    return seep_view_string(&build->snapshot.view, mark->name);
}

static int compare_order(const void *a, const void *b)
{
    uint32_t left = seep_word_load(&(*(struct seep_rec_mark *const *)a)->order);
    uint32_t right =
        seep_word_load(&(*(struct seep_rec_mark *const *)b)->order);

    return (left > right) - (left < right);
}

int seep_report_add_marks(struct seep_report_build *build)
{
    const struct seep_view *view = &build->snapshot.view;
    struct seep_rec_mark **said =
        calloc((size_t)view->mark_capacity + 1, sizeof(struct seep_rec_mark *));
    struct seep_report_mark *marks;
    size_t count = 0;

    if (said == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < view->mark_capacity; i++) {
        if (is_of(&view->marks[i], SEEP_MARK_MOMENT)) {
            said[count++] = &view->marks[i];
        }
    }
    qsort(said, count, sizeof(struct seep_rec_mark *), compare_order);
    marks = seep_store_take(&build->store, count + 1, sizeof(*marks));
    for (size_t i = 0; marks != NULL && i < count; i++) {
        marks[i].name = seep_store_text_most(
            &build->store, name_of(build, said[i]), TEXT_MOST);
        marks[i].at_s = seep_sites_seconds(seep_word_load(&said[i]->tick));
        marks[i].units = said[i]->units;
        marks = marks[i].name != NULL ? marks : NULL;
    }
    free(said);
    build->report.marks = marks;
    build->report.mark_count = marks != NULL ? count : 0;
    return marks != NULL ? 0 : -ENOMEM;
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
            seep_word_load(&mark->order) <= order) {
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
                        seep_word_load(&mark->order))) {
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

/* Processes by their labels: rows point into the reports. */

#define LABELS_MAX 64U /* of one process */

struct text {
    const char *at;
    size_t length;
};

struct rows {
    struct seep_label_row *rows;
    size_t count;
};

static int compare_text(struct text a, struct text b)
{
    size_t length = a.length < b.length ? a.length : b.length;
    int order = length > 0 ? memcmp(a.at, b.at, length) : 0;

    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

static struct text key_of(const struct seep_label_row *row)
{
    return (struct text){row->key, row->key_length};
}

static struct text value_of(const struct seep_label_row *row)
{
    return (struct text){row->value, row->value_length};
}

/* The row of a label; a new one where there is none. NULL: no memory. */
static struct seep_label_row *row_of(struct rows *rows, struct text key,
                                     struct text value)
{
    struct seep_label_row *row = rows->rows;

    for (size_t i = 0; i < rows->count; i++, row++) {
        if (compare_text(key_of(row), key) == 0 &&
            compare_text(value_of(row), value) == 0) {
            return row;
        }
    }
    /* Room for twice as many at each power of two. */
    if ((rows->count & (rows->count - 1)) == 0) {
        row = realloc(rows->rows, (2 * rows->count + 1) * sizeof(*row));
        if (row == NULL) {
            return NULL;
        }
        rows->rows = row;
    }
    row = &rows->rows[rows->count++];
    *row = (struct seep_label_row){
        .key = key.at,
        .key_length = key.length,
        .value = value.at,
        .value_length = value.length,
        .class = SEEP_VERDICT_STEADY, /* the best */
    };
    return row;
}

static double growth_of(const struct seep_report *report)
{
    return report->verdict.has_growth
               ? report->verdict.growth_bytes_per_s.estimate
               : 0;
}

/* Processes err independently: the squares of the halves add up, and meanwhile
 * the sum of them stands in .high. */
static void add_growth(struct seep_label_row *row,
                       const struct seep_report *report)
{
    const struct seep_interval *rate = &report->verdict.growth_bytes_per_s;
    double half = (rate->high - rate->low) / 2;

    if (report->verdict.has_growth) {
        row->has_growth = true;
        row->growth_bytes_per_s.estimate += rate->estimate;
        row->growth_bytes_per_s.high += half * half;
    }
}

static void add_report(struct seep_label_row *row,
                       const struct seep_report *report)
{
    row->process_count++;
    row->leak_count += report->verdict.class == SEEP_VERDICT_LEAK;
    if (report->verdict.class < row->class) {
        row->class = report->verdict.class;
    }
    for (size_t i = 0; i < report->space_count; i++) {
        if (seep_sites_space_holds(report->spaces[i].space)) {
            row->live_bytes += report->spaces[i].live_bytes;
        }
    }
    if (row->first == NULL || growth_of(report) > growth_of(row->first)) {
        row->first = report;
    }
    add_growth(row, report);
}

/* Of a label that is there twice in a process only the first counts. */
static bool is_again(const struct text *seen, size_t count, struct text label)
{
    for (size_t i = 0; i < count; i++) {
        if (compare_text(seen[i], label) == 0) {
            return true;
        }
    }
    return false;
}

static int add_label(struct rows *rows, const struct seep_report *report,
                     const char *label, size_t length)
{
    const char *equals = memchr(label, '=', length);
    struct text key = {label, length};
    struct text value = {label + length, 0};
    struct seep_label_row *row;

    if (equals != NULL) {
        key.length = (size_t)(equals - label);
        value.at = equals + 1;
        value.length = length - key.length - 1;
    }
    row = row_of(rows, key, value);
    if (row == NULL) {
        return -ENOMEM;
    }
    add_report(row, report);
    return 0;
}

static int add_labels(struct rows *rows, const struct seep_report *report)
{
    const char *at = report->labels != NULL ? report->labels : "";
    struct text seen[LABELS_MAX];
    size_t count = 0;
    int error = 0;

    while (error == 0 && *at != '\0' && count < LABELS_MAX) {
        struct text label = {at, strcspn(at, ",")};

        if (label.length > 0 && *at != '=' && !is_again(seen, count, label)) {
            error = add_label(rows, report, label.at, label.length);
            seen[count++] = label;
        }
        at += label.length + (at[label.length] == ',');
    }
    return count == 0 && error == 0 ? add_label(rows, report, "", 0) : error;
}

static void finish(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        struct seep_interval *rate = &rows->rows[i].growth_bytes_per_s;
        double half = sqrt(rate->high);

        rate->low = rate->estimate - half;
        rate->high = rate->estimate + half;
    }
}

/* Processes without labels come last. */
static int compare_rows(const void *a, const void *b)
{
    const struct seep_label_row *left = a;
    const struct seep_label_row *right = b;
    int order = compare_text(key_of(left), key_of(right));

    if ((left->key_length == 0) != (right->key_length == 0)) {
        return left->key_length == 0 ? 1 : -1;
    }
    if (order != 0) {
        return order;
    }
    if (left->growth_bytes_per_s.estimate !=
        right->growth_bytes_per_s.estimate) {
        return left->growth_bytes_per_s.estimate >
                       right->growth_bytes_per_s.estimate
                   ? -1
                   : 1;
    }
    return compare_text(value_of(left), value_of(right));
}

int seep_labels_group(const struct seep_report *const *reports, size_t count,
                      struct seep_label_row **ret_rows, size_t *ret_count)
{
    struct rows rows = {.rows = NULL};
    int error = 0;

    for (size_t i = 0; error == 0 && i < count; i++) {
        error = add_labels(&rows, reports[i]);
    }
    if (error != 0) {
        free(rows.rows);
        return error;
    }
    finish(&rows);
    if (rows.count > 0) {
        qsort(rows.rows, rows.count, sizeof(*rows.rows), compare_rows);
    }
    *ret_rows = rows.rows;
    *ret_count = rows.count;
    return 0;
}

bool seep_labels_value(const struct seep_report *report, const char *key,
                       size_t key_length, const char **ret_value,
                       size_t *ret_length)
{
    const char *at = report->labels != NULL ? report->labels : "";

    while (*at != '\0') {
        size_t length = strcspn(at, ",");
        const char *equals = memchr(at, '=', length);
        size_t here = equals != NULL ? (size_t)(equals - at) : length;

        if (key_length > 0 && here == key_length &&
            memcmp(at, key, here) == 0) {
            *ret_value = equals != NULL ? equals + 1 : at + length;
            *ret_length = equals != NULL ? length - here - 1 : 0;
            return true;
        }
        at += length + (at[length] == ',');
    }
    return false;
}
