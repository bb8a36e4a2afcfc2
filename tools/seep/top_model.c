/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is shown: processes, rows, the selection. Invariant: .rows point into
 * .all, .all is of the report .process, and the selected row is one of .rows.
 */
#include "top_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "top_parts.h"
#include "view_sites.h"
#include "words.h"

static const char *const sort_names[] = {
#define SORT_NAME(symbol, name, key) name,
    SEEP_TOP_SORTS(SORT_NAME)
#undef SORT_NAME
};

const char *seep_top_sort_name(enum seep_top_sort sort)
{
    return sort < SEEP_TOP_SORT_COUNT ? sort_names[sort] : "?";
}

int seep_top_sort_parse(const char *name, enum seep_top_sort *ret_sort)
{
    for (size_t i = 0; i < SEEP_TOP_SORT_COUNT; i++) {
        if (strcmp(name, sort_names[i]) == 0) {
            *ret_sort = (enum seep_top_sort)i;
            return 0;
        }
    }
    return -EINVAL;
}

void seep_top_model_init(struct seep_top_model *model, double interval_s)
{
    *model = (struct seep_top_model){.space = -1, .interval_s = interval_s};
}

static void forget_rows(struct seep_top_model *model)
{
    for (size_t i = 0; i < model->all_count; i++) {
        free(model->all[i].where);
    }
    free(model->all);
    free(model->rows);
    model->all = NULL;
    model->rows = NULL;
    model->all_count = 0;
    model->row_count = 0;
}

void seep_top_model_fini(struct seep_top_model *model)
{
    forget_rows(model);
    free(model->path);
    model->path = NULL;
}

const struct seep_report *
seep_top_model_report(const struct seep_top_model *model)
{
    return model->report_count > 0 ? model->reports[model->process] : NULL;
}

const struct seep_top_row *
seep_top_model_row(const struct seep_top_model *model)
{
    return model->row_count > 0 ? model->rows[model->row] : NULL;
}

static const char *where_of(const struct seep_top_row *row)
{
    return row->where == NULL ? "" : row->where;
}

static bool passes(const struct seep_top_model *model,
                   const struct seep_top_row *row)
{
    const struct seep_report *report = seep_top_model_report(model);
    char place[SEEP_WORDS_GPU_BYTES];

    if (model->space >= 0 && (int)row->site->space != model->space) {
        return false;
    }
    return *model->filter == '\0' ||
           strcasestr(where_of(row), model->filter) != NULL ||
           strcasestr(seep_class_name(row->site->class), model->filter) !=
               NULL ||
           strcasestr(seep_words_place(report, row->site, place),
                      model->filter) != NULL;
}

/* Rows of .all lie in the report's order, which decides between equals. */
static int by_place(const struct seep_top_row *a, const struct seep_top_row *b)
{
    return (a > b) - (a < b);
}

static int by_live(const void *left, const void *right)
{
    const struct seep_top_row *a = *(const struct seep_top_row *const *)left;
    const struct seep_top_row *b = *(const struct seep_top_row *const *)right;
    int order = (a->site->live_bytes < b->site->live_bytes) -
                (a->site->live_bytes > b->site->live_bytes);

    return order != 0 ? order : by_place(a, b);
}

static int by_count(const void *left, const void *right)
{
    const struct seep_top_row *a = *(const struct seep_top_row *const *)left;
    const struct seep_top_row *b = *(const struct seep_top_row *const *)right;
    int order = (a->site->live_count < b->site->live_count) -
                (a->site->live_count > b->site->live_count);

    return order != 0 ? order : by_place(a, b);
}

static int by_where(const void *left, const void *right)
{
    const struct seep_top_row *a = *(const struct seep_top_row *const *)left;
    const struct seep_top_row *b = *(const struct seep_top_row *const *)right;
    int order = strcmp(where_of(a), where_of(b));

    return order != 0 ? order : by_place(a, b);
}

static void sort_rows(struct seep_top_model *model)
{
    static int (*const orders[])(const void *, const void *) = {
        [SEEP_TOP_BY_LIVE] = by_live,
        [SEEP_TOP_BY_COUNT] = by_count,
        [SEEP_TOP_BY_WHERE] = by_where,
    };

    if (model->row_count > 1 && orders[model->sort] != NULL) {
        qsort(model->rows, model->row_count, sizeof(*model->rows),
              orders[model->sort]);
    }
}

void seep_top_model_arrange(struct seep_top_model *model)
{
    size_t row = 0;

    model->row_count = 0;
    for (size_t i = 0; model->rows != NULL && i < model->all_count; i++) {
        if (passes(model, &model->all[i])) {
            model->rows[model->row_count++] = &model->all[i];
        }
    }
    sort_rows(model);
    while (row < model->row_count && *model->site_id != '\0' &&
           strcmp(model->rows[row]->site->id, model->site_id) != 0) {
        row++;
    }
    if (row == model->row_count) { /* gone: whoever came in its place */
        row = model->row < row ? model->row : row - (row > 0);
    }
    model->row = row;
}

void seep_top_model_show(struct seep_top_model *model)
{
    const struct seep_report *report = seep_top_model_report(model);
    size_t count = report == NULL ? 0 : report->site_count;

    forget_rows(model);
    model->all = calloc(count + 1, sizeof(*model->all));
    model->rows = calloc(count + 1, sizeof(*model->rows));
    for (size_t i = 0; model->all != NULL && i < count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (site->suppressed_by == NULL) {
            model->all[model->all_count++] = (struct seep_top_row){
                site, seep_view_sites_chain(report, site)};
        }
    }
    seep_top_model_arrange(model);
}

void seep_top_model_take(struct seep_top_model *model,
                         const struct seep_report *const *reports, size_t count)
{
    model->reports = reports;
    model->report_count = count;
    model->process = 0;
    for (size_t i = 0; i < count && model->path != NULL; i++) {
        if (strcmp(reports[i]->path, model->path) == 0) {
            model->process = i;
        }
    }
    seep_top_model_show(model);
}
