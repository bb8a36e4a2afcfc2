/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a process that was ended from outside did last: how much it took and
 * gave back, and which line kept most of it.
 *
 * Invariant: of one that ended by itself nothing is said.
 */
#include <math.h>

#include "reader/report/build.h"

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
