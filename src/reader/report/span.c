/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows between two borders of the grid of their series.
 *
 * Border 0 is the start, border k the end of bucket k - 1, the last one the end
 * of the run.
 *
 * Invariant: at the last border a row stands at its live bytes, whatever its
 * series says.
 */
#include "reader/report/span.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/view.h"
#include "reader/recording/series.h"

/* Times are sums of powers of two of nanoseconds: they differ by rounding. */
#define SLACK 1e-6
/* All blocks are of one size if the mean is so near to the largest. */
#define UNIFORM 1e-3
/* A temporary part that is known so well is known. */
#define NARROW 0.01

#define SIGMAS 1.96 /* of an interval of 95 % */

struct grid {
    double bucket_s;
    double end_s;
    size_t last; /* the border that is the end */
};

static struct grid grid_of(const struct seep_report *report)
{
    struct grid grid = {report->bucket_s, report->duration_s, 1};

    if (grid.bucket_s > 0 && grid.end_s > grid.bucket_s) {
        grid.last = (size_t)fmin(floor(grid.end_s / grid.bucket_s + SLACK),
                                 SEEP_BUCKET_COUNT) +
                    1;
    }
    return grid;
}

static double time_of(const struct grid *grid, size_t border)
{
    return border >= grid->last
               ? grid->end_s
               : fmin((double)border * grid->bucket_s, grid->end_s);
}

/* The bucket that @point is of. */
static size_t bucket_of(const struct grid *grid,
                        const struct seep_report_point *point)
{
    double bucket = floor(point->start_s / grid->bucket_s + SLACK);

    return bucket > 0 ? (size_t)fmin(bucket, (double)(grid->last - 1)) : 0;
}

/* What stood. */

/* Points of @site before @border. */
static size_t points_before(const struct grid *grid,
                            const struct seep_report_site *site, size_t border)
{
    size_t count = 0;

    while (count < site->point_count &&
           bucket_of(grid, &site->series[count]) < border) {
        count++;
    }
    return count;
}

/* Is it known what stood then? Nothing stood before the first event, and after
 * the last one what stands at the end. */
static bool is_known(const struct grid *grid,
                     const struct seep_report_site *site, size_t border)
{
    const struct seep_report_untold *untold = &site->untold;
    double at_s = time_of(grid, border);

    if (border >= grid->last) {
        return true;
    }
    if (site->point_count == 0) {
        return at_s <= site->first_s || at_s > site->last_s;
    }
    return at_s <= untold->from_s || at_s >= untold->to_s;
}

/* What of the row is live at the end and in no series. */
static double beside(const struct seep_report_site *site)
{
    double told = site->point_count > 0
                      ? (double)site->series[site->point_count - 1].live_bytes
                      : 0;

    return (double)site->live_bytes - told;
}

/* Live bytes at @border, @before points before it; 0 where that is not known.
 */
static double level_of(const struct grid *grid,
                       const struct seep_report_site *site, size_t border,
                       size_t before)
{
    double told = before > 0 ? (double)site->series[before - 1].live_bytes : 0;

    if (border >= grid->last) {
        return (double)site->live_bytes;
    }
    if (!is_known(grid, site, border) ||
        time_of(grid, border) <= site->first_s) {
        return 0;
    }
    return fmax(0, told + beside(site));
}

/* Of the sampling: more of it where more stood. */
static double error_of(const struct seep_report *report,
                       const struct seep_report_site *site, double bytes)
{
    double live = (double)site->live_bytes;
    bool is_sampled = !report->exact && seep_view_is_sampled(site->space);

    if (live > 0) {
        return site->live_bytes_error * sqrt(fmax(bytes, live) / live);
    }
    return is_sampled ? SIGMAS * sqrt(bytes *
                                      (double)(site->space == SEEP_SPACE_TENSOR
                                                   ? report->tensor_sample_bytes
                                                   : report->sample_bytes))
                      : 0;
}

/* Blocks. */

static bool is_uniform(const struct seep_report_site *site)
{
    double allocated = (double)site->allocated_bytes;

    return fabs(site->allocated_count * (double)site->largest_bytes -
                allocated) <= UNIFORM * allocated;
}

/*
 * Blocks at @border, where @bytes stood: at least those that were born before
 * and are live, at the most all that were born before.
 */
static double count_of(const struct grid *grid,
                       const struct seep_report_site *site, size_t border,
                       double bytes, bool *ret_is_estimate)
{
    size_t before = points_before(grid, site, border);
    double least = 0;
    double most = site->untold.allocated_count;
    double mean = site->allocated_bytes > 0
                      ? site->allocated_count / (double)site->allocated_bytes
                      : 0;

    *ret_is_estimate = false;
    if (border >= grid->last) {
        return site->live_count;
    }
    if (!(bytes > 0)) {
        return 0;
    }
    for (size_t i = 0; i < before; i++) {
        const struct seep_report_point *point = &site->series[i];

        least += point->born_count - point->born_freed_count;
        most += point->born_count;
    }
    *ret_is_estimate = !is_uniform(site) && most - least > UNIFORM * most;
    return fmax(fmin(bytes * mean, most), fmin(least, most));
}

/* What happened. */

/* Between the two: bounds by what of those born in it died, and died young. */
static double temporary_of(const struct seep_report_site *site, bool is_whole,
                           double born_freed)
{
    double young = (double)site->temporary_bytes;
    double old = (double)site->died_bytes - young;
    double least = fmax(0, born_freed - old);
    double most = fmin(born_freed, young);

    if (site->untold.freed_bytes > 0) {
        return -1;
    }
    if (is_whole) {
        return young;
    }
    return most - least <= NARROW * most ? most : -1;
}

static void add_flows(const struct grid *grid,
                      const struct seep_report_site *site, size_t from,
                      size_t to, struct seep_span_row *row)
{
    bool is_whole = from == 0 && to >= grid->last;
    size_t end = points_before(grid, site, to);
    double born_freed = 0;

    for (size_t i = points_before(grid, site, from); i < end; i++) {
        const struct seep_report_point *point = &site->series[i];

        row->allocated_bytes += (double)point->allocated_bytes;
        row->allocated_count += point->born_count;
        row->freed_bytes += (double)point->freed_bytes;
        born_freed += (double)point->born_freed_bytes;
    }
    row->temporary_bytes = temporary_of(site, is_whole, born_freed);
    if (is_whole) {
        row->allocated_bytes = (double)site->allocated_bytes;
        row->allocated_count = site->allocated_count;
        row->freed_bytes = (double)site->freed_bytes;
    }
}

/* When it happened is known to lie in an interval of time. */
static void add_untold(const struct grid *grid,
                       const struct seep_report_site *site, size_t from,
                       size_t to, struct seep_span_row *row)
{
    const struct seep_report_untold *untold = &site->untold;
    double from_s = time_of(grid, from);
    double to_s = time_of(grid, to);

    if ((from == 0 && to >= grid->last) || !(untold->from_s < to_s) ||
        !(untold->to_s > from_s)) {
        return;
    }
    if (untold->from_s >= from_s && untold->to_s <= to_s) {
        row->allocated_bytes += (double)untold->allocated_bytes;
        row->allocated_count += untold->allocated_count;
        row->freed_bytes += (double)untold->freed_bytes;
    } else {
        row->untold_bytes = (double)untold->allocated_bytes;
    }
}

static void fill_row(const struct seep_report *report, const struct grid *grid,
                     const struct seep_report_site *site, size_t from,
                     size_t to, struct seep_span_row *row)
{
    bool is_estimate;

    row->knows_live = is_known(grid, site, to);
    row->live_bytes = level_of(grid, site, to, points_before(grid, site, to));
    row->live_bytes_error = error_of(report, site, row->live_bytes);
    row->live_count =
        count_of(grid, site, to, row->live_bytes, &row->live_count_is_estimate);
    row->knows_before = from == 0 || is_known(grid, site, from);
    row->before_bytes =
        from == 0 ? 0
                  : level_of(grid, site, from, points_before(grid, site, from));
    row->before_count =
        count_of(grid, site, from, row->before_bytes, &is_estimate);
    if (row->knows_live && row->knows_before) {
        row->growth_bytes = row->live_bytes - row->before_bytes;
    }
    add_flows(grid, site, from, to, row);
    add_untold(grid, site, from, to, row);
    row->freed_count = from == 0 && to >= grid->last
                           ? site->freed_count
                           : fmax(0, row->before_count + row->allocated_count -
                                         row->live_count);
    row->freed_count_is_estimate = is_estimate || row->live_count_is_estimate;
}

static void add_row(struct seep_span_sum *sum,
                    const struct seep_report_site *site,
                    const struct seep_span_row *row)
{
    sum->live_bytes += row->live_bytes;
    sum->before_bytes += row->before_bytes;
    sum->growth_bytes += row->growth_bytes;
    sum->allocated_bytes += row->allocated_bytes;
    sum->freed_bytes += row->freed_bytes;
    if (!row->knows_live || !row->knows_before) {
        sum->unknown_count++;
        sum->unknown_bytes += fmax((double)site->untold.allocated_bytes,
                                   (double)site->peak_bytes);
    }
    if (row->untold_bytes > 0) {
        sum->untold_count++;
        sum->untold_bytes += row->untold_bytes;
    }
}

/* The peak. */

/* Of what is untold, may any be of the time up to @border? */
static bool may_be_untold(const struct grid *grid,
                          const struct seep_report_site *site, size_t border)
{
    return site->untold.from_s < time_of(grid, border) &&
           site->untold.to_s > time_of(grid, border - 1);
}

void seep_span_course_init(const struct seep_report *report,
                           struct seep_span_course *ret_course)
{
    struct grid grid = grid_of(report);

    memset(ret_course, 0, sizeof(*ret_course));
    ret_course->report = report;
    ret_course->count = grid.last + 1;
    for (size_t i = 0; i <= grid.last; i++) {
        ret_course->at_s[i] = time_of(&grid, i);
    }
}

/* In a bucket a row stood at no more than what it had and what it took; one of
 * a single stack at no more than its peak. */
void seep_span_course_add(struct seep_span_course *course,
                          const struct seep_report_site *site)
{
    struct grid grid = grid_of(course->report);
    double level = 0;
    size_t next = 0;

    for (size_t border = 1; border <= grid.last; border++) {
        double most = level;

        while (next < site->point_count &&
               bucket_of(&grid, &site->series[next]) < border) {
            most += (double)site->series[next++].allocated_bytes;
        }
        if (may_be_untold(&grid, site, border)) {
            most += (double)site->untold.allocated_bytes;
        }
        level = level_of(&grid, site, border, next);
        if (site->stack_count == 1) {
            most = fmin(most, (double)site->peak_bytes);
        }
        course->live_bytes[border] += level;
        course->most_bytes[border] += fmax(most, level);
    }
}

struct seep_span_peak
seep_span_course_peak(const struct seep_span_course *course)
{
    size_t highest = 0;
    double most = 0;

    for (size_t i = 1; i < course->count; i++) {
        highest =
            course->live_bytes[i] > course->live_bytes[highest] ? i : highest;
        most = fmax(most, course->most_bytes[i]);
    }
    return (struct seep_span_peak){course->at_s[highest],
                                   course->live_bytes[highest], most};
}

static struct seep_span_peak peak_of(const struct seep_report *report)
{
    struct seep_span_course course;

    seep_span_course_init(report, &course);
    for (size_t i = 0; i < report->site_count; i++) {
        if (seep_sites_space_holds(report->sites[i].space)) {
            seep_span_course_add(&course, &report->sites[i]);
        }
    }
    return seep_span_course_peak(&course);
}

/* What a time names. */

static int find_mark(const struct seep_report *report, const char *name,
                     double *ret_s)
{
    for (size_t i = 0; i < report->mark_count; i++) {
        if (strcmp(report->marks[i].name, name) == 0) {
            *ret_s = report->marks[i].at_s;
            return 0;
        }
    }
    return -ENOENT;
}

static int seconds_of(const struct seep_span *span,
                      const struct seep_span_time *time, double none_s,
                      double *ret_s)
{
    double end_s = span->report->duration_s;

    switch (time->when) {
    case SEEP_SPAN_TIME:
        *ret_s = time->seconds;
        break;
    case SEEP_SPAN_BEFORE:
        *ret_s = fmax(0, end_s - time->seconds);
        break;
    case SEEP_SPAN_PEAK:
        *ret_s = span->peak.at_s;
        break;
    case SEEP_SPAN_END:
        *ret_s = end_s;
        break;
    case SEEP_SPAN_MARK:
        return find_mark(span->report, time->mark, ret_s);
    default:
        *ret_s = none_s;
        break;
    }
    /* As it is printed, the end is rounded. */
    return *ret_s <= end_s + span->report->bucket_s ? 0 : -ERANGE;
}

/* In borders; behind the last whole bucket only the end is left. */
static size_t border_of(const struct grid *grid, double at_s,
                        double (*round_to)(double))
{
    double border;

    if (at_s >= grid->end_s - SLACK || !(grid->bucket_s > 0)) {
        return grid->last;
    }
    border = round_to(at_s / grid->bucket_s);
    if (fabs(at_s / grid->bucket_s - round(at_s / grid->bucket_s)) < SLACK) {
        border = round(at_s / grid->bucket_s);
    }
    return border > 0 ? (size_t)fmin(border, (double)grid->last) : 0;
}

/* From where to where. */
struct borders {
    size_t from;
    size_t to;
};

static int place(struct seep_span *span, const struct grid *grid,
                 const struct seep_span_wish *wish, struct borders *ret_borders)
{
    bool is_moment = wish->at.when != SEEP_SPAN_NONE;
    int error = seconds_of(span, &wish->since, 0, &span->asked_from_s);

    if (error == 0) {
        error = seconds_of(span, is_moment ? &wish->at : &wish->until,
                           grid->end_s, &span->asked_to_s);
    }
    if (error != 0) {
        return error;
    }
    span->is_moment = is_moment;
    ret_borders->from = border_of(grid, span->asked_from_s, floor);
    ret_borders->to =
        border_of(grid, span->asked_to_s, is_moment ? round : ceil);
    if (!is_moment && span->asked_from_s >= span->asked_to_s) {
        return -EINVAL;
    }
    span->is_whole = ret_borders->from == 0 && ret_borders->to >= grid->last;
    span->from_s = time_of(grid, ret_borders->from);
    span->to_s = time_of(grid, ret_borders->to);
    return 0;
}

static int fill(struct seep_span *span, const struct seep_span_wish *wish,
                struct seep_span_row *rows)
{
    const struct seep_report *report = span->report;
    struct grid grid = grid_of(report);
    struct borders borders;
    int error;

    span->peak = peak_of(report);
    error = place(span, &grid, wish, &borders);
    if (error != 0) {
        return error;
    }
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        fill_row(report, &grid, site, borders.from, borders.to, &rows[i]);
        add_row(&span->spaces[site->space], site, &rows[i]);
        if (seep_sites_space_holds(site->space)) {
            add_row(&span->total, site, &rows[i]);
        }
    }
    return 0;
}

int seep_span_open(const struct seep_report *report,
                   const struct seep_span_wish *wish,
                   struct seep_span **ret_span)
{
    struct seep_span *span = calloc(1, sizeof(*span));
    struct seep_span_row *rows = calloc(report->site_count + 1, sizeof(*rows));
    int error = -ENOMEM;

    if (span != NULL && rows != NULL) {
        span->report = report;
        span->rows = rows;
        error = fill(span, wish, rows);
    }
    if (error != 0) {
        free(rows);
        free(span);
        return error;
    }
    *ret_span = span;
    return 0;
}

void seep_span_close(struct seep_span *span)
{
    if (span != NULL) {
        free((void *)(uintptr_t)span->rows);
        free(span);
    }
}

double seep_span_rate(const struct seep_span *span,
                      const struct seep_span_row *row)
{
    double seconds = span->to_s - span->from_s;

    return seconds > 0 ? row->growth_bytes / seconds : 0;
}
