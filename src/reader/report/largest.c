/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rows that hold the most and those that rose most, which are shown
 * whatever they are called: people ask for the ones, and the verdict may name
 * the others. And the row that kept most in the last second of a process that
 * was ended from outside.
 *
 * Invariant: of what imports and the start hold none stands out, unless it
 * grows.
 */
#include <math.h>
#include <string.h>

#include "reader/report/build.h"

#define HOLDERS 3U

/* The bucket that @from_s is in. */
static uint32_t bucket_at(double from_s, uint32_t width_log2, uint32_t count)
{
    uint32_t low = 0;
    uint32_t high = count - 1;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (seep_sites_seconds(ldexp(middle + 1, (int)width_log2)) <= from_s) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Of a row's table, as seep_sites_read_series() makes it, what it takes to tell
 * its rise: of many rows the rest would be most of the time. */
struct ends {
    uint32_t width_log2;
    uint32_t count;
    uint32_t first;
    uint32_t from;
    uint64_t before; /* live at the end of bucket .from */
    uint64_t after;  /* and of the last */
};

static void add_begin(struct ends *ends, uint32_t first_tick)
{
    uint32_t first = first_tick >> ends->width_log2;

    first = first < ends->count ? first : ends->count - 1;
    ends->first = first < ends->first ? first : ends->first;
}

static void add_source(struct ends *ends, struct seep_series_source source,
                       const struct seep_series_course *course)
{
    add_begin(ends, seep_series_begin_of(source).tick);
    ends->before += seep_series_live_at(course, ends->from);
    ends->after += seep_series_live_at(course, ends->count - 1);
}

static void begin(struct ends *ends, uint32_t width_log2, uint32_t count,
                  double from_s)
{
    *ends = (struct ends){.width_log2 = width_log2,
                          .count = count,
                          .first = count - 1,
                          .from = bucket_at(from_s, width_log2, count)};
}

/* On the grid of the run; what of a damaged file is on another is left out. */
static void add_members(const struct seep_sites *sites,
                        const struct seep_site_work *work,
                        struct seep_series_grid grid, struct ends *ends)
{
    for (size_t i = 0; i < work->member_count; i++) {
        const struct seep_site_member *member =
            &sites->members[work->member_first + i];
        struct seep_series_course course;

        if (member->series.kind == SEEP_SERIES_NONE) {
            continue;
        }
        seep_series_read_course(member->series, member->first_tick, grid,
                                &course);
        if (course.width_log2 == ends->width_log2 &&
            course.count == ends->count) {
            add_source(ends, member->series, &course);
        }
    }
    for (size_t i = 0; i < work->loose_count; i++) {
        const struct seep_site_loose *loose =
            &sites->loose[work->loose_first + i];
        uint32_t at = loose->birth_tick >> ends->width_log2;

        at = at < ends->count ? at : ends->count - 1;
        ends->first = at < ends->first ? at : ends->first;
        ends->before += at <= ends->from ? loose->bytes : 0;
        ends->after += loose->bytes;
    }
}

double seep_report_rise_of(const struct seep_report_build *build,
                           const struct seep_site_work *work, double from_s)
{
    struct seep_series_grid grid = seep_clock_grid(&build->clock);
    struct seep_series_course course;
    struct ends ends;

    if (work->member_count <= 1) {
        seep_series_read_course(work->series, work->first_tick, grid, &course);
        begin(&ends, course.width_log2, course.count, from_s);
        add_source(&ends, work->series, &course);
    } else {
        begin(&ends, grid.width_log2,
              (uint32_t)(grid.end_tick >> grid.width_log2) + 1, from_s);
        add_members(&build->sites, work, grid, &ends);
    }
    return (double)ends.after -
           (ends.from >= ends.first ? (double)ends.before : 0);
}

/* The most of what the rows have by @measure, from @least on; SIZE_MAX: none.
 * What stands out already, or is start-up, is passed over. */
static size_t find_most(const struct seep_report_build *build,
                        double (*measure)(const struct seep_report_build *,
                                          const struct seep_site_work *),
                        double least)
{
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < build->sites.count; i++) {
        const struct seep_site_work *work = &build->sites.works[i];
        double value;

        if (work->site.stands_out ||
            !seep_sites_space_is_judged(work->site.space) ||
            (work->site.is_start && !seep_sites_is_loud(&work->site))) {
            continue;
        }
        value = measure(build, work);
        if (value > 0 && value >= least) {
            found = i;
            least = value;
        }
    }
    return found;
}

static double held_of(const struct seep_report_build *build,
                      const struct seep_site_work *work)
{
    return (double)seep_report_held_bytes(&build->report, &work->site);
}

/* By its live bytes, which is what private memory rose by. */
static double rise_of(const struct seep_report_build *build,
                      const struct seep_site_work *work)
{
    double from_s = seep_clock_time_at(&build->clock, SEEP_WINDOW_SETTLE);

    return seep_sites_has_series(work)
               ? seep_report_rise_of(build, work, from_s)
               : 0;
}

/* By what of it was born since and lives, as the verdict counts it. */
static double born_of(const struct seep_report_build *build,
                      const struct seep_site_work *work)
{
    (void)build;
    return seep_growth_sum(work->site.window_bytes, 1, SEEP_GROWTH_WINDOWS);
}

static void note_freed(struct seep_report_build *build)
{
    struct seep_report *report = &build->report;
    double live = 0;
    double peak = 0;

    for (size_t i = 0; i < build->sites.count; i++) {
        live += (double)build->sites.works[i].site.live_bytes;
        peak += (double)build->sites.works[i].site.peak_bytes;
    }
    report->freed_all = report->state == SEEP_STATE_EXITED && peak / 2 > live;
}

size_t seep_report_show_largest(struct seep_report_build *build, size_t count)
{
    struct seep_site_work *works = build->sites.works;
    double floor_bytes = seep_sites_floor_bytes(0);
    size_t found[HOLDERS + 2];

    note_freed(build);
    for (size_t i = 0; i < HOLDERS + 2; i++) {
        found[i] = i < HOLDERS    ? find_most(build, held_of, 0)
                   : i == HOLDERS ? find_most(build, rise_of, floor_bytes)
                                  : find_most(build, born_of, floor_bytes);
        if (found[i] != SIZE_MAX) {
            works[found[i]].site.stands_out = true;
        }
    }
    for (size_t i = count; i < build->sites.count; i++) {
        if (works[i].site.stands_out) {
            struct seep_site_work work = works[i];

            memmove(&works[count + 1], &works[count],
                    (i - count) * sizeof(work));
            works[count++] = work;
        }
    }
    return count;
}

/*
 * What a process that was ended from outside did last: how much it took and
 * gave back, and which line kept most of it.
 *
 * Invariant: of one that ended by itself nothing is said.
 */

#define SPAN_S 1.0 /* at least, in whole buckets of the run */

/* The first bucket of the last second. */
static uint32_t first_of_last(const struct seep_clock *clock)
{
    uint32_t first = clock->count - 1;
    double end_s = seep_sites_seconds((double)clock->end_tick);

    while (first > 0 &&
           end_s - seep_sites_seconds(ldexp(first, (int)clock->width_log2)) <
               SPAN_S) {
        first--;
    }
    return first;
}

/* What row @work kept of what it took since bucket @first. */
static double add_row(const struct seep_report_build *build,
                      const struct seep_site_work *work, uint32_t first,
                      struct seep_report_last *last)
{
    struct seep_series_table table;
    double stayed = 0;

    seep_sites_read_series(&build->sites, work, seep_clock_grid(&build->clock),
                           &table);
    for (uint32_t i = first; i < table.count; i++) {
        double taken = (double)table.buckets[i].allocated_bytes;
        double given = (double)table.buckets[i].freed_bytes;

        last->allocated_bytes += taken;
        last->freed_bytes += given;
        stayed += taken - given;
    }
    return stayed;
}

int seep_report_add_last(struct seep_report_build *build)
{
    struct seep_report *report = &build->report;
    struct seep_report_last last = {.where = ""};
    uint32_t first = first_of_last(&build->clock);

    report->last = last;
    if (!(report->duration_s >= SPAN_S)) {
        return 0;
    }
    if (report->state != SEEP_STATE_KILLED &&
        report->state != SEEP_STATE_GONE) {
        return 0;
    }
    for (size_t i = 0; i < build->sites.count; i++) {
        const struct seep_site_work *work = &build->sites.works[i];

        if (seep_sites_space_holds(work->site.space) &&
            seep_sites_has_series(work)) {
            double stayed = add_row(build, work, first, &last);

            if (stayed > last.stayed_bytes) {
                last.stayed_bytes = stayed;
                last.where = work->site.where != NULL ? work->site.where : "";
            }
        }
    }
    last.span_s =
        seep_sites_seconds((double)build->clock.end_tick -
                           ldexp(first, (int)build->clock.width_log2));
    report->last = last;
    return 0;
}
