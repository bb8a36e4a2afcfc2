/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A report while it is made; between report.c and its parts.
 *
 * Invariant: nothing in .report points into .snapshot, which is given back
 * before the report is given out.
 *
 * Units: as in report.h. Errors: 0 or negative errno, ret_* untouched. What is
 * taken from .store lives as long as the report. Threads: one at a time.
 */
#ifndef SEEP_READER_REPORT_BUILD_H
#define SEEP_READER_REPORT_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/judge/sites.h"
#include "reader/judge/verdict.h"
#include "reader/process/sample.h"
#include "reader/recording/pack.h"
#include "reader/recording/snapshot.h"
#include "reader/recording/store.h"
#include "reader/report/report.h"

struct seep_names;
struct seep_symboliser;

struct seep_report_build {
    struct seep_report report;          /* first: what is given out */
    struct seep_store store;            /* lives as long as the report */
    struct seep_symboliser *symboliser; /* its strings are the report's; NULL:
                                           no symbols are wanted */
    struct seep_store course;           /* see seep_report_let_go() */
    struct seep_store listed;           /* see seep_report_keep_rows() */
    /* From here on it is there while the report is made. */
    struct seep_snapshot snapshot;
    struct seep_packed packed;
    struct seep_external_samples samples; /* what was seen from outside */
    struct seep_clock clock;
    struct seep_sites sites;
    struct seep_names *names;
    unsigned char *import_parts; /* by site of the recording: of begin.c */
    struct seep_alike **known;   /* by site: of names.c */
    const struct seep_report_options *options;
    /* What is live of the allocator's blocks, and of the other spaces that lie
     * in RSS, at the end of each bucket of the clock. */
    double heap_live[SEEP_BUCKET_COUNT];
    double beside_live[SEEP_BUCKET_COUNT];
    double pinned_live[SEEP_BUCKET_COUNT]; /* of beside_live */
    double file_live[SEEP_BUCKET_COUNT];   /* mapped of files */
    double beside_variance; /* of it, by sampling: of Python's small blocks */
    struct seep_balance_outside outside;
    struct seep_drift open_files_drift; /* of memory.open_files */
    struct seep_device_live devices[SEEP_DEVICES_MAX];
    struct seep_interval caches[SEEP_DEVICES_MAX]; /* see judge/verdict.h */
    /* What of the report's devices has that ordinal; NULL: was not asked. */
    struct seep_report_device *device_of[SEEP_DEVICES_MAX];
};

/* labels.c: what the program said of itself */

int seep_report_add_marks(struct seep_report_build *build);

/** SEEP_LABELS, @given, with what the program said later. NULL: no memory. */
const char *seep_report_labels(struct seep_report_build *build,
                               const char *given);

/* begin.c: when the work began */

/** Which sites are of imports, and the beginning, of the clock, too. */
int seep_report_add_begin(struct seep_report_build *build);

/** Which rows are start-up, and what was kept since; before they are put in
 * order. */
void seep_report_mark_start(struct seep_report_build *build);

/** Add up the rows that are start-up and do not grow. */
void seep_report_add_start(struct seep_report_build *build);

/* names.c: from the words of a stack to frames with names */

/** One stack of a recording. */
struct seep_names_stack {
    uint64_t words[SEEP_STACK_FRAMES_MAX]; /* innermost first */
    uint32_t count;
    enum seep_cut cut;
    const char *thread; /* "" if it has no name of its own */
};

/** Modules and symbols; lists the modules in the report. It is @build's. */
int seep_names_open(struct seep_report_build *build);
/** Which files gave no names, when all were asked. @return 0 or -ENOMEM */
int seep_names_failures(struct seep_report_build *build);
/** All but what the report's frames point into. */
void seep_names_close(struct seep_report_build *build);

/** The stack of site @site of the recording; empty if it has none. */
void seep_names_stack(struct seep_report_build *build, uint32_t site,
                      struct seep_names_stack *ret_stack);

/** Module of a word of machine code: its path; "" if it has none. */
const char *seep_names_module(const struct seep_names *names, uint64_t word);

/**
 * The frames of one word, the innermost inlined call first: 1 to @capacity,
 * which is at least 1. They are the report's, each made once: a stack is a list
 * of 8 bytes a frame.
 */
size_t seep_names_frames(struct seep_report_build *build, uint64_t word,
                         const struct seep_report_frame **frames,
                         size_t capacity);

/** What was found of a stack before; all zero: nothing yet. */
struct seep_alike {
    bool has_part;
    unsigned char part; /* what it has to do with imports */
    bool has_ids;
    uint64_t id; /* of its row; */
    uint64_t line_id;
    /* What is shown of it, of which nothing is the report's; NULL: nothing. */
    const struct seep_report_frame **frames;
    size_t frame_count;
    size_t where_frame;
    const char *where;
};

/** Find it for each site, before there is anything to be known.
 * @return 0 or -ENOMEM */
int seep_names_find_alike(struct seep_report_build *build);

/** Of a site of the recording; NULL: of that nothing can be known. */
struct seep_alike *seep_names_alike(const struct seep_report_build *build,
                                    uint32_t site);

/* cost.c: what it cost to record */

void seep_report_add_cost(struct seep_report_build *build);

/** Is there a loss that makes a total differ from the truth? Of names and of
 * series none does. */
bool seep_report_has_lost(const struct seep_snapshot *snapshot);

/** Of the events of blocks, those that had no place in a ring or a table. */
double seep_report_lost_share(const struct seep_view *view);

/* pools.c: whose memory is handed out where no hook sees it */

/**
 * The allocator inside of a library whose pool each site of the recording is a
 * part of, by its index in SITES: "polars' own jemalloc"; NULL: of none.
 *
 * @param ret_names  to be freed; the texts are the report's
 */
int seep_report_find_pools(struct seep_report_build *build,
                           const char ***ret_names);

/* sites.c: which sites of a recording are one row of its report */

/**
 * The row of each used site of the recording, by its index in SITES.
 *
 * A row's id depends on the space, on the device where there is one, and on
 * what its stacks have in common: of a stack on module names and offsets, of
 * Python on files, names and lines; not on where code lay, in which folder it
 * was installed, nor, but for rows by function and thread, on which symbols
 * could be had.
 *
 * @param ret_keys  to be freed
 */
int seep_group_keys(struct seep_report_build *build,
                    struct seep_site_key **ret_keys);

/* blocks.c: stacks and live blocks of rows */

/** Each stack by itself, if they are asked for; when the order of the rows is
 * the last. */
int seep_report_add_stacks(struct seep_report_build *build);

/** Of each row that is shown, if they were asked for; and all that are known of
 * the heap and of Python, for who looks where one begins. */
int seep_report_add_blocks(struct seep_report_build *build);

#define SEEP_NAME_BYTES 256U

/** A thread by its own @name, else by the task, else by what runs in it.
 * @return as snprintf */
int seep_name_thread(const char *name, const struct seep_report_frame **frames,
                     size_t count, char *text, size_t capacity);

int seep_report_add_sites(struct seep_report_build *build);

/** Frames, ids and names of the first @count of @works, into @sites. */
int seep_report_name_sites(struct seep_report_build *build,
                           const struct seep_site_work *works,
                           struct seep_report_site *sites, size_t count);

/* points.c: what of a row happened when */

/** Its series, and what of it none tells of. */
int seep_report_add_points(struct seep_report_build *build,
                           const struct seep_site_work *work,
                           struct seep_report_site *site);

/* largest.c: what holds and rose most */

/** Mark those rows, and have them among the first.
 * @return how many are first, which were @count */
size_t seep_report_show_largest(struct seep_report_build *build, size_t count);

/** How live bytes of a row with a series changed from @from_s to the end. */
double seep_report_rise_of(const struct seep_report_build *build,
                           const struct seep_site_work *work, double from_s);

/** The row that the verdict names is the first of all. */
void seep_report_show_named(struct seep_report_build *build);

/** What who was ended from outside did last. */
int seep_report_add_last(struct seep_report_build *build);

/* memory.c: where the memory of the process is */

int seep_report_add_spaces(struct seep_report_build *build);
int seep_report_add_memory(struct seep_report_build *build);

/* allocator.c: the allocator of the process */

/** By the path of the object that defines malloc. */
enum seep_allocator_kind seep_report_allocator_of(const char *path);

struct seep_balance_input;
/** Fill .headers_share and .free_most_bytes of @input. */
void seep_report_bound_heap(const struct seep_report_build *build,
                            struct seep_balance_input *input);

/**
 * Is whatever lies in @mapping an allocator's? [heap], and where malloc is
 * glibc's its arenas, which are told by where they begin in all of @samples.
 */
bool seep_report_is_allocator(const struct seep_external_mapping *mapping,
                              const struct seep_external_samples *samples,
                              bool glibc);

/* fills.c: what was there before, and is written to now */

/** Tell of @mappings, those of .memory, whose old blocks they are, and of
 * .memory what a fork copies. Of @until_s and before is what is old.
 * @return 0 or -ENOMEM */
int seep_report_find_fills(struct seep_report_build *build,
                           const struct seep_external_samples *samples,
                           double until_s,
                           struct seep_report_mapping *mappings);

/** The call site whose blocks fill fastest of those; .site NULL: none's. */
struct seep_verdict_fill
seep_report_fill(const struct seep_report_build *build);

/* devices.c: what the driver tells of each GPU */

int seep_report_add_devices(struct seep_report_build *build);

#endif
