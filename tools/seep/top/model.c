/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is shown: processes, rows, the selection. Invariant: .rows point into
 * .all, .all is of the report .process, and the selected row is one of .rows.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "text/report.h"
#include "top/top.h"
#include "words/words.h"

const char *const seep_top_sort_names[SEEP_TOP_SORT_COUNT] = {
#define SORT_NAME(symbol, name, key) name,
    SEEP_TOP_SORTS(SORT_NAME)
#undef SORT_NAME
};

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
    seep_families_fini(&model->families);
    free(model->path);
    model->path = NULL;
}

const struct seep_report *
seep_top_model_report(const struct seep_top_model *model)
{
    return model->report_count > 0 ? model->reports[model->process] : NULL;
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

static int compare_rows(const void *left, const void *right, void *context)
{
    const struct seep_top_row *a = *(const struct seep_top_row *const *)left;
    const struct seep_top_row *b = *(const struct seep_top_row *const *)right;
    const struct seep_top_model *model = context;
    int order = 0;

    if (model->sort == SEEP_TOP_BY_LIVE) {
        order = (a->site->live_bytes < b->site->live_bytes) -
                (a->site->live_bytes > b->site->live_bytes);
    } else if (model->sort == SEEP_TOP_BY_COUNT) {
        order = (a->site->live_count < b->site->live_count) -
                (a->site->live_count > b->site->live_count);
    } else if (model->sort == SEEP_TOP_BY_WHERE) {
        order = strcmp(where_of(a), where_of(b));
    }
    /* Rows of .all lie in the report's order, which decides between equals. */
    return order != 0 ? order : (a > b) - (a < b);
}

/* The same rows, filtered and in order. */
static void arrange(struct seep_top_model *model)
{
    size_t row = 0;

    model->row_count = 0;
    for (size_t i = 0; model->rows != NULL && i < model->all_count; i++) {
        if (passes(model, &model->all[i])) {
            model->rows[model->row_count++] = &model->all[i];
        }
    }
    if (model->row_count > 1) {
        qsort_r(model->rows, model->row_count, sizeof(*model->rows),
                compare_rows, model);
    }
    while (row < model->row_count && *model->site_id != '\0' &&
           strcmp(model->rows[row]->site->id, model->site_id) != 0) {
        row++;
    }
    if (row == model->row_count) { /* gone: whoever came in its place */
        row = model->row < row ? model->row : row - (row > 0);
    }
    model->row = row;
}

/* The rows of the process that is selected now. */
static void show(struct seep_top_model *model)
{
    const struct seep_report *report = seep_top_model_report(model);
    size_t count = report == NULL ? 0 : report->site_count;

    forget_rows(model);
    model->all = calloc(count + 1, sizeof(*model->all));
    model->rows = calloc(count + 1, sizeof(*model->rows));
    for (size_t i = 0; model->all != NULL && i < count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (site->suppressed_by == NULL) {
            model->all[model->all_count++] =
                (struct seep_top_row){site, seep_words_chain(report, site)};
        }
    }
    arrange(model);
}

void seep_top_model_take(struct seep_top_model *model,
                         const struct seep_report *const *reports, size_t count)
{
    seep_families_fini(&model->families); /* point into those of before */
    model->families = (struct seep_families){0};
    model->reports = reports;
    model->report_count = count;
    model->process = 0;
    seep_families_make(reports, count, &model->families);
    for (size_t i = 0; i < count && model->path != NULL; i++) {
        if (strcmp(reports[i]->path, model->path) == 0) {
            model->process = i;
        }
    }
    show(model);
}

/*
 * What a key does. Invariant: while a filter is typed every character is a
 * part of it; at any other time a key that means nothing changes nothing.
 */

#define PAGE_ROWS 10

static void choose_row(struct seep_top_model *model, size_t row)
{
    model->row = row;
    if (row < model->row_count) {
        memcpy(model->site_id, model->rows[row]->site->id,
               sizeof(model->site_id));
        model->site_id[sizeof(model->site_id) - 1] = '\0';
    }
}

static enum seep_top_answer choose_process(struct seep_top_model *model,
                                           size_t process)
{
    if (process >= model->report_count) {
        return SEEP_TOP_NOTHING;
    }
    free(model->path);
    model->path = strdup(model->reports[process]->path);
    model->process = process;
    model->row = 0;
    *model->site_id = '\0';
    model->scroll = 0;
    model->pane = SEEP_TOP_SITES;
    show(model);
    return SEEP_TOP_DRAW;
}

static enum seep_top_answer step_process(struct seep_top_model *model,
                                         size_t step)
{
    size_t count = model->report_count;

    return count < 2 ? SEEP_TOP_NOTHING
                     : choose_process(model, (model->process + step) % count);
}

static size_t moved(size_t at, size_t count, int key)
{
    size_t last = count > 0 ? count - 1 : 0;

    switch (key) {
    case SEEP_TOP_KEY_UP:
    case 'k':
        return at - (at > 0);
    case SEEP_TOP_KEY_DOWN:
    case 'j':
        return at + (at < last);
    case SEEP_TOP_KEY_PAGE_UP:
        return at > PAGE_ROWS ? at - PAGE_ROWS : 0;
    case SEEP_TOP_KEY_PAGE_DOWN:
        return at + PAGE_ROWS < last ? at + PAGE_ROWS : last;
    case SEEP_TOP_KEY_HOME:
        return 0;
    case SEEP_TOP_KEY_END:
        return last;
    default:
        return at;
    }
}

/* How far a text can be scrolled only the frame knows: it takes less. */
static enum seep_top_answer move(struct seep_top_model *model, int key)
{
    if (model->pane != SEEP_TOP_SITES) {
        model->scroll = moved(model->scroll, SIZE_MAX, key);
        return SEEP_TOP_DRAW;
    }
    if (model->row_count == 0) {
        return SEEP_TOP_NOTHING;
    }
    choose_row(model, moved(model->row, model->row_count, key));
    if (key == SEEP_TOP_KEY_HOME) {
        *model->site_id = '\0'; /* the first, whichever that will be */
    }
    return SEEP_TOP_DRAW;
}

static void open_pane(struct seep_top_model *model, enum seep_top_pane pane)
{
    model->pane = pane;
    model->scroll = 0;
}

static void add_to_filter(struct seep_top_model *model, int key)
{
    char text[MB_LEN_MAX];
    size_t used = strlen(model->filter);
    int length = wctomb(text, (wchar_t)key);

    if (length > 0 && used + (size_t)length < sizeof(model->filter)) {
        *(char *)mempcpy(model->filter + used, text, (size_t)length) = '\0';
    }
}

/* A whole character goes. */
static void take_from_filter(struct seep_top_model *model)
{
    size_t used = strlen(model->filter);

    while (used > 0 && (model->filter[used - 1] & 0xc0) == 0x80) {
        used--;
    }
    model->filter[used - (used > 0)] = '\0';
}

static enum seep_top_answer type(struct seep_top_model *model, int key)
{
    switch (key) {
    case SEEP_TOP_KEY_ENTER:
    case '\n':
        model->typing = false;
        return SEEP_TOP_DRAW;
    case SEEP_TOP_KEY_ESCAPE:
        model->typing = false;
        *model->filter = '\0';
        break;
    case SEEP_TOP_KEY_BACKSPACE:
    case '\b':
        take_from_filter(model);
        break;
    default:
        if (key < ' ' || key > 0xffff) {
            return SEEP_TOP_NOTHING;
        }
        add_to_filter(model, key);
    }
    arrange(model);
    return SEEP_TOP_DRAW;
}

/* All, then each that the process uses, then all. */
static enum seep_top_answer next_space(struct seep_top_model *model)
{
    const struct seep_report *report = seep_top_model_report(model);
    size_t next = 0;

    if (report == NULL || report->space_count == 0) {
        return SEEP_TOP_NOTHING;
    }
    for (size_t i = 0; model->space >= 0 && i < report->space_count; i++) {
        if ((int)report->spaces[i].space == model->space) {
            next = i + 1;
        }
    }
    model->space =
        next < report->space_count ? (int)report->spaces[next].space : -1;
    arrange(model);
    return SEEP_TOP_DRAW;
}

/* Along 0.5, 1, 2, 5, 10, ... seconds. */
static enum seep_top_answer change_interval(struct seep_top_model *model,
                                            bool longer)
{
    static const double steps_s[] = {0.5, 1, 2, 5, 10, 30, 60, 300};
    size_t count = sizeof(steps_s) / sizeof(steps_s[0]);

    for (size_t i = 0; i < count; i++) {
        if (longer && steps_s[i] > model->interval_s) {
            model->interval_s = steps_s[i];
            return SEEP_TOP_DRAW;
        }
        if (!longer && steps_s[count - 1 - i] < model->interval_s) {
            model->interval_s = steps_s[count - 1 - i];
            return SEEP_TOP_DRAW;
        }
    }
    return SEEP_TOP_NOTHING;
}

static enum seep_top_answer press_letter(struct seep_top_model *model, int key)
{
    static const int sort_keys[] = {
#define SORT_KEY(symbol, name, key) key,
        SEEP_TOP_SORTS(SORT_KEY)
#undef SORT_KEY
    };

    for (size_t i = 0; i < SEEP_TOP_SORT_COUNT; i++) {
        if (key == sort_keys[i]) {
            model->sort = (enum seep_top_sort)i;
            arrange(model);
            return SEEP_TOP_DRAW;
        }
    }
    if (key >= '1' && key <= '9') {
        return choose_process(model, (size_t)(key - '1'));
    }
    switch (key) {
    case 's':
        return next_space(model);
    case 'p':
        model->paused = !model->paused;
        return model->paused ? SEEP_TOP_DRAW : SEEP_TOP_READ;
    case 'r':
        return SEEP_TOP_READ;
    case '+':
    case '=':
        return change_interval(model, true);
    case '-':
        return change_interval(model, false);
    case '/':
        open_pane(model, SEEP_TOP_SITES);
        model->typing = true;
        return SEEP_TOP_DRAW;
    default:
        return SEEP_TOP_NOTHING;
    }
}

static enum seep_top_answer leave(struct seep_top_model *model)
{
    if (model->pane != SEEP_TOP_SITES) {
        open_pane(model, SEEP_TOP_SITES);
    } else if (*model->filter != '\0' || model->space >= 0) {
        *model->filter = '\0';
        model->space = -1;
        arrange(model);
    } else {
        return SEEP_TOP_NOTHING;
    }
    return SEEP_TOP_DRAW;
}

static enum seep_top_answer enter(struct seep_top_model *model)
{
    if (model->pane != SEEP_TOP_SITES) {
        return leave(model);
    }
    if (model->row_count == 0) {
        return SEEP_TOP_NOTHING;
    }
    choose_row(model, model->row);
    open_pane(model, SEEP_TOP_STACK);
    return SEEP_TOP_DRAW;
}

enum seep_top_answer seep_top_model_press(struct seep_top_model *model, int key)
{
    if (model->typing) {
        return type(model, key);
    }
    switch (key) {
    case 'q':
    case 'Q':
        return SEEP_TOP_QUIT;
    case 'h':
    case '?':
        open_pane(model, model->pane == SEEP_TOP_HELP ? SEEP_TOP_SITES
                                                      : SEEP_TOP_HELP);
        return SEEP_TOP_DRAW;
    case SEEP_TOP_KEY_ENTER:
    case '\n':
        return enter(model);
    case SEEP_TOP_KEY_RIGHT:
        return model->pane == SEEP_TOP_SITES ? enter(model) : SEEP_TOP_NOTHING;
    case SEEP_TOP_KEY_LEFT:
    case SEEP_TOP_KEY_ESCAPE:
        return leave(model);
    case SEEP_TOP_KEY_TAB:
        return step_process(model, 1);
    case SEEP_TOP_KEY_BACK_TAB:
        return step_process(model, model->report_count - 1);
    default:
        break;
    }
    return key >= SEEP_TOP_KEY_UP || key == 'j' || key == 'k'
               ? move(model, key)
               : press_letter(model, key);
}
