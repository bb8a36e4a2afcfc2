/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the tables of a snapshot to one entry a row; see sites.h.
 *
 * Invariant: linear in the size of the tables, and what all rows hold together
 * is what all sites hold, whatever a row is.
 */
#include "reader/sites.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "reader/sites_survivors.h"

#define ORDINAL_LIMIT 1024U /* no machine has so many devices */
#define FLOOR_BYTES (1024.0 * 1024.0)
#define FLOOR_SHARE 0.002 /* of the live bytes of the place */

bool seep_sites_space_holds(enum seep_space space)
{
    return space != SEEP_SPACE_REGISTERED && space != SEEP_SPACE_RESERVED &&
           space != SEEP_SPACE_IMPORTED && space != SEEP_SPACE_TENSOR;
}

bool seep_sites_space_is_judged(enum seep_space space)
{
    return seep_sites_space_holds(space) || space == SEEP_SPACE_TENSOR;
}

unsigned seep_sites_place_of(const struct seep_report_site *site)
{
    if (site->space != SEEP_SPACE_DEVICE && site->space != SEEP_SPACE_TENSOR) {
        return SEEP_PLACE_HOST;
    }
    return site->device >= 0 && site->device < (int)SEEP_DEVICES_MAX
               ? SEEP_PLACE_DEVICE + (unsigned)site->device
               : SEEP_PLACE_OTHER;
}

double seep_sites_floor_bytes(uint64_t live_bytes)
{
    return fmax(FLOOR_BYTES, FLOOR_SHARE * (double)live_bytes);
}

int seep_sites_device_of(const struct seep_rec_site *site)
{
    bool has_none = site->space == SEEP_SPACE_HEAP ||
                    site->space == SEEP_SPACE_MAPPED ||
                    site->space == SEEP_SPACE_PYTHON;

    return has_none || site->device == 0 || site->device > ORDINAL_LIMIT
               ? -1
               : (int)site->device - 1;
}

double seep_sites_seconds(double ticks)
{
    return ticks * (double)(UINT64_C(1) << SEEP_TICK_LOG2_NS) / 1e9;
}

bool seep_sites_is_used(struct seep_rec_site *site, uint32_t index)
{
    return (index == 0 || seep_snapshot_load(site->state) == SEEP_PUBLISHED) &&
           site->space < SEEP_SPACE_COUNT &&
           (seep_snapshot_load(site->event_count) != 0 ||
            seep_snapshot_load(site->allocated_bytes) != 0);
}

static uint64_t later(uint64_t last, uint64_t tick)
{
    return tick > last && tick <= SEEP_SITES_TICK_MAX ? tick : last;
}

uint64_t seep_sites_last_tick(const struct seep_snapshot *snapshot)
{
    const struct seep_view *view = &snapshot->view;
    uint32_t moments =
        view->header->sections[SEEP_SECTION_TIMELINE].entry_count;
    uint64_t last = 0;

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        uint32_t tick = seep_snapshot_load(view->sites[i].last_tick);

        if (seep_sites_is_used(&view->sites[i], i) && tick > last) {
            last = tick;
        }
    }
    for (uint32_t i = 0; i < moments; i++) {
        last = later(last, seep_snapshot_load(view->timeline[i].tick));
    }
    for (uint32_t i = 0; i < view->device_count * SEEP_BUCKET_COUNT; i++) {
        last = later(last, seep_snapshot_load(view->devices[i].tick));
    }
    return last;
}

/* A table of the rows by their keys, half full at most: numbers in works + 1.
 */
struct rows {
    uint32_t *slots;
    size_t mask;
};

static int make_rows(size_t count, struct rows *ret_rows)
{
    size_t slots = 16;

    while (slots < 2 * count) {
        slots *= 2;
    }
    ret_rows->mask = slots - 1;
    ret_rows->slots = calloc(slots, sizeof(*ret_rows->slots));
    return ret_rows->slots != NULL ? 0 : -ENOMEM;
}

/* The row of @key; a new one where there is none yet. */
static struct seep_site_work *row_of(struct seep_sites *sites,
                                     const uint64_t *row_keys,
                                     struct rows *rows, uint64_t key)
{
    size_t at = seep_hash_mix(key) & rows->mask;

    while (rows->slots[at] != 0 && row_keys[rows->slots[at] - 1] != key) {
        at = (at + 1) & rows->mask;
    }
    if (rows->slots[at] == 0) {
        rows->slots[at] = (uint32_t)++sites->count;
    }
    return &sites->works[rows->slots[at] - 1];
}

static double blocks_of(uint64_t count_q16)
{
    return (double)count_q16 / (double)SEEP_COUNT_ONE;
}

static void add_ticks(struct seep_site_work *work, uint32_t first_tick,
                      double last_s)
{
    if (work->member_count == 0 || first_tick < work->first_tick) {
        work->first_tick = first_tick;
    }
    if (last_s > work->site.last_s) {
        work->site.last_s = last_s;
    }
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Of several sites it is not known when each was at its peak: the least that
 * the peak of all can have been. */
static void add_totals(struct seep_site_work *work, struct seep_rec_site *from,
                       uint32_t index)
{
    struct seep_report_site *site = &work->site;
    uint64_t allocated = seep_snapshot_load(from->allocated_bytes);
    uint64_t freed = seep_snapshot_load(from->freed_bytes);
    uint64_t live = allocated > freed ? allocated - freed : 0;

    if (work->member_count == 0 || live > site->stack_live_bytes) {
        work->index = index;
        site->stack_live_bytes = live;
        site->stack_allocated_bytes = allocated;
        site->stack_allocated_count =
            blocks_of(seep_snapshot_load(from->allocated_count_q16));
    }
    site->space = (enum seep_space)from->space;
    site->device = seep_sites_device_of(from);
    site->allocated_bytes += allocated;
    site->freed_bytes += freed;
    site->allocated_count +=
        blocks_of(seep_snapshot_load(from->allocated_count_q16));
    site->freed_count += blocks_of(seep_snapshot_load(from->freed_count_q16));
    site->peak_bytes =
        larger(site->peak_bytes, seep_snapshot_load(from->peak_bytes));
    site->largest_bytes =
        larger(site->largest_bytes, seep_snapshot_load(from->largest_bytes));
    work->event_count += seep_snapshot_load(from->event_count);
    add_ticks(work, seep_snapshot_load(from->first_tick),
              seep_sites_seconds(seep_snapshot_load(from->last_tick)));
}

static void add_member(const struct seep_snapshot *snapshot,
                       struct seep_site_work *work, uint32_t index,
                       struct seep_site_member *ret_member)
{
    const struct seep_view *view = &snapshot->view;
    struct seep_rec_site *site = &view->sites[index];
    uint32_t series = seep_snapshot_load(site->series);

    ret_member->index = index;
    ret_member->first_tick = seep_snapshot_load(site->first_tick);
    ret_member->series = series > 0 && series <= view->series_capacity
                             ? &view->series[series - 1]
                             : NULL;
    if (work->series == NULL) {
        work->series = ret_member->series;
    }
    if (ret_member->series == NULL) {
        work->loose_born +=
            blocks_of(seep_snapshot_load(site->allocated_count_q16));
        work->loose_freed +=
            blocks_of(seep_snapshot_load(site->freed_count_q16));
    }
    work->site.torn |= snapshot->torn[index] != 0;
    add_totals(work, site, index);
    work->member_count++;
}

static void finish_totals(struct seep_sites *sites)
{
    for (size_t i = 0; i < sites->count; i++) {
        struct seep_site_work *work = &sites->works[i];
        struct seep_report_site *site = &work->site;

        if (site->allocated_bytes > site->freed_bytes) {
            site->live_bytes = site->allocated_bytes - site->freed_bytes;
        }
        site->live_count = fmax(0, site->allocated_count - site->freed_count);
        site->peak_bytes = work->member_count > 1
                               ? larger(site->peak_bytes, site->live_bytes)
                               : site->peak_bytes;
        site->stack_count = work->member_count;
        site->first_s = seep_sites_seconds(work->first_tick);
        if (seep_sites_space_holds(site->space)) {
            sites->live_bytes[seep_sites_place_of(site)] += site->live_bytes;
        }
    }
}

/* Each used site to its row. @ret_work_of: index in SITES -> row + 1 */
static void list_rows(const struct seep_snapshot *snapshot,
                      const struct seep_site_key *keys, struct rows *rows,
                      uint64_t *row_keys, struct seep_sites *sites,
                      uint32_t *ret_work_of)
{
    const struct seep_view *view = &snapshot->view;

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        if (seep_sites_is_used(&view->sites[i], i)) {
            uint64_t key = keys != NULL ? keys[i].row : i;
            size_t before = sites->count;
            struct seep_site_work *work = row_of(sites, row_keys, rows, key);

            if (sites->count > before) {
                row_keys[before] = key;
                work->id = keys != NULL ? keys[i].id : i;
                work->line_id = keys != NULL ? keys[i].line_id : 0;
            }
            ret_work_of[i] = (uint32_t)(work - sites->works) + 1;
            work->member_count++;
        }
    }
}

/* Members in the order of their rows. */
static void list_members(const struct seep_snapshot *snapshot,
                         struct seep_sites *sites, const uint32_t *work_of)
{
    const struct seep_view *view = &snapshot->view;
    size_t first = 0;

    for (size_t i = 0; i < sites->count; i++) {
        sites->works[i].member_first = first;
        first += sites->works[i].member_count;
        sites->works[i].member_count = 0;
    }
    for (uint32_t i = 0; i < view->site_capacity; i++) {
        if (work_of[i] != 0) {
            struct seep_site_work *work = &sites->works[work_of[i] - 1];
            size_t at = work->member_first + work->member_count;

            add_member(snapshot, work, i, &sites->members[at]);
        }
    }
    finish_totals(sites);
}

static int list_sites(const struct seep_snapshot *snapshot,
                      const struct seep_site_key *keys,
                      struct seep_sites *sites, uint32_t *ret_work_of)
{
    const struct seep_view *view = &snapshot->view;
    uint64_t *row_keys;
    struct rows rows;
    size_t count = 0;

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        count += seep_sites_is_used(&view->sites[i], i);
    }
    if (make_rows(count, &rows) != 0) {
        return -ENOMEM;
    }
    row_keys = calloc(count + 1, sizeof(*row_keys));
    sites->works = calloc(count + 1, sizeof(*sites->works));
    sites->members = calloc(count + 1, sizeof(*sites->members));
    if (row_keys != NULL && sites->works != NULL && sites->members != NULL) {
        list_rows(snapshot, keys, &rows, row_keys, sites, ret_work_of);
        list_members(snapshot, sites, ret_work_of);
    } else {
        count = SIZE_MAX;
    }
    free(row_keys);
    free(rows.slots);
    return count != SIZE_MAX ? 0 : -ENOMEM;
}

int seep_sites_init(const struct seep_snapshot *snapshot,
                    const struct seep_clock *clock,
                    const struct seep_site_key *keys,
                    struct seep_sites *ret_sites)
{
    uint32_t *work_of_site =
        calloc((size_t)snapshot->view.site_capacity + 1, sizeof(*work_of_site));
    struct seep_sites sites = {.works = NULL};
    int error = -ENOMEM;

    if (work_of_site != NULL) {
        error = list_sites(snapshot, keys, &sites, work_of_site);
    }
    if (error == 0) {
        error = seep_sites_add_survivors(snapshot, clock, work_of_site, &sites);
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
    free(sites->members);
    free(sites->loose);
    free(sites->survivors);
    sites->works = NULL;
    sites->members = NULL;
    sites->loose = NULL;
    sites->survivors = NULL;
    sites->count = 0;
}
