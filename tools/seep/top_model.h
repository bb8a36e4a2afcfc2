/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What `seep top` shows, and what a key changes in it: which process, which
 * rows in which order, which of them is selected, what lies over them.
 *
 * Knows no terminal. The selection is of a process and of a site, not of a
 * place on the screen: it stays on them when new reports move them. Reports
 * are not owned; they live until others are given.
 *
 * Errors: without memory there are no rows.
 */
#ifndef SEEP_TOOL_TOP_MODEL_H
#define SEEP_TOOL_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "reader/report.h"

#define SEEP_TOP_FILTER_BYTES 64
#define SEEP_TOP_INTERVAL_LEAST_S 0.5
#define SEEP_TOP_INTERVAL_MOST_S 300.0

/** X(SYMBOL, "name", key). GROWTH is the order of the report: what may be a
 * leak, by the lower bound of its growth, then the rest. */
#define SEEP_TOP_SORTS(X)    \
    X(GROWTH, "growth", 'g') \
    X(LIVE, "live", 'l')     \
    X(COUNT, "count", 'n')   \
    X(WHERE, "where", 'w')

enum seep_top_sort {
#define SEEP_TOP_SORT_VALUE(symbol, name, key) SEEP_TOP_BY_##symbol,
    SEEP_TOP_SORTS(SEEP_TOP_SORT_VALUE)
#undef SEEP_TOP_SORT_VALUE
        SEEP_TOP_SORT_COUNT
};

enum seep_top_pane { SEEP_TOP_SITES, SEEP_TOP_STACK, SEEP_TOP_HELP };

/** Keys are characters (Unicode), or these. */
enum seep_top_key {
    SEEP_TOP_KEY_ENTER = 0x0d,
    SEEP_TOP_KEY_TAB = 0x09,
    SEEP_TOP_KEY_ESCAPE = 0x1b,
    SEEP_TOP_KEY_BACKSPACE = 0x7f,
    SEEP_TOP_KEY_UP = 0x110000,
    SEEP_TOP_KEY_DOWN,
    SEEP_TOP_KEY_LEFT,
    SEEP_TOP_KEY_RIGHT,
    SEEP_TOP_KEY_PAGE_UP,
    SEEP_TOP_KEY_PAGE_DOWN,
    SEEP_TOP_KEY_HOME,
    SEEP_TOP_KEY_END,
    SEEP_TOP_KEY_BACK_TAB
};

enum seep_top_answer {
    SEEP_TOP_NOTHING, /* the key means nothing here */
    SEEP_TOP_DRAW,    /* what is shown has changed */
    SEEP_TOP_READ,    /* and is to be read again now */
    SEEP_TOP_QUIT
};

struct seep_top_row {
    const struct seep_report_site *site;
    char *where; /* seep_view_sites_chain() */
};

struct seep_top_model {
    const struct seep_report *const *reports; /* worst first */
    size_t report_count;
    size_t process; /* selected; of no reports 0 */
    char *path;     /* of a process that was chosen; NULL: the worst */
    struct seep_top_row *all;
    size_t all_count;
    const struct seep_top_row **rows; /* that pass the filters, in order */
    size_t row_count;
    size_t row;       /* selected */
    char site_id[20]; /* of a row that was chosen; "": the first */
    enum seep_top_sort sort;
    enum seep_top_pane pane;
    size_t scroll; /* of what lies over the rows */
    char filter[SEEP_TOP_FILTER_BYTES];
    bool typing; /* the filter */
    int space;   /* only rows of it; -1: of all */
    bool paused;
    double interval_s;
};

void seep_top_model_init(struct seep_top_model *model, double interval_s);
void seep_top_model_fini(struct seep_top_model *model);

/** Show these from now on, worst first. */
void seep_top_model_take(struct seep_top_model *model,
                         const struct seep_report *const *reports,
                         size_t count);

/** The process that is shown; NULL: there is none. */
const struct seep_report *
seep_top_model_report(const struct seep_top_model *model);

/** The selected row; NULL: there is none. */
const struct seep_top_row *
seep_top_model_row(const struct seep_top_model *model);

/** @param key  a character or one of enum seep_top_key */
enum seep_top_answer seep_top_model_press(struct seep_top_model *model,
                                          int key);

/** "growth" and so on. @return -EINVAL for what is no name of one */
const char *seep_top_sort_name(enum seep_top_sort sort);
int seep_top_sort_parse(const char *name, enum seep_top_sort *ret_sort);

#endif
