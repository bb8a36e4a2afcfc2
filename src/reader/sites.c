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
#include "reader/sites_evidence.h"

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
    work->event_count = seep_snapshot_load(from->event_count);
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

/* What counts of an entry of the live table. */
struct entry {
    uint32_t work; /* index in works */
    uint32_t tick;
    uint64_t size_level;
};

/* The entries that belong to a site, in one array: the table is large, mostly
 * empty, and read once. @return their number, or SIZE_MAX without memory */
static size_t list_entries(const struct seep_snapshot *snapshot,
                           struct seep_sites *sites,
                           const uint32_t *work_of_site,
                           struct entry **ret_entries)
{
    const struct seep_view *view = &snapshot->view;
    struct entry *entries;
    size_t count = 0;

    for (uint32_t i = 0; i < view->live_capacity; i++) {
        count += seep_snapshot_load(view->live[i].address) != 0;
    }
    entries = malloc((count + 1) * sizeof(*entries));
    if (entries == NULL) {
        return SIZE_MAX;
    }
    count = 0;
    for (uint32_t i = 0; i < view->live_capacity; i++) {
        struct seep_rec_live *live = &view->live[i];
        uint32_t site = seep_snapshot_load(live->site);

        if (seep_snapshot_load(live->address) == 0 ||
            site >= view->site_capacity || work_of_site[site] == 0) {
            continue;
        }
        entries[count].work = work_of_site[site] - 1;
        entries[count].tick = seep_snapshot_load(live->birth_tick);
        entries[count].size_level = seep_snapshot_load(live->size_level);
        sites->works[entries[count].work].survivor_count++;
        count++;
    }
    *ret_entries = entries;
    return count;
}

static void add_survivor(struct seep_site_work *work, const struct entry *entry,
                         const struct seep_clock *clock, uint64_t old_ticks,
                         struct seep_survivor *ret_survivor)
{
    uint64_t size = entry->size_level & SEEP_SIZE_MASK;
    unsigned level = (unsigned)(entry->size_level >> SEEP_SIZE_BITS) & 63;
    struct seep_weight weight = seep_weight_of(size, level);
    double tick = entry->tick;
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
    work->old_count += entry->tick + old_ticks <= clock->end_tick;
}

/* Counting sort by site, then one site after the other. */
static int group_entries(struct seep_sites *sites,
                         const struct seep_clock *clock,
                         const struct entry *entries, size_t count)
{
    struct entry *sorted = malloc((count + 1) * sizeof(*sorted));
    size_t *next = malloc((sites->count + 1) * sizeof(*next));
    uint64_t old_ticks = seep_evidence_old_ticks(clock);
    size_t first = 0;

    sites->survivors = malloc((count + 1) * sizeof(*sites->survivors));
    if (sorted == NULL || next == NULL || sites->survivors == NULL) {
        free(sorted);
        free(next);
        return -ENOMEM;
    }
    for (size_t i = 0; i < sites->count; i++) {
        sites->works[i].survivor_first = first;
        next[i] = first;
        first += sites->works[i].survivor_count;
    }
    for (size_t i = 0; i < count; i++) {
        sorted[next[entries[i].work]++] = entries[i];
    }
    for (size_t i = 0; i < count; i++) {
        add_survivor(&sites->works[sorted[i].work], &sorted[i], clock,
                     old_ticks, &sites->survivors[i]);
    }
    free(sorted);
    free(next);
    return 0;
}

static int group_survivors(const struct seep_snapshot *snapshot,
                           const struct seep_clock *clock,
                           struct seep_sites *sites,
                           const uint32_t *work_of_site)
{
    struct entry *entries = NULL;
    size_t count = list_entries(snapshot, sites, work_of_site, &entries);
    int error;

    if (count == SIZE_MAX) {
        return -ENOMEM;
    }
    error = group_entries(sites, clock, entries, count);
    sites->survivor_count = count;
    free(entries);
    return error;
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
