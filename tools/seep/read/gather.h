/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * From a command line to what is read: open reports of its paths, where folders
 * are looked into, what cannot be read is said and counted, the rest is sorted
 * worst first; what the user knows beforehand; the part of a run that is asked
 * for; and the two sides of a comparison.
 */
#ifndef SEEP_TOOL_READ_GATHER_H
#define SEEP_TOOL_READ_GATHER_H

#include <stdbool.h>
#include <stddef.h>

#include "options/option.h"
#include "reader/compare/patterns.h"
#include "reader/compare/suppress.h"
#include "reader/recording/open.h"
#include "reader/recording/store.h"
#include "reader/report/report.h"
#include "reader/report/span.h"
#include "words/compare.h"

struct seep_gathering;

/** What is done with a report, which is the taker's to close.
 * @return 0, or negative errno: then its file counts as refused */
typedef int seep_gather_taker(struct seep_gathering *gathering,
                              struct seep_report *report);

/** Shown each report before it is kept with the others. */
typedef void seep_gather_note(void *context, struct seep_report *report);

struct seep_gathering {
    const struct seep_report **reports; /* worst first */
    size_t count;
    size_t refused_count;
    size_t nameless_count;             /* files whose names were given up */
    struct seep_symbol_memory *memory; /* that the reports point into */
    seep_gather_taker *take;
    seep_gather_note *note; /* NULL: none */
    void *context;          /* the taker's, or the note's */
    struct seep_store store;
    struct seep_store_table said; /* files that it was said of */
};

/** Open all that @paths mean; refusals go to stderr, one line each of
 * the first ten, and how many more. */
void seep_gather(char *const *paths, size_t path_count,
                 const struct seep_report_options *options,
                 struct seep_gathering *ret_gathering);

/** The same, with @note. */
void seep_gather_noted(char *const *paths, size_t path_count,
                       const struct seep_report_options *options,
                       seep_gather_note *note, void *context,
                       struct seep_gathering *ret_gathering);

/** Of so many reports a note keeps all; of more what is told of each in the
 * end. */
#define SEEP_GATHER_WHOLE_MOST 64U

/** Of the first @limit, 0 of all, those that were let go are read once more. */
void seep_gather_read_again(struct seep_gathering *gathering, size_t limit,
                            const struct seep_report_options *options);

void seep_gather_close(struct seep_gathering *gathering);

/**
 * The same one by one: each report is the taker's as soon as it is made, so
 * that the number of recordings is no matter of memory. In the order of the
 * paths and, in a folder, of the names.
 *
 * @return the exit code, as of seep_gather_exit()
 */
int seep_gather_each(char *const *paths, size_t path_count,
                     const struct seep_report_options *options,
                     seep_gather_taker *take, void *context);

#define SEEP_NAMELESS_MEANS "its functions are shown as module+offset"

/** One line on stderr. */
void seep_gather_say_nameless(const struct seep_report_nameless *nameless);

/** Exit code of a reading verb: fine, or failed if something was refused. */
int seep_gather_exit(const struct seep_gathering *gathering);

/** Order of two reports for a reader: class, then growth, then live bytes;
 * those that lived for a moment come last. */
int seep_gather_compare(const struct seep_report *a,
                        const struct seep_report *b);
void seep_gather_sort(const struct seep_report **reports, size_t count);

/** How many of the first tell something: helpers of a script that lived for a
 * moment are left out, unless there is nothing else. They are last. */
size_t seep_gather_held(const struct seep_gathering *gathering);

/*
 * What the user knows beforehand, from the options of `report` and `run`:
 * suppressions, bounds, patterns. The installed patterns come first, so that
 * the user's own count.
 */

struct seep_knowledge {
    struct seep_rules *suppressions;
    struct seep_rules *known;
    struct seep_catalogue *catalogue;
    bool no_patterns;
    struct seep_open_list pattern_files;
    struct seep_open_list suppression_files;
};

/** The options, for struct seep_knowledge, and what takes two of them alone: a
 * file into one of its lists, a bound into the whole. */
extern const struct seep_option seep_knowledge_options[];
seep_option_taker seep_knowledge_take_file;
seep_option_taker seep_knowledge_take_known;

/**
 * Read the files: those of SEEP_SUPPRESSIONS and of the options.
 *
 * @param ret_report  what is to be read with them; it points into @knowledge
 * @return 0, or the exit code after saying which cannot be read
 */
int seep_knowledge_load(struct seep_knowledge *knowledge,
                        struct seep_report_options *ret_report);
void seep_knowledge_close(struct seep_knowledge *knowledge);

/*
 * Times of a run as they are named on the command line, and the options that
 * choose a part of it by them.
 */

/** What is to be named, for an error. */
#define SEEP_WHEN_EXPECTED \
    "a time such as 90s, 1h30m or -5m (before the end), peak, end or a mark"

/**
 * "90s", "1h30m"; "-5m", before the end; "peak", "end"; "mark:NAME", or the
 * name of a mark where it is none of these.
 *
 * @param ret_time  points into @text
 * @return 0; -EINVAL of what is no time and can be no mark
 */
int seep_when_parse(const char *text, struct seep_span_time *ret_time);

/** --since, --until, --at: for struct seep_span_wish. */
extern const struct seep_option seep_when_options[];

/** struct seep_span_time */
seep_option_taker seep_when_take;

/** @return 0; SEEP_EXIT_USAGE after saying that they go not together */
int seep_when_check(const char *verb, const struct seep_span_wish *wish);

/*
 * Recordings parted in two by the values of one label (programs.c).
 */

/**
 * Which two values of @key are compared: those that were named, if
 * @ret_before is not NULL, which must be there; else the only two that there
 * are, in the order of versions ("9" before "10").
 *
 * @return 0; or the exit code after saying what is wrong. The values are to be
 *         freed in any case.
 */
int seep_diff_labels_choose(const char *key,
                            const struct seep_report *const *reports,
                            size_t count, char **ret_before, char **ret_now);

/** Those of @reports that have @value for @key. @return how many */
size_t seep_diff_labels_select(const char *key, const char *value,
                               const struct seep_report *const *reports,
                               size_t count,
                               const struct seep_report **ret_selected);

/*
 * Recordings of two sides, put together by program and compared.
 *
 * Errors: 0 or -ENOMEM. A set points into the reports.
 */

/**
 * Compare what each program did before with what it does now. Where each side
 * ran one program they are compared, whatever its name.
 *
 * @param ret_set  give it to seep_diff_set_close(); .key, the names and
 *                 .refused_count are the caller's to fill
 */
int seep_diff_set_make(const struct seep_report *const *before,
                       size_t before_count,
                       const struct seep_report *const *now, size_t now_count,
                       struct seep_diff_set *ret_set);
void seep_diff_set_close(struct seep_diff_set *set);

/** The exit code of `seep diff`. */
int seep_diff_set_exit(const struct seep_diff_set *set);

#endif
