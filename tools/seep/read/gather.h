/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * From the paths of a command line to open reports: folders are looked into,
 * what cannot be read is said and counted, the rest is sorted worst first.
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

#endif
