/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What it cost to record: processor time in the target process, room in the
 * tables of the recording, and events that were lost.
 *
 * Invariant: a cost that could not be measured is the most that it can be.
 */
#include <elf.h>
#include <math.h>

#include "base/word.h"
#include "reader/report/build.h"

#define CLOCK_ENOUGH_S 1.0 /* then an error of the clock is 2 % */
#define CLOCK_ERROR_S 0.01
#define TIMED_LEAST 16.0 /* events, for what they cost on average */
#define DEAREST_S 1e-4   /* an event, where none could be measured */

static double counted(const struct seep_view *view, enum seep_counter counter)
{
    return (double)seep_word_load(&view->counters[counter]);
}

/*
 * Seconds a cycle. The clock goes by steps of 4 ms, of 10 on some kernels,
 * which is much of a short run: then it is the most that it can be, and no more
 * than the slowest counter there is takes, 1 GHz of x86, 1 MHz of others.
 */
static double cycle_s(const struct seep_rec_header *header, bool *at_most)
{
    double slowest = header->elf_machine == EM_X86_64 ? 1e-9 : 1e-6;
    double cycles = (double)seep_word_load(&header->last_cycles) -
                    (double)header->start_cycles;
    double s = ((double)seep_word_load(&header->last_ns) -
                (double)header->start_monotonic_ns) /
               1e9;

    if (cycles > 0 && s >= CLOCK_ENOUGH_S) {
        return s / cycles;
    }
    *at_most = true;
    return cycles > 0 && s >= 0 ? fmin((s + CLOCK_ERROR_S) / cycles, slowest)
                                : slowest;
}

/*
 * Cycles of the measured events, those of one in 64 spread over all that were
 * not measured, as seconds. Where too few were to tell, each of the rest counts
 * as the dearest kind of them: the first, which make stacks and touch pages.
 */
static void add_time(const struct seep_view *view, struct seep_report *report)
{
    double first = counted(view, SEEP_COUNT_FIRST_EVENTS);
    double timed = counted(view, SEEP_COUNT_TIMED_EVENTS);
    double first_cycles = counted(view, SEEP_COUNT_FIRST_CYCLES);
    double timed_cycles = counted(view, SEEP_COUNT_TIMED_CYCLES);
    double rest = fmax(0, counted(view, SEEP_COUNT_EVENTS) - first);
    double mean = timed > 0 ? timed_cycles / timed : 0;
    bool at_most = false;

    if (first <= 0 && timed <= 0) {
        report->cost_s = rest * DEAREST_S;
        report->cost_at_most = rest > 0;
        return;
    }
    if (timed < TIMED_LEAST && rest > 0) {
        mean = fmax(mean, first > 0 ? first_cycles / first : 0);
        at_most = true;
    }
    report->cost_s =
        (first_cycles + mean * rest) * cycle_s(view->header, &at_most);
    report->cost_at_most = at_most;
}

/* Seep spends the time of the process's own threads, and no more than that. */
static void bound_by_processor_time(const struct seep_view *view,
                                    struct seep_report *report)
{
    double processor_s =
        (double)seep_word_load(&view->header->processor_ns) / 1e9;

    if (processor_s > 0 && report->cost_s > processor_s) {
        report->cost_s = processor_s;
        report->cost_at_most = true;
    }
}

static void add_usage(struct seep_report_build *build)
{
    struct seep_report *report = &build->report;
    const struct seep_view *view = &build->snapshot.view;
    struct seep_rec_header *header = view->header;
    /* The copy has less of some, and more of others. */
    const struct seep_rec_section *sections = header->sections;
    uint32_t blocks = view->shard_count > 0 ? view->shard_count - 1 : 0;
    uint64_t live = 0;

    for (uint32_t i = 0; i < blocks; i++) {
        live += seep_word_load(&view->shards[i].live_count);
    }
    report->usage_sites.used = seep_word_load(&header->site_count);
    report->usage_sites.capacity = sections[SEEP_SECTION_SITES].entry_count;
    report->usage_stacks.used = seep_word_load(&header->stack_count);
    report->usage_stacks.capacity = view->stack_capacity;
    report->usage_series.used = seep_word_load(&header->series_count);
    report->usage_series.capacity = sections[SEEP_SECTION_SERIES].entry_count;
    report->usage_modules.used = seep_word_load(&header->module_count);
    report->usage_modules.capacity = view->module_capacity;
    report->usage_codes.used = seep_word_load(&header->code_count);
    report->usage_codes.capacity = sections[SEEP_SECTION_CODES].entry_count;
    report->usage_live.used = live < UINT32_MAX ? (uint32_t)live : UINT32_MAX;
    report->usage_live.capacity =
        sections[SEEP_SECTION_LIVE].entry_count - header->range_slots;
    if (view->shard_count > 0) {
        live = seep_word_load(&view->shards[blocks].live_count);
        report->usage_ranges.used =
            live < UINT32_MAX ? (uint32_t)live : UINT32_MAX;
    }
    report->usage_ranges.capacity = header->range_slots;
}

void seep_report_add_cost(struct seep_report_build *build)
{
    add_time(&build->snapshot.view, &build->report);
    bound_by_processor_time(&build->snapshot.view, &build->report);
    add_usage(build);
}

bool seep_report_has_lost(const struct seep_snapshot *snapshot)
{
    static const enum seep_counter counters[] = {
        SEEP_COUNT_DROPPED_ALLOCS, SEEP_COUNT_DROPPED_FREES,
        SEEP_COUNT_NESTED,         SEEP_COUNT_TORN,
        SEEP_COUNT_LIVE_FULL,      SEEP_COUNT_LOST_FREES_CLOSED,
        SEEP_COUNT_SITES_FULL,     SEEP_COUNT_RESTORE_LOST,
        SEEP_COUNT_START_MISSED,   SEEP_COUNT_THINNED_BLOCKS,
        SEEP_COUNT_RANGES_FULL,
    };

    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        if (seep_word_load(&snapshot->view.counters[counters[i]]) != 0) {
            return true;
        }
    }
    return snapshot->torn_slots != 0 || snapshot->torn_sites != 0 ||
           snapshot->restless_shards != 0;
}

double seep_report_lost_share(const struct seep_view *view)
{
    double dropped = counted(view, SEEP_COUNT_DROPPED_ALLOCS) +
                     counted(view, SEEP_COUNT_DROPPED_FREES);
    double all = counted(view, SEEP_COUNT_EVENTS) + dropped;

    return all > 0 ? fmin(1, (dropped + counted(view, SEEP_COUNT_LIVE_FULL) +
                              counted(view, SEEP_COUNT_RANGES_FULL)) /
                                 all)
                   : 0;
}
