/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the tables of a snapshot to one entry a call site; see sites.h.
 *
 * Invariant: linear in the size of the tables. The survivors of all sites lie
 * in one array, grouped by counting, never searched.
 */
#include "reader/sites.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/weight.h"

bool seep_sites_space_holds(enum seep_space space)
{
    return space != SEEP_SPACE_REGISTERED && space != SEEP_SPACE_RESERVED &&
           space != SEEP_SPACE_IMPORTED;
}

double seep_sites_seconds(double ticks)
{
    return ticks * (double)(UINT64_C(1) << SEEP_TICK_LOG2_NS) / 1e9;
}

static bool is_used(struct seep_rec_site *site, uint32_t index)
{
    return (index == 0 || seep_snapshot_load(site->state) == SEEP_PUBLISHED) &&
           site->space < SEEP_SPACE_COUNT &&
           (seep_snapshot_load(site->event_count) != 0 ||
            seep_snapshot_load(site->allocated_bytes) != 0);
}

uint64_t seep_sites_last_tick(const struct seep_snapshot *snapshot)
{
    const struct seep_view *view = &snapshot->view;
    uint32_t moments =
        view->header->sections[SEEP_SECTION_TIMELINE].entry_count;
    uint64_t last = 0;

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        uint32_t tick = seep_snapshot_load(view->sites[i].last_tick);

        if (is_used(&view->sites[i], i) && tick > last) {
            last = tick;
        }
    }
    for (uint32_t i = 0; i < moments; i++) {
        uint64_t tick = seep_snapshot_load(view->timeline[i].tick);

        if (tick > last && tick <= SEEP_SITES_TICK_MAX) {
            last = tick;
        }
    }
    return last;
}

static void fill_totals(struct seep_site_work *work, struct seep_rec_site *from)
{
    struct seep_report_site *site = &work->site;

    site->space = (enum seep_space)from->space;
    site->allocated_bytes = seep_snapshot_load(from->allocated_bytes);
    site->freed_bytes = seep_snapshot_load(from->freed_bytes);
    if (site->allocated_bytes > site->freed_bytes) {
        site->live_bytes = site->allocated_bytes - site->freed_bytes;
    }
    site->allocated_count =
        (double)seep_snapshot_load(from->allocated_count_q16) /
        (double)SEEP_COUNT_ONE;
    site->freed_count = (double)seep_snapshot_load(from->freed_count_q16) /
                        (double)SEEP_COUNT_ONE;
    site->live_count = fmax(0, site->allocated_count - site->freed_count);
    site->peak_bytes = seep_snapshot_load(from->peak_bytes);
    site->largest_bytes = seep_snapshot_load(from->largest_bytes);
    work->first_tick = seep_snapshot_load(from->first_tick);
    site->first_s = seep_sites_seconds(work->first_tick);
    site->last_s = seep_sites_seconds(seep_snapshot_load(from->last_tick));
}

/* @ret_work_of: index in SITES -> index in works + 1 */
static int list_sites(const struct seep_snapshot *snapshot,
                      struct seep_sites *sites, uint32_t *ret_work_of)
{
    const struct seep_view *view = &snapshot->view;
    size_t count = 0;

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        count += is_used(&view->sites[i], i);
    }
    sites->works = calloc(count + 1, sizeof(*sites->works));
    if (sites->works == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < view->site_capacity; i++) {
        struct seep_site_work *work = &sites->works[sites->count];
        uint32_t series = seep_snapshot_load(view->sites[i].series);

        if (!is_used(&view->sites[i], i)) {
            continue;
        }
        sites->count++;
        ret_work_of[i] = (uint32_t)sites->count;
        work->index = i;
        work->site.torn = snapshot->torn[i] != 0;
        if (series > 0 && series <= view->series_capacity) {
            work->series = &view->series[series - 1];
        }
        fill_totals(work, &view->sites[i]);
        if (seep_sites_space_holds(work->site.space)) {
            sites->live_bytes += work->site.live_bytes;
        }
    }
    return 0;
}

/* The work that a live entry belongs to; NULL for none. */
static struct seep_site_work *work_of(const struct seep_snapshot *snapshot,
                                      struct seep_sites *sites,
                                      const uint32_t *work_of_site,
                                      struct seep_rec_live *entry)
{
    uint32_t site = seep_snapshot_load(entry->site);

    if (seep_snapshot_load(entry->address) == 0 ||
        site >= snapshot->view.site_capacity || work_of_site[site] == 0) {
        return NULL;
    }
    return &sites->works[work_of_site[site] - 1];
}

/* One entry of the live table as a survivor of @work. */
static void add_survivor(struct seep_site_work *work,
                         struct seep_rec_live *entry,
                         const struct seep_clock *clock,
                         struct seep_survivor *ret_survivor)
{
    uint64_t size_level = seep_snapshot_load(entry->size_level);
    uint64_t size = size_level & SEEP_SIZE_MASK;
    unsigned level = (unsigned)(size_level >> SEEP_SIZE_BITS) & 63;
    double tick = seep_snapshot_load(entry->birth_tick);
    struct seep_weight weight = seep_weight_of(size, level);
    double bytes = (double)weight.bytes;
    double end = clock->end_tick > 0 ? (double)clock->end_tick : 1;
    int window =
        (int)fmin(tick * SEEP_GROWTH_WINDOWS / end, SEEP_GROWTH_WINDOWS - 1);

    ret_survivor->birth = seep_clock_at(clock, tick);
    ret_survivor->weight = bytes;
    ret_survivor->variance =
        level == 0 ? 0
                   : bytes * bytes * (1 - seep_weight_probability(size, level));
    work->variance += ret_survivor->variance;
    work->site.window_bytes[window] += bytes;
    if ((size_level & SEEP_LIVE_FRAGMENT) == 0) {
        work->survivor_blocks +=
            (double)weight.count_q16 / (double)SEEP_COUNT_ONE;
    }
}

static int group_survivors(const struct seep_snapshot *snapshot,
                           const struct seep_clock *clock,
                           struct seep_sites *sites,
                           const uint32_t *work_of_site)
{
    const struct seep_view *view = &snapshot->view;
    size_t next = 0;

    for (uint32_t i = 0; i < view->live_capacity; i++) {
        struct seep_site_work *work =
            work_of(snapshot, sites, work_of_site, &view->live[i]);

        if (work != NULL) {
            work->survivor_count++;
            sites->survivor_count++;
        }
    }
    sites->survivors =
        malloc((sites->survivor_count + 1) * sizeof(*sites->survivors));
    if (sites->survivors == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < sites->count; i++) {
        sites->works[i].survivor_first = next;
        next += sites->works[i].survivor_count;
        sites->works[i].survivor_count = 0;
    }
    for (uint32_t i = 0; i < view->live_capacity; i++) {
        struct seep_site_work *work =
            work_of(snapshot, sites, work_of_site, &view->live[i]);

        if (work != NULL) {
            add_survivor(work, &view->live[i], clock,
                         &sites->survivors[work->survivor_first +
                                           work->survivor_count++]);
        }
    }
    return 0;
}

int seep_sites_init(const struct seep_snapshot *snapshot,
                    const struct seep_clock *clock,
                    struct seep_sites *ret_sites)
{
    uint32_t *work_of_site =
        calloc((size_t)snapshot->view.site_capacity + 1, sizeof(*work_of_site));
    struct seep_sites sites = {.works = NULL};
    int error = -ENOMEM;

    if (work_of_site != NULL) {
        error = list_sites(snapshot, &sites, work_of_site);
    }
    if (error == 0) {
        error = group_survivors(snapshot, clock, &sites, work_of_site);
    }
    free(work_of_site);
    if (error != 0) {
        seep_sites_fini(&sites);
        return error;
    }
    for (size_t i = 0; i < sites.count; i++) {
        sites.works[i].site.live_bytes_error =
            1.96 * sqrt(sites.works[i].variance);
    }
    *ret_sites = sites;
    return 0;
}

void seep_sites_fini(struct seep_sites *sites)
{
    free(sites->works);
    free(sites->survivors);
    sites->works = NULL;
    sites->survivors = NULL;
    sites->count = 0;
}
