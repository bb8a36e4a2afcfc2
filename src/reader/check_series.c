/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a report held over time; see check_series.h. Invariant: each site is
 * walked once, so the time is that of what the report has.
 */
#include "reader/check_series.h"

#include <math.h>

#include "reader/check.h"
#include "reader/sites.h"

#define POINTS 128
/* Of what was never sampled up to 3 intervals may be there, at 95 %. */
#define UNSEEN_SAMPLES 3.0

static bool is_in(const struct seep_report_site *site, int space)
{
    if (space == SEEP_CHECK_DEVICES) {
        return site->space == SEEP_SPACE_DEVICE;
    }
    return space == SEEP_CHECK_ALL_SPACES ? seep_sites_space_holds(site->space)
                                          : (int)site->space == space;
}

bool seep_check_is_excused(const struct seep_report_site *site)
{
    return site->suppressed_by != NULL || site->known_bound_bytes > 0;
}

/* In @point or, where it is over, behind it: what is in no bucket is flat. */
static double level_of(const struct seep_report_point *point, double t_s,
                       enum seep_check_level level)
{
    return level == SEEP_CHECK_LOW && t_s < point->start_s + point->width_s
               ? (double)point->low_bytes
               : (double)point->live_bytes;
}

/* A site without a series is small: what it holds is there from its birth. */
static void add_site(const struct seep_report_site *site,
                     enum seep_check_level level, const double times[POINTS],
                     double sums[POINTS])
{
    size_t next = 0; /* the first point that begins later */

    for (int k = 0; k < POINTS; k++) {
        while (next < site->point_count &&
               site->series[next].start_s <= times[k]) {
            next++;
        }
        if (next > 0) {
            sums[k] += level_of(&site->series[next - 1], times[k], level);
        } else if (site->point_count == 0 && times[k] >= site->first_s) {
            sums[k] += (double)site->live_bytes;
        }
    }
}

void seep_check_read_live(const struct seep_report *report, int space,
                          enum seep_check_level level, bool excused,
                          double from_s, struct seep_window_series *ret_series)
{
    double step_s = (report->duration_s - from_s) / POINTS;
    double times[POINTS];
    double sums[POINTS] = {0};

    for (int k = 0; k < POINTS; k++) {
        times[k] = from_s + step_s * (k + 0.5);
    }
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (is_in(site, space) && (excused || !seep_check_is_excused(site))) {
            add_site(site, level, times, sums);
        }
    }
    ret_series->count = 0;
    for (int k = 0; k < POINTS; k++) {
        seep_window_add(ret_series, times[k], sums[k]);
    }
}

void seep_check_read_private(const struct seep_report *report,
                             struct seep_window_series *ret_series)
{
    const struct seep_report_memory *memory = &report->memory;

    ret_series->count = 0;
    for (size_t i = 0; i < memory->moment_count; i++) {
        const struct seep_report_moment *moment = &memory->moments[i];

        if (moment->private_bytes >= 0) {
            seep_window_add(ret_series, moment->t_s, moment->private_bytes);
        }
    }
}

/* Memory that is sampled: of the rest every block is known. */
static bool is_sampled(const struct seep_report *report, int space)
{
    return report->sample_bytes > 1 &&
           (space == SEEP_CHECK_ALL_SPACES || space == SEEP_SPACE_HEAP ||
            space == SEEP_SPACE_PYTHON);
}

double seep_check_unseen_bytes(const struct seep_report *report, int space)
{
    return is_sampled(report, space)
               ? UNSEEN_SAMPLES * (double)report->sample_bytes
               : 0;
}
