/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sums by space, over all sites: what is live in each, and was at each time.
 *
 * Invariant: the memory of the process does not depend on what a row is, so
 * these are the sites of the recording, not the rows.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "reader/report_build.h"
#include "reader/sites_series.h"

#define ARENA_BLOCK_BYTES_MAX 512.0 /* pymalloc's SMALL_REQUEST_THRESHOLD */

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
    double rise = line->count * line->xy - line->x * line->y;

    return spread > 0 && isfinite(rise / spread) ? rise / spread : 0;
}

struct space_sum {
    struct seep_report_space space;
    double variance;
    bool used;
    double live[SEEP_BUCKET_COUNT]; /* at the end of each bucket */
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

/* A site without a series is small: what it holds is there from its birth. */
static void add_constant(struct space_sum *sum,
                         const struct seep_site_work *work,
                         const struct seep_clock *clock)
{
    for (uint32_t i = 0; i < clock->count; i++) {
        if ((uint64_t)(i + 1) << clock->width_log2 > work->first_tick) {
            sum->live[i] += (double)work->site.live_bytes;
        }
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
    } else {
        add_constant(sum, work, clock);
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

/* What of the spaces lies in RSS. Memory of devices does not, nor do tensors
 * and imports, which are views of it; what is managed does where the host
 * touched it last. */
static void keep_live(struct seep_report_build *build,
                      const struct space_sum *sums,
                      const struct space_sum *arenas)
{
    for (uint32_t i = 0; i < build->clock.count; i++) {
        double large = sums[SEEP_SPACE_PYTHON].live[i] - arenas->live[i];

        build->heap_live[i] = sums[SEEP_SPACE_HEAP].live[i] + large;
        build->beside_live[i] =
            sums[SEEP_SPACE_MAPPED].live[i] + sums[SEEP_SPACE_PINNED].live[i] +
            sums[SEEP_SPACE_MANAGED].live[i] + arenas->live[i];
    }
    build->beside_variance = arenas->variance;
}

/*
 * Python's small blocks lie in mappings of its own, its large ones in the
 * allocator's. What a site allocates is mostly the one or the other.
 */
static bool is_in_arenas(const struct seep_report_site *site)
{
    return site->space == SEEP_SPACE_PYTHON &&
           (double)site->allocated_bytes <=
               ARENA_BLOCK_BYTES_MAX * site->allocated_count;
}

/* What a device holds for its calls; of managed memory it is at most that. */
static void keep_device(struct seep_report_build *build,
                        const struct seep_site_work *work)
{
    unsigned ordinal = (unsigned)work->site.device;
    struct seep_report_device_live *live;
    struct space_sum sum;

    if (work->site.device < 0 || ordinal >= SEEP_DEVICES_MAX) {
        return;
    }
    live = &build->devices[ordinal];
    memset(&sum, 0, sizeof(sum));
    add_site(&sum, work, &build->clock);
    for (uint32_t i = 0; i < build->clock.count; i++) {
        live->device[i] +=
            work->site.space == SEEP_SPACE_DEVICE ? sum.live[i] : 0;
        live->managed[i] +=
            work->site.space == SEEP_SPACE_MANAGED ? sum.live[i] : 0;
        live->tensors[i] +=
            work->site.space == SEEP_SPACE_TENSOR ? sum.live[i] : 0;
    }
    live->has_tensors |= work->site.space == SEEP_SPACE_TENSOR;
}

static void add_holding(struct seep_report_holding *holding,
                        const struct seep_report_site *site)
{
    holding->space = site->space;
    holding->device = site->device;
    holding->live_bytes += site->live_bytes;
    holding->allocated_bytes += site->allocated_bytes;
    holding->freed_bytes += site->freed_bytes;
}

/* One of each space and device that there is, by both. */
static int add_holdings(struct seep_report_build *build,
                        const struct seep_sites *sites)
{
    struct seep_report_holding sums[SEEP_SPACE_COUNT][SEEP_DEVICES_MAX + 1];
    bool used[SEEP_SPACE_COUNT][SEEP_DEVICES_MAX + 1];
    struct seep_report_holding *holdings = seep_store_take(
        &build->store, sizeof(sums) / sizeof(**sums), sizeof(**sums));
    size_t count = 0;

    if (holdings == NULL) {
        return -ENOMEM;
    }
    memset(sums, 0, sizeof(sums));
    memset(used, 0, sizeof(used));
    for (size_t i = 0; i < sites->count; i++) {
        const struct seep_report_site *site = &sites->works[i].site;
        unsigned at = site->device < 0 ? 0 : (unsigned)site->device + 1;

        if (at <= SEEP_DEVICES_MAX) {
            used[site->space][at] = true;
            add_holding(&sums[site->space][at], site);
        }
    }
    for (size_t i = 0; i < sizeof(sums) / sizeof(**sums); i++) {
        if ((&used[0][0])[i]) {
            holdings[count++] = (&sums[0][0])[i];
        }
    }
    build->report.holdings = holdings;
    build->report.holding_count = count;
    return 0;
}

/* @return how many spaces were used */
static size_t sum_spaces(struct seep_report_build *build,
                         const struct seep_sites *sites,
                         struct seep_report_space *spaces)
{
    struct space_sum sums[SEEP_SPACE_COUNT];
    struct space_sum arenas; /* of python, what lies in its own mappings */
    size_t count = 0;

    memset(sums, 0, sizeof(sums));
    memset(&arenas, 0, sizeof(arenas));
    for (size_t i = 0; i < sites->count; i++) {
        const struct seep_site_work *work = &sites->works[i];

        add_site(&sums[work->site.space], work, &build->clock);
        if (is_in_arenas(&work->site)) {
            add_site(&arenas, work, &build->clock);
        }
        keep_device(build, work);
    }
    for (unsigned i = 0; i < SEEP_SPACE_COUNT; i++) {
        if (sums[i].used) {
            finish(&sums[i], &build->clock);
            spaces[count++] = sums[i].space;
        }
    }
    keep_live(build, sums, &arenas);
    return count;
}

int seep_report_add_spaces(struct seep_report_build *build)
{
    struct seep_report_space *spaces =
        seep_store_take(&build->store, SEEP_SPACE_COUNT, sizeof(*spaces));
    struct seep_sites sites;
    int error;

    if (spaces == NULL) {
        return -ENOMEM;
    }
    error = seep_sites_init(&build->snapshot, &build->clock, NULL, &sites);
    if (error == 0) {
        build->report.spaces = spaces;
        build->report.space_count = sum_spaces(build, &sites, spaces);
        error = add_holdings(build, &sites);
        seep_sites_fini(&sites);
    }
    return error;
}
