/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Between the files of `seep top`: what is shown (model.c), a frame of it as
 * lines (frame.c), the thread that reads (source.c), the terminal (screen.c).
 *
 * Errors: 0 or negative errno.
 */
#ifndef SEEP_TOOL_TOP_TOP_H
#define SEEP_TOOL_TOP_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "read/gather.h"
#include "reader/judge/family.h"
#include "reader/report/report.h"
#include "text/page.h"

/*
 * What `seep top` shows, and what a key changes in it: which process, which
 * rows in which order, which of them is selected, what lies over them.
 *
 * Knows no terminal. The selection is of a process and of a site, not of a
 * place on the screen: it stays on them when new reports move them. Reports
 * are not owned; they live until others are given.
 *
 * Errors: without memory there are no rows.
 */

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
    char *where; /* seep_words_chain() */
};

struct seep_top_model {
    const struct seep_report *const *reports; /* worst first */
    size_t report_count;
    struct seep_families families; /* of them; without memory none */
    size_t process;                /* selected; of no reports 0 */
    char *path; /* of a process that was chosen; NULL: the worst */
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

/** @param key  a character or one of enum seep_top_key */
enum seep_top_answer seep_top_model_press(struct seep_top_model *model,
                                          int key);

/** "growth" and so on. */
extern const char *const seep_top_sort_names[SEEP_TOP_SORT_COUNT];

/*
 * A frame as lines of text: who, the verdict, the other processes, memory and
 * its limits, call sites; or the stack of one, or help.
 *
 * A line holds the colour sequences of text/page.h and nothing else that a
 * terminal obeys, and is never wider than was asked for. Pure.
 *
 * Errors: 0 or -ENOMEM.
 */

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
 * style is returned, or a text up to one or the end. */
struct seep_top_piece {
    size_t bytes;
    bool is_style;
    enum seep_style style;
};
struct seep_top_piece seep_top_frame_piece(const char *line);

/*
 * Reports that are read again and again by a thread of their own, so that
 * whoever looks at them never waits.
 *
 * The thread reads, hands over what it read, and waits; the other side takes
 * the newest. What was taken before is closed by the next taking, not earlier.
 * Signals are blocked in the thread if they are where it is started.
 *
 * Errors: 0 or negative errno.
 */

struct seep_top_source;

/** What was read at one time. */
struct seep_top_shot {
    const struct seep_report **reports; /* worst first */
    size_t count;
    char notice[512]; /* what went wrong, or is not shown; "": nothing */
};

/** @param words  and @options, with what it points to, are borrowed
 * @param asks   who holds what leaks, of those that live */
int seep_top_source_open(char *const *words, size_t count,
                         const struct seep_report_options *options, bool asks,
                         double interval_s,
                         struct seep_top_source **ret_source);

/** A descriptor that becomes readable when there is something to take. */
int seep_top_source_fd(const struct seep_top_source *source);

/**
 * The newest, if there is one that was not taken yet.
 *
 * @return NULL: there is none. Valid, with its reports, until the next one.
 */
const struct seep_top_shot *
seep_top_source_take(struct seep_top_source *source);

/** Read so often from now on, not at all if @paused, and at once if @now. */
void seep_top_source_set(struct seep_top_source *source, double interval_s,
                         bool paused, bool now);

/**
 * Does not wait long for a reading that goes on, as of a file system that
 * hangs.
 *
 * @return 0; -EBUSY: the thread still runs. Then nothing that it reads may be
 *         freed: all that is left to do is to end the process.
 */
int seep_top_source_close(struct seep_top_source *source);

/* What the command line of `seep top` asks for. */

struct seep_top_arguments {
    bool once;
    bool json;
    bool asks; /* who holds what leaks */
    double interval_s;
    size_t row_limit; /* of --once; 0: all */
    enum seep_top_sort sort;
    const char *filter; /* "": none */
    enum seep_color color;
    struct seep_report_options report;
    struct seep_knowledge knowledge;
};

/* The live view: reports, keys and signals brought together. */

/** Until q. @return the exit code; does not return after a signal that ends */
int seep_top_live(char *const *words, size_t count,
                  const struct seep_top_arguments *arguments);

#endif
