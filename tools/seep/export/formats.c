/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of formats, and what they have in common: what a stack weighs and
 * how frames are called.
 *
 * Invariant: the weights of a process, summed by space, are the totals that
 * `seep report --json` has.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "export/export.h"
#include "words/words.h"

static const struct seep_export_format formats[] = {
    {"pprof", true, true, seep_pprof_begin, seep_pprof_add, seep_pprof_end},
    {"folded", false, true, NULL, seep_folded_add, NULL},
    {"speedscope", false, true, seep_speedscope_begin, seep_speedscope_add,
     seep_speedscope_end},
    {"perfetto", false, false, seep_trace_begin, seep_trace_add,
     seep_trace_end},
    {"csv", false, false, seep_csv_begin, seep_csv_add, NULL},
    {"jsonl", false, false, NULL, seep_jsonl_add, NULL},
    {"html", false, true, NULL, NULL, NULL},
};

const struct seep_export_format *seep_export_format_at(size_t index)
{
    return index < sizeof(formats) / sizeof(*formats) ? &formats[index] : NULL;
}

static const struct {
    const char *name;
    const char *unit;
    const char *words;
} weights[] = {
#define WEIGHT_ENTRY(symbol, name, unit, words) {name, unit, words},
    SEEP_EXPORT_WEIGHTS(WEIGHT_ENTRY)
#undef WEIGHT_ENTRY
};

const char *seep_export_weight_name(enum seep_export_weight weight)
{
    return weights[weight].name;
}

const char *seep_export_weight_unit(enum seep_export_weight weight)
{
    return weights[weight].unit;
}

const char *seep_export_weight_words(enum seep_export_weight weight)
{
    return weights[weight].words;
}

size_t seep_export_stack_count(const struct seep_export *export,
                               const struct seep_report *report)
{
    return export->span != NULL ? report->site_count : report->stack_count;
}

/* Of a damaged recording a figure may be anything. */
static int64_t whole(double value)
{
    if (!(fabs(value) < 0x1p62)) {
        return value > 0 ? INT64_MAX : 0;
    }
    return llround(value);
}

static int64_t whole_bytes(uint64_t bytes)
{
    return bytes <= INT64_MAX ? (int64_t)bytes : INT64_MAX;
}

static double growth_of(const struct seep_report_site *row,
                        const struct seep_report_site *site)
{
    return row != NULL && row->has_growth && row->live_bytes > 0
               ? row->growth_bytes_per_s.estimate * (double)site->live_bytes /
                     (double)row->live_bytes
               : 0;
}

static void of_part(const struct seep_span *span, size_t index,
                    struct seep_export_stack *stack)
{
    const struct seep_span_row *row = &span->rows[index];
    int64_t *figures = stack->weights;

    stack->site = &span->report->sites[index];
    stack->site_id =
        *stack->site->line_id != '\0' ? stack->site->line_id : stack->site->id;
    figures[SEEP_EXPORT_LIVE] = whole(row->live_bytes);
    figures[SEEP_EXPORT_COUNT] = whole(row->live_count);
    figures[SEEP_EXPORT_ALLOCATED] = whole(row->allocated_bytes);
    figures[SEEP_EXPORT_ALLOCATIONS] = whole(row->allocated_count);
    figures[SEEP_EXPORT_GROWTH] = whole(seep_span_rate(span, row));
}

static void of_run(const struct seep_report *report, size_t index,
                   struct seep_export_stack *stack)
{
    const struct seep_report_stack *one = &report->stacks[index];
    const struct seep_report_site *site = &one->site;
    const struct seep_report_site *row =
        one->row < report->site_count ? &report->sites[one->row] : NULL;
    int64_t *figures = stack->weights;

    stack->site = site;
    stack->site_id = row == NULL ? "" : row->id;
    figures[SEEP_EXPORT_LIVE] = whole_bytes(site->live_bytes);
    figures[SEEP_EXPORT_COUNT] = whole(site->live_count);
    figures[SEEP_EXPORT_ALLOCATED] = whole_bytes(site->allocated_bytes);
    figures[SEEP_EXPORT_ALLOCATIONS] = whole(site->allocated_count);
    figures[SEEP_EXPORT_GROWTH] = whole(growth_of(row, site));
}

void seep_export_stack_at(const struct seep_export *export,
                          const struct seep_report *report, size_t index,
                          struct seep_export_stack *ret_stack)
{
    if (export->span != NULL) {
        of_part(export->span, index, ret_stack);
    } else {
        of_run(report, index, ret_stack);
    }
}

char *seep_export_frame(const struct seep_report_frame *frame)
{
    const char *function = *frame->function != '\0' ? frame->function : "?";
    const char *file =
        *frame->file != '\0' ? seep_text_base_name(frame->file) : "?";

    if (frame->python && frame->line > 0) {
        return seep_words_make("%s (%s:%" PRIu32 ")", function, file,
                               frame->line);
    }
    if (frame->python) {
        return seep_words_make("%s (%s)", function, file);
    }
    if (*frame->function != '\0') {
        return strdup(frame->function);
    }
    if (*frame->module == '\0') {
        return seep_words_make("0x%" PRIx64, frame->offset);
    }
    return seep_words_make("%s+0x%" PRIx64, seep_text_base_name(frame->module),
                           frame->offset);
}

char *seep_export_process(const struct seep_report *report)
{
    char *program = seep_words_program(report);
    char *text = seep_words_make("%s (%" PRIu32 ")",
                                 program == NULL ? "?" : program, report->pid);

    free(program);
    return text;
}
