/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a process held over time.
 *
 * What all shards handed out and took back in each bucket is there already;
 * what of it is no memory of the host is taken off by the series of such
 * sites, which are few. The slope and its interval are those of the report.
 *
 * Invariant: whatever a damaged file says, figures are finite.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/word.h"
#include "format/account.h"
#include "format/fold.h"
#include "format/live.h"
#include "format/series.h"
#include "reader/process/vitals_copy.h"
#include "reader/recording/series.h"
#include "reader/recording/store.h"
#include "reader/statistics/window.h"

#define WIDTH_MAX 31U

/* Ordinal of the device that an entry of SITES is memory of; -1: of none that
 * is followed. */
static int vitals_device_of(const struct seep_rec_site *site)
{
    return site->space == SEEP_SPACE_DEVICE && site->device > 0 &&
                   site->device <= SEEP_DEVICES_MAX
               ? (int)site->device - 1
               : -1;
}

/* Bucket @from of a grid of @width_log2 in that of the run; what is beyond it
 * is of a damaged file, or of this very moment. */
static uint32_t bucket_of(const struct seep_vitals_series *series,
                          uint32_t from, uint32_t width_log2)
{
    uint64_t bucket = (uint64_t)from << width_log2 >> series->width_log2;

    return bucket < series->count ? (uint32_t)bucket : series->count - 1;
}

static double difference(const _Atomic uint64_t *more,
                         const _Atomic uint64_t *less)
{
    return (double)(int64_t)(seep_word_load(more) - seep_word_load(less));
}

static void add_shards(struct seep_vitals_series *series,
                       const struct seep_view *view)
{
    for (uint32_t i = 0; i < view->shard_count; i++) {
        const struct seep_rec_shard *shard = &view->shards[i];
        uint32_t width = seep_word_load(&shard->flow_width_log2) & WIDTH_MAX;

        for (uint32_t j = 0; j < SEEP_BUCKET_COUNT; j++) {
            series->host[bucket_of(series, j, width)] += difference(
                &shard->flow[j].allocated_bytes, &shard->flow[j].freed_bytes);
        }
    }
}

/* Moves what came and went at a site of a device from the host to it. */
static void move(struct seep_vitals_series *series, int device, uint32_t bucket,
                 double bytes)
{
    series->host[bucket] -= bytes;
    if (device >= 0) {
        series->devices[device][bucket] += bytes;
    }
}

static void move_series(struct seep_vitals_series *series, int device,
                        const struct seep_rec_series *from)
{
    uint32_t width = seep_word_load(&from->width_log2) & WIDTH_MAX;

    move(series, device,
         bucket_of(series, seep_word_load(&from->first_tick) >> width, width),
         (double)(int64_t)seep_word_load(&from->base_bytes));
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        move(series, device, bucket_of(series, i, width),
             difference(&from->buckets[i].allocated_bytes,
                        &from->buckets[i].freed_bytes));
    }
}

static void move_site(struct seep_vitals_series *series,
                      const struct seep_vitals_copy *copy,
                      const struct seep_vitals_site *site)
{
    struct seep_rec_series own;

    if (seep_vitals_copy_series(copy, site->series, &own)) {
        move_series(series, site->device, &own);
    } else {
        move(series, site->device, bucket_of(series, site->first_tick, 0),
             site->live_bytes);
    }
    move(series, site->device, bucket_of(series, site->pending_tick, 0),
         site->pending_bytes);
}

static void cumulate(double *net, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        net[i] += net[i - 1];
    }
}

void seep_vitals_sum(const struct seep_vitals_copy *copy, uint64_t end_tick,
                     struct seep_vitals_series *ret_series)
{
    memset(ret_series, 0, sizeof(*ret_series));
    ret_series->width_log2 = seep_series_width_for(end_tick);
    ret_series->count = (uint32_t)(end_tick >> ret_series->width_log2) + 1;
    ret_series->end_tick = end_tick;
    add_shards(ret_series, &copy->view);
    for (size_t i = 0; i < copy->other_count; i++) {
        move_site(ret_series, copy, &copy->others[i]);
    }
    cumulate(ret_series->host, ret_series->count);
    for (uint32_t i = 0; i < SEEP_DEVICES_MAX; i++) {
        cumulate(ret_series->devices[i], ret_series->count);
    }
}

struct seep_vitals_growth
seep_vitals_growth_of(const struct seep_vitals_series *series,
                      const double *live, double unseen_bytes)
{
    struct seep_vitals_growth growth = {.known = false};
    struct seep_window_series window = {.count = 0};
    double end_s = seep_sites_seconds((double)series->end_tick);
    struct seep_window_slope slope;
    double error;

    for (uint32_t i = 0; i < series->count; i++) {
        seep_window_add(
            &window,
            seep_sites_bucket_end_s(i, series->width_log2, series->end_tick),
            live[i]);
    }
    slope = seep_window_slope_of(&window, SEEP_WINDOW_SETTLE * end_s, end_s);
    if (slope.valid && end_s >= SEEP_VITALS_GROWTH_S) {
        error =
            slope.error + unseen_bytes / (end_s - SEEP_WINDOW_SETTLE * end_s);
        growth.known = true;
        growth.bytes_per_s = (struct seep_interval){
            slope.per_s, slope.per_s - error, slope.per_s + error};
    }
    return growth;
}

struct seep_vitals_growth
seep_vitals_private_growth(const struct seep_vitals_copy *copy,
                           uint64_t end_tick)
{
    const struct seep_view *view = &copy->view;
    uint32_t count = view->header->sections[SEEP_SECTION_TIMELINE].entry_count;
    double end_s = seep_sites_seconds((double)end_tick);
    struct seep_vitals_growth growth = {.known = false};
    struct seep_window_series private = {.count = 0};
    struct seep_drift drift;
    double last = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct seep_rec_moment *sample = &view->timeline[i];
        uint64_t tick = seep_word_load(&sample->tick);
        double rss = (double)seep_word_load(&sample->rss_bytes);

        if (rss > 0 && tick > 0 && tick <= end_tick) {
            last =
                fmax(0, rss - (double)seep_word_load(&sample->shared_bytes)) +
                (double)seep_word_load(&sample->swap_bytes);
            seep_window_add(&private, seep_sites_seconds((double)tick), last);
        }
    }
    seep_drift_of(&private, 0, end_s, seep_drift_floor_bytes(last), &drift);
    if (drift.grows && end_s >= SEEP_VITALS_GROWTH_S) {
        growth.known = true;
        growth.bytes_per_s = drift.bytes_per_s;
    }
    return growth;
}

/*
 * What was pushed and not yet folded.
 *
 * In exact mode that can be most of what a slow program did. It is folded as
 * anywhere else, a shard at a time, into tables that hold what it needs: a
 * live table of the blocks that it frees, and sites that begin at 0, so that
 * they come to what pending events change. (To copy the pages of the real
 * table took 5 us of faults each, 100 ms in all.)
 *
 * Invariant: everything that the fold looks at is private memory.
 */

#define AGAIN_MOST 3 /* that a shard is read whose owner folds meanwhile */
#define RING_SLOTS_MOST 65536U /* sixteen times what a recorder makes */
#define TABLE_FACTOR 4U        /* so full that nothing is thinned */
#define WINDOW_ENTRIES 32U
#define WINDOWS_MOST 64U
#define PENDING_MANY 4096U
#define SITES_MOST_BYTES (UINT64_C(64) << 20)

struct pending {
    const struct seep_vitals_copy *copy;
    struct seep_view view; /* of one shard; without series: none is given */
    struct seep_fold fold;
    struct seep_rec_shard shard;
    struct seep_rec_event *ring;
    struct seep_rec_live *table;
    uint64_t *born; /* addresses that pending events allocated */
    uint32_t slots; /* of the table, and of .born */
};

/* The slots from the head on, which may go round the end of the ring. */
static int copy_slots(const struct pending *pending, uint32_t index,
                      uint32_t count)
{
    uint32_t slots = pending->view.ring_slots;
    uint64_t ring = (uint64_t)index * slots;
    uint32_t from =
        (uint32_t)seep_word_load(&pending->shard.head) & (slots - 1);
    uint32_t first = count < slots - from ? count : slots - from;
    int error =
        seep_vitals_copy_entries(pending->copy, SEEP_SECTION_RINGS, ring + from,
                                 first, (void *)(pending->ring + from));

    return error != 0 || first == count
               ? error
               : seep_vitals_copy_entries(pending->copy, SEEP_SECTION_RINGS,
                                          ring, count - first,
                                          (void *)pending->ring);
}

/* Shard and ring as of one moment, if its owner lets it. */
static int copy_shard(struct pending *pending, uint32_t index,
                      uint32_t *ret_count)
{
    int error = 0;

    memcpy((void *)&pending->shard,
           (const void *)&pending->copy->view.shards[index],
           sizeof(pending->shard));
    for (int i = 0; error == 0 && i < AGAIN_MOST; i++) {
        uint64_t head = seep_word_load(&pending->shard.head);

        *ret_count = seep_fold_backlog(&pending->view, 0);
        if (*ret_count == 0) {
            return 0;
        }
        error = copy_slots(pending, index, *ret_count);
        if (error == 0) {
            error = seep_vitals_copy_entries(pending->copy, SEEP_SECTION_SHARDS,
                                             index, 1, (void *)&pending->shard);
        }
        if (seep_word_load(&pending->shard.head) == head) {
            break;
        }
    }
    return error;
}

/* Find @address in the table of the file; what is there goes into ours. */
static int fetch(struct pending *pending, const struct seep_live *theirs,
                 uint64_t first, const struct seep_live *ours, uint64_t address)
{
    uint32_t index = seep_live_home(theirs, address);
    struct seep_rec_live window[WINDOW_ENTRIES];

    for (uint32_t step = 0; step < WINDOWS_MOST; step++) {
        uint32_t count = theirs->mask + 1 - (index & theirs->mask);
        int error;

        count = count < WINDOW_ENTRIES ? count : WINDOW_ENTRIES;
        error = seep_vitals_copy_entries(pending->copy, SEEP_SECTION_LIVE,
                                         first + index, count, (void *)window);
        for (uint32_t i = 0; error == 0 && i < count; i++) {
            struct seep_block block = seep_live_read(&window[i]);

            if (block.address == address) {
                seep_live_insert(ours, &block);
            }
            if (block.address == address || block.address == 0) {
                return 0;
            }
        }
        if (error != 0) {
            return error;
        }
        index = (index + count) & theirs->mask;
    }
    return 0;
}

/* Was it born among the events that are pending? Notes it, if @note. */
static bool is_born(struct pending *pending, uint64_t address, bool note)
{
    uint32_t i = (uint32_t)(seep_hash_mix(address) >> 32);

    for (;; i++) {
        uint64_t *slot = &pending->born[i & (pending->slots - 1)];

        if (*slot == address || *slot == 0) {
            bool found = *slot == address;

            *slot = note ? address : *slot;
            return found;
        }
    }
}

/* The blocks that the events from the head on free, and did not make. */
static int fetch_blocks(struct pending *pending, const struct seep_live *theirs,
                        uint64_t first, const struct seep_live *ours,
                        uint32_t count)
{
    uint64_t head = seep_word_load(&pending->shard.head);
    int error = 0;

    memset(pending->born, 0, pending->slots * sizeof(*pending->born));
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        const struct seep_rec_event *slot =
            &pending->ring[(head + i) & (pending->view.ring_slots - 1)];
        uint64_t address = seep_word_load(&slot->address);
        uint64_t kind =
            seep_word_load(&slot->size_kind) >> (SEEP_SIZE_BITS + 8);

        if (address == 0) {
            continue;
        }
        if (kind == SEEP_EVENT_ALLOC) {
            is_born(pending, address, true);
        } else if (!is_born(pending, address, true)) {
            error = fetch(pending, theirs, first, ours, address);
        }
    }
    return error;
}

/* A table of ours in the place of the shard's, which is @theirs, and is asked
 * for home slots alone; of ranges, which are looked for anywhere, a copy. */
static int fill_table(struct pending *pending, const struct seep_live *theirs,
                      bool is_ranges, uint32_t count)
{
    uint64_t first = pending->shard.live_first;
    uint32_t windows = pending->slots / SEEP_WINDOW_SLOTS;
    struct seep_live ours;

    pending->shard.live_first = 0;
    if (is_ranges) {
        return pending->shard.live_slots > pending->slots
                   ? -E2BIG
                   : seep_vitals_copy_entries(pending->copy, SEEP_SECTION_LIVE,
                                              first, pending->shard.live_slots,
                                              (void *)pending->table);
    }
    memset((void *)pending->table, 0, pending->slots * sizeof(*pending->table));
    pending->shard.live_slots = pending->slots;
    seep_word_store(&pending->shard.live_windows, windows);
    seep_word_store(&pending->shard.live_end, windows);
    seep_word_store(&pending->shard.live_count, 0);
    seep_word_store(&pending->shard.live_bytes, 0);
    seep_word_store(&pending->shard.key_count, 0);
    return seep_live_init(&ours, &pending->view, 0)
               ? fetch_blocks(pending, theirs, first, &ours, count)
               : 0;
}

static int fold_shard(struct pending *pending, uint32_t index)
{
    struct seep_rec_shard *into = &pending->copy->view.shards[index];
    bool is_ranges = index + 1 == pending->copy->view.shard_count;
    uint32_t count = 0;
    struct seep_view whole = pending->copy->view;
    struct seep_live live;
    int error = copy_shard(pending, index, &count);

    if (error != 0 || count == 0) {
        return error;
    }
    memcpy((void *)into, (const void *)&pending->shard, sizeof(*into));
    if (!seep_live_init(&live, &whole, index)) {
        return 0; /* damaged: nothing of it can be found */
    }
    error = fill_table(pending, &live, is_ranges, count);
    if (error != 0) {
        return error == -E2BIG ? 0 : error;
    }
    seep_word_store(&pending->shard.lock, 0);
    seep_word_store(&pending->shard.move, 0);
    seep_fold_shard(&pending->fold, 0, count);
    memcpy((void *)into, (const void *)&pending->shard, sizeof(*into));
    return 0;
}

static int start(struct pending *pending, const struct seep_vitals_copy *copy)
{
    uint32_t slots = copy->view.ring_slots;

    pending->copy = copy;
    pending->view = copy->view;
    pending->slots = slots * TABLE_FACTOR;
    if (pending->slots < copy->view.header->range_slots &&
        copy->view.header->range_slots <= RING_SLOTS_MOST) {
        pending->slots = copy->view.header->range_slots;
    }
    pending->ring = calloc(slots, sizeof(*pending->ring));
    pending->table = calloc(pending->slots, sizeof(*pending->table));
    pending->born = calloc(pending->slots, sizeof(*pending->born));
    pending->view.series_capacity = 0;
    pending->view.brief_capacity = 0;
    pending->view.shards = &pending->shard;
    pending->view.shard_count = 1;
    pending->view.rings = pending->ring;
    pending->view.live = pending->table;
    pending->view.live_capacity = pending->slots;
    pending->fold =
        (struct seep_fold){.view = &pending->view, .thread = 1, .random = 1};
    return pending->ring == NULL || pending->table == NULL ||
                   pending->born == NULL
               ? -ENOMEM
               : 0;
}

/* Private sites are touched all over, two faults a page: of many at once. Where
 * the kernel does not know that, it comes to the same. */
static void make_pages(const struct seep_vitals_copy *copy)
{
#ifdef MADV_POPULATE_WRITE
    uint64_t bytes = copy->view.site_capacity * sizeof(*copy->view.sites);
    uint64_t pending = 0;

    for (uint32_t i = 0; i < copy->view.shard_count; i++) {
        pending += seep_fold_backlog(&copy->view, i);
    }
    if (pending > PENDING_MANY && bytes <= SITES_MOST_BYTES) {
        madvise((void *)copy->view.sites, bytes, MADV_POPULATE_WRITE);
    }
#else
    (void)copy;
#endif
}

int seep_vitals_fold_pending(const struct seep_vitals_copy *copy)
{
    struct pending *pending;
    int error;

    if (copy->view.shard_count == 0 ||
        copy->view.ring_slots > RING_SLOTS_MOST) {
        return 0;
    }
    pending = calloc(1, sizeof(*pending));
    if (pending == NULL) {
        return -ENOMEM;
    }
    make_pages(copy);
    error = start(pending, copy);
    for (uint32_t i = 0; error == 0 && i < copy->view.shard_count; i++) {
        error = fold_shard(pending, i);
    }
    free((void *)pending->ring);
    free((void *)pending->table);
    free(pending->born);
    free(pending);
    return error;
}

/*
 * The call sites, for what they hold together.
 *
 * Invariant: the table is read once, a piece at a time: of a large recording
 * it is megabytes, of which few are used.
 */

#define CHUNK_SITES 512U

/* Entry 0 is no call site, and counts when anything happened at it. */
static bool is_used(const struct seep_rec_site *site, uint32_t index)
{
    return index == 0 ? seep_word_load(&site->event_count) != 0
                      : seep_word_load(&site->state) == SEEP_PUBLISHED;
}

static int keep(struct seep_vitals_copy *copy,
                const struct seep_vitals_site *site)
{
    struct seep_vitals_site *others =
        seep_list_grow(copy->others, copy->other_count, sizeof(*others));

    if (others == NULL) {
        return -ENOMEM;
    }
    copy->others = others;
    others[copy->other_count++] = *site;
    return 0;
}

/* What is pending of it lies in the private entry, which began at 0. */
static int add_site(struct seep_vitals_copy *copy,
                    const struct seep_rec_site *from, uint32_t index,
                    struct seep_vitals_totals *totals)
{
    const struct seep_rec_site *more = &copy->view.sites[index];
    struct seep_vitals_site site = {
        .series = seep_word_load(&from->series),
        .device = vitals_device_of(from),
        .first_tick = seep_word_load(&from->first_tick),
        .pending_tick = seep_word_load(&more->last_tick),
        .live_bytes = (double)seep_account_live_bytes(from),
        .pending_bytes =
            (double)(int64_t)(seep_word_load(&more->allocated_bytes) -
                              seep_word_load(&more->freed_bytes)),
    };
    double live = site.live_bytes + site.pending_bytes;
    uint32_t last = seep_word_load(&from->last_tick);

    if (from->space >= SEEP_SPACE_COUNT) {
        return 0;
    }
    totals->live_bytes[from->space] += live;
    if (site.device >= 0) {
        totals->device_bytes[site.device] += live;
    }
    seep_vitals_note(&totals->when, last);
    seep_vitals_note(&totals->when, site.pending_tick);
    if (from->space == SEEP_SPACE_FILE) {
        /* The flow has none of it, but what was folded here: the private
         * entry does not know its space. */
        site.series = 0;
        site.live_bytes = 0;
    }
    return seep_view_is_on_host(from->space) ? 0 : keep(copy, &site);
}

int seep_vitals_add_sites(struct seep_vitals_copy *copy,
                          struct seep_vitals_totals *totals)
{
    uint32_t all = copy->view.header->sections[SEEP_SECTION_SITES].entry_count;
    struct seep_rec_site *chunk = malloc(CHUNK_SITES * sizeof(*chunk));
    int error = chunk == NULL ? -ENOMEM : 0;

    for (uint32_t i = 0; error == 0 && i < all; i += CHUNK_SITES) {
        uint32_t count = all - i < CHUNK_SITES ? all - i : CHUNK_SITES;

        error = seep_vitals_copy_entries(copy, SEEP_SECTION_SITES, i, count,
                                         (void *)chunk);
        for (uint32_t j = 0; error == 0 && j < count; j++) {
            if (is_used(&chunk[j], i + j)) {
                error = add_site(copy, &chunk[j], i + j, totals);
            }
        }
    }
    free(chunk);
    return error;
}
