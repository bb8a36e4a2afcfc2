/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Recordings in the formats of other tools: `seep export`.
 *
 * A format is a row of the table in formats.c. It is given one process after
 * the other, so that no more than one of them need be in memory, and writes to
 * a stream as it goes.
 *
 * What is of a recording is hostile: each format escapes it by its own rules.
 *
 * Errors: 0; -ENOMEM; -EIO if the stream took less; -ENOTSUP of a format that
 * this seep was built without. Threads: one at a time.
 */
#ifndef SEEP_TOOL_EXPORT_EXPORT_H
#define SEEP_TOOL_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "reader/report/report.h"
#include "reader/report/span.h"

/** What a stack weighs: X(SYMBOL, "name", "unit", "words"). */
#define SEEP_EXPORT_WEIGHTS(X)                                           \
    X(LIVE, "live", "bytes", "bytes that live")                          \
    X(COUNT, "count", "count", "blocks that live")                       \
    X(ALLOCATED, "allocated", "bytes", "bytes that were allocated")      \
    X(ALLOCATIONS, "allocations", "count", "blocks that were allocated") \
    X(GROWTH, "growth", "bytes", "bytes that it grows by in a second")

enum seep_export_weight {
#define SEEP_EXPORT_VALUE(symbol, name, unit, words) SEEP_EXPORT_##symbol,
    SEEP_EXPORT_WEIGHTS(SEEP_EXPORT_VALUE)
#undef SEEP_EXPORT_VALUE
        SEEP_EXPORT_WEIGHT_COUNT
};

/** The name, the unit and the words of a weight. */
const char *seep_export_weight_name(enum seep_export_weight weight);
const char *seep_export_weight_unit(enum seep_export_weight weight);
const char *seep_export_weight_words(enum seep_export_weight weight);

/** One stack of a process, and what it weighs: whole numbers. */
struct seep_export_stack {
    const struct seep_report_site *site; /* its frames, space and thread */
    const char *site_id; /* of the row that it is in; "" of none */
    int64_t weights[SEEP_EXPORT_WEIGHT_COUNT];
};

/** One export at work. */
struct seep_export {
    FILE *file;
    enum seep_export_weight weight; /* that is asked for, or shown first */
    const struct seep_span *span; /* of the process at hand, which is by stack;
                                     NULL: all of the run */
    size_t process_count;         /* more than 1: processes are told apart */
    bool has_symbols;             /* functions were looked up */
    void *state;                  /* the format's own; NULL at first */
};

/**
 * How many stacks a process has, and the one at @index. What a row grows by is
 * shared out by what its stacks hold. Of a span, what is not known of a stack
 * weighs nothing.
 */
size_t seep_export_stack_count(const struct seep_export *export,
                               const struct seep_report *report);
void seep_export_stack_at(const struct seep_export *export,
                          const struct seep_report *report, size_t index,
                          struct seep_export_stack *ret_stack);

struct seep_export_format {
    const char *name;
    bool is_binary;
    bool has_stacks; /* each by itself; else rows as they are judged */
    /** What stands before the first process. NULL: nothing. */
    int (*begin)(struct seep_export *export);
    /** NULL: it is the page, which is made of all processes at once. */
    int (*add)(struct seep_export *export, const struct seep_report *report);
    /** What stands after the last; gives back .state in any case. */
    int (*end)(struct seep_export *export);
};

/** @return NULL: @index is behind the last */
const struct seep_export_format *seep_export_format_at(size_t index);

/** "handle (serve.py:31)", "json_parse", "libfoo.so+0x1234"; as the recording
 * has it. To be freed; NULL without memory. */
char *seep_export_frame(const struct seep_report_frame *frame);

/** What a process is called beside others: "python3 serve.py (4242)". To be
 * freed; NULL without memory. */
char *seep_export_process(const struct seep_report *report);

/* The formats, each in its file. */

int seep_folded_add(struct seep_export *export,
                    const struct seep_report *report);

int seep_speedscope_begin(struct seep_export *export);
int seep_speedscope_add(struct seep_export *export,
                        const struct seep_report *report);
int seep_speedscope_end(struct seep_export *export);

int seep_trace_begin(struct seep_export *export);
int seep_trace_add(struct seep_export *export,
                   const struct seep_report *report);
int seep_trace_end(struct seep_export *export);

int seep_csv_begin(struct seep_export *export);
int seep_csv_add(struct seep_export *export, const struct seep_report *report);

int seep_jsonl_add(struct seep_export *export,
                   const struct seep_report *report);

int seep_pprof_begin(struct seep_export *export);
int seep_pprof_add(struct seep_export *export,
                   const struct seep_report *report);
int seep_pprof_end(struct seep_export *export);

#endif
