/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums by space, and the process as its timeline has it. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "reader/report_build.h"
#include "reader/sites_series.h"

/* Least squares of a line through (x, y). */
struct line {
    double count;
    double x;
    double y;
    double xx;
    double xy;
};

static void add_to_line(struct line *line, double x, double y)
{
    line->count += 1;
    line->x += x;
    line->y += y;
    line->xx += x * x;
    line->xy += x * y;
}

static double slope_of(const struct line *line)
{
    double spread = line->count * line->xx - line->x * line->x;
    double slope = (line->count * line->xy - line->x * line->y) / spread;

    return line->count >= 2 && isfinite(slope) ? slope : 0;
}

struct space_sum {
    struct seep_report_space space;
    double variance;
    bool used;
    double live[SEEP_BUCKET_COUNT]; /* of the sites that have a series */
};

/* The live bytes of one site at the end of each bucket of the run's grid. */
static void add_series(struct space_sum *sum, const struct seep_site_work *work,
                       const struct seep_clock *clock)
{
    struct seep_series_table table;

    seep_series_read(work->series, work->first_tick, clock->end_tick, &table);
    for (uint32_t i = 0; i < clock->count; i++) {
        /* A damaged width can be wider than the grid. */
        uint64_t at =
            (((uint64_t)(i + 1) << clock->width_log2) - 1) >> table.width_log2;

        at = at < table.count ? at : table.count - 1;
        sum->live[i] += (double)table.buckets[at].live_bytes;
    }
}

static void add_site(struct space_sum *sum, const struct seep_site_work *work,
                     const struct seep_clock *clock)
{
    sum->used = true;
    sum->space.space = work->site.space;
    sum->space.live_bytes += work->site.live_bytes;
    sum->space.allocated_bytes += work->site.allocated_bytes;
    sum->space.freed_bytes += work->site.freed_bytes;
    sum->variance += work->variance;
    if (work->series != NULL) {
        add_series(sum, work, clock);
    }
}

static void finish(struct space_sum *sum, const struct seep_clock *clock)
{
    struct line line = {.count = 0};

    for (uint32_t i = 0; i < clock->count; i++) {
        double ticks = fmin((double)((uint64_t)(i + 1) << clock->width_log2),
                            (double)clock->end_tick);

        add_to_line(&line, seep_sites_seconds(ticks), sum->live[i]);
    }
    sum->space.live_bytes_error = 1.96 * sqrt(sum->variance);
    sum->space.first_bytes = (uint64_t)fmin(sum->live[0], 1e18);
    sum->space.slope_bytes_per_s = slope_of(&line);
}

int seep_report_add_spaces(struct seep_report_build *build)
{
    struct space_sum sums[SEEP_SPACE_COUNT];
    struct seep_report_space *spaces =
        seep_store_take(&build->store, SEEP_SPACE_COUNT, sizeof(*spaces));
    size_t count = 0;

    if (spaces == NULL) {
        return -ENOMEM;
    }
    memset(sums, 0, sizeof(sums));
    for (size_t i = 0; i < build->sites.count; i++) {
        const struct seep_site_work *work = &build->sites.works[i];

        add_site(&sums[work->site.space], work, &build->clock);
    }
    for (unsigned i = 0; i < SEEP_SPACE_COUNT; i++) {
        if (sums[i].used) {
            finish(&sums[i], &build->clock);
            spaces[count++] = sums[i].space;
        }
    }
    build->report.spaces = spaces;
    build->report.space_count = count;
    return 0;
}

void seep_report_add_memory(struct seep_report_build *build)
{
    const struct seep_view *view = &build->snapshot.view;
    struct seep_report_memory *memory = &build->report.memory;
    uint32_t capacity =
        view->header->sections[SEEP_SECTION_TIMELINE].entry_count;
    struct line line = {.count = 0};
    uint64_t last = 0;

    memory->machine_bytes = view->header->memory_total_bytes;
    for (uint32_t i = 0; i < capacity; i++) {
        struct seep_rec_moment *moment = &view->timeline[i];
        uint64_t tick = seep_snapshot_load(moment->tick);
        uint64_t rss = seep_snapshot_load(moment->rss_bytes);

        if (tick <= last || tick > SEEP_SITES_TICK_MAX || rss == 0) {
            continue;
        }
        last = tick;
        if (!memory->valid) {
            memory->rss.first_bytes = (double)rss;
        }
        memory->valid = true;
        memory->rss.valid = true;
        memory->rss.last_bytes = (double)rss;
        memory->shared.last_bytes =
            (double)seep_snapshot_load(moment->shared_bytes);
        memory->cgroup.last_bytes =
            (double)seep_snapshot_load(moment->cgroup_bytes);
        memory->cgroup_limit_bytes =
            seep_snapshot_load(moment->cgroup_limit_bytes);
        add_to_line(&line, seep_sites_seconds((double)tick), (double)rss);
    }
    memory->rss.slope_bytes_per_s = slope_of(&line);
}
