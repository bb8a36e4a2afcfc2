/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What was pushed and not yet folded; see vitals_parts.h.
 *
 * In exact mode that can be most of what a slow program did. It is folded as
 * anywhere else, a shard at a time, into tables that hold what it needs: a
 * live table of the blocks that it frees, and sites that begin at 0, so that
 * they come to what pending events change. (To copy the pages of the real
 * table took 5 us of faults each, 100 ms in all.)
 *
 * Invariant: everything that the fold looks at is private memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/word.h"
#include "format/fold.h"
#include "format/live.h"
#include "reader/snapshot_copy.h"
#include "reader/vitals_parts.h"

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

static uint64_t offset_of(const struct pending *pending,
                          enum seep_section section)
{
    return pending->view.header->sections[section].offset_bytes;
}

/* The slots from the head on, which may go round the end of the ring. */
static int copy_slots(const struct pending *pending, uint32_t index,
                      uint32_t count)
{
    uint32_t slots = pending->view.ring_slots;
    uint64_t size = sizeof(struct seep_rec_event);
    uint64_t ring =
        offset_of(pending, SEEP_SECTION_RINGS) + (uint64_t)index * slots * size;
    uint32_t from =
        (uint32_t)seep_word_load(&pending->shard.head) & (slots - 1);
    uint32_t first = count < slots - from ? count : slots - from;
    int error =
        seep_snapshot_read(pending->copy->fd, (void *)(pending->ring + from),
                           ring + from * size, first * size);

    return error != 0 || first == count
               ? error
               : seep_snapshot_read(pending->copy->fd, (void *)pending->ring,
                                    ring, (count - first) * size);
}

/* Shard and ring as of one moment, if its owner lets it. */
static int copy_shard(struct pending *pending, uint32_t index,
                      uint32_t *ret_count)
{
    uint64_t offset = offset_of(pending, SEEP_SECTION_SHARDS) +
                      (uint64_t)index * sizeof(pending->shard);
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
            error =
                seep_snapshot_read(pending->copy->fd, (void *)&pending->shard,
                                   offset, sizeof(pending->shard));
        }
        if (seep_word_load(&pending->shard.head) == head) {
            break;
        }
    }
    return error;
}

static struct seep_block block_of(struct seep_rec_live *entry)
{
    const struct seep_live one = {.entries = entry};

    return seep_live_get(&one, 0);
}

/* Find @address in the table of the file; what is there goes into ours. */
static int fetch(struct pending *pending, const struct seep_live *theirs,
                 uint64_t first, const struct seep_live *ours, uint64_t address)
{
    uint32_t index = seep_live_home(theirs, address);
    struct seep_rec_live window[WINDOW_ENTRIES];

    for (uint32_t step = 0; step < WINDOWS_MOST; step++) {
        uint32_t count = theirs->mask + 1 - index;
        int error;

        count = count < WINDOW_ENTRIES ? count : WINDOW_ENTRIES;
        error = seep_snapshot_read(pending->copy->fd, (void *)window,
                                   offset_of(pending, SEEP_SECTION_LIVE) +
                                       (first + index) * sizeof(window[0]),
                                   count * sizeof(window[0]));
        for (uint32_t i = 0; error == 0 && i < count; i++) {
            struct seep_block block = block_of(&window[i]);

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

/* A table of ours in the place of the shard's; of ranges, which are looked for
 * anywhere, a copy. */
static int fill_table(struct pending *pending, bool is_ranges, uint32_t count)
{
    const struct seep_live theirs = {
        .mask = (uint32_t)pending->shard.live_slots - 1};
    uint64_t first = pending->shard.live_first;
    struct seep_live ours;

    pending->shard.live_first = 0;
    if (is_ranges) {
        return pending->shard.live_slots > pending->slots
                   ? -E2BIG
                   : seep_snapshot_read(
                         pending->copy->fd, (void *)pending->table,
                         offset_of(pending, SEEP_SECTION_LIVE) +
                             first * sizeof(*pending->table),
                         pending->shard.live_slots * sizeof(*pending->table));
    }
    memset((void *)pending->table, 0, pending->slots * sizeof(*pending->table));
    pending->shard.live_slots = pending->slots;
    seep_word_store(&pending->shard.live_count, 0);
    seep_word_store(&pending->shard.live_bytes, 0);
    seep_word_store(&pending->shard.key_count, 0);
    return seep_live_init(&ours, &pending->view, 0)
               ? fetch_blocks(pending, &theirs, first, &ours, count)
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
    error = fill_table(pending, is_ranges, count);
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
