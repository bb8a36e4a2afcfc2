/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * See sites_survivors.h. Invariant: the survivors of all rows lie in one array,
 * grouped by counting, never searched; in a row in the order of the live table.
 */
#include "reader/sites_survivors.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "format/weight.h"
#include "reader/sites_evidence.h"

/* What counts of an entry of the live table. */
struct entry {
    uint32_t work; /* index in works */
    uint32_t tick;
    uint64_t size_level;
    bool loose; /* nothing but this tells when it was born */
};

/* A row of one site without series is not judged at all. */
static bool is_loose(const struct seep_view *view,
                     const struct seep_site_work *work, uint32_t site)
{
    uint32_t series = seep_snapshot_load(view->sites[site].series);

    return work->member_count > 1 &&
           (series == 0 || series > view->series_capacity);
}

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
        struct seep_site_work *work;

        if (seep_snapshot_load(live->address) == 0 ||
            site >= view->site_capacity || work_of_site[site] == 0) {
            continue;
        }
        work = &sites->works[work_of_site[site] - 1];
        entries[count] = (struct entry){
            .work = work_of_site[site] - 1,
            .tick = seep_snapshot_load(live->birth_tick),
            .size_level = seep_snapshot_load(live->size_level),
            .loose = is_loose(view, work, site),
        };
        work->survivor_count++;
        work->loose_count += entries[count].loose;
        count++;
    }
    *ret_entries = entries;
    return count;
}

static unsigned level_of(const struct entry *entry)
{
    return (unsigned)(entry->size_level >> SEEP_SIZE_BITS) & 63;
}

static struct seep_weight weight_of(const struct entry *entry)
{
    return seep_weight_of(entry->size_level & SEEP_SIZE_MASK, level_of(entry));
}

static void add_survivor(struct seep_site_work *work, const struct entry *entry,
                         const struct seep_clock *clock, uint64_t old_ticks,
                         struct seep_survivor *ret_survivor)
{
    uint64_t size = entry->size_level & SEEP_SIZE_MASK;
    double tick = entry->tick;
    double bytes = (double)weight_of(entry).bytes;
    double end = clock->end_tick > 0 ? (double)clock->end_tick : 1;
    int window =
        (int)fmin(tick * SEEP_GROWTH_WINDOWS / end, SEEP_GROWTH_WINDOWS - 1);

    ret_survivor->birth = seep_clock_at(clock, tick);
    ret_survivor->weight = bytes;
    ret_survivor->variance =
        level_of(entry) == 0
            ? 0
            : bytes * bytes *
                  (1 - seep_weight_probability(size, level_of(entry)));
    work->variance += ret_survivor->variance;
    work->site.window_bytes[window] += bytes;
    work->old_count += entry->tick + old_ticks <= clock->end_tick;
}

static void add_loose(struct seep_site_work *work, const struct entry *entry,
                      struct seep_site_loose *ret_loose)
{
    struct seep_weight weight = weight_of(entry);

    *ret_loose = (struct seep_site_loose){
        .birth_tick = entry->tick,
        .bytes = weight.bytes,
        .count_q16 = (entry->size_level & SEEP_LIVE_FRAGMENT) != 0
                         ? 0
                         : weight.count_q16,
    };
    work->loose_bytes += (double)weight.bytes;
}

/* Where each row's part of the arrays begins. */
static size_t place_rows(struct seep_sites *sites, size_t *next)
{
    size_t first = 0;
    size_t loose = 0;

    for (size_t i = 0; i < sites->count; i++) {
        struct seep_site_work *work = &sites->works[i];

        work->survivor_first = first;
        next[i] = first;
        first += work->survivor_count;
        work->loose_first = loose;
        loose += work->loose_count;
    }
    return loose;
}

/* Counting sort by row, then one row after the other. */
static int group_entries(struct seep_sites *sites,
                         const struct seep_clock *clock,
                         const struct entry *entries, size_t count)
{
    struct entry *sorted = malloc((count + 1) * sizeof(*sorted));
    size_t *next = malloc((sites->count + 1) * sizeof(*next));
    uint64_t old_ticks = seep_evidence_old_ticks(clock);
    size_t loose = next != NULL ? place_rows(sites, next) : 0;

    sites->survivors = malloc((count + 1) * sizeof(*sites->survivors));
    sites->loose = malloc((loose + 1) * sizeof(*sites->loose));
    if (sorted == NULL || next == NULL || sites->survivors == NULL ||
        sites->loose == NULL) {
        free(sorted);
        free(next);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        sorted[next[entries[i].work]++] = entries[i];
    }
    loose = 0;
    for (size_t i = 0; i < count; i++) {
        struct seep_site_work *work = &sites->works[sorted[i].work];

        add_survivor(work, &sorted[i], clock, old_ticks, &sites->survivors[i]);
        if (sorted[i].loose) {
            add_loose(work, &sorted[i], &sites->loose[loose++]);
        }
    }
    free(sorted);
    free(next);
    return 0;
}

int seep_sites_add_survivors(const struct seep_snapshot *snapshot,
                             const struct seep_clock *clock,
                             const uint32_t *work_of_site,
                             struct seep_sites *sites)
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
