/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the ring of a shard into the tables: locks, blocks, ranges, thinning,
 * the ring itself, and a reader's private copy, in this order.
 *
 * An event is applied under the lock of its site, then its slot is given back,
 * then .head moves. When a site is held by another folder nothing of the event
 * has been done yet and the fold ends: the ring keeps it. So what applies an
 * event returns false, and has changed nothing, if it could not lock a site.
 */
#include "format/fold.h"

#include "base/hash.h"
#include "base/word.h"
#include "format/account.h"
#include "format/series.h"

/* Often enough that the smallest table cannot fill up in between. */
#define THIN_EVERY 4U
#define STEP_ENTRIES 256U
#define LEVEL_MAX 40U

/* Locks, and who is told that a block is gone. */

bool seep_fold_try_lock(_Atomic uint64_t *lock, uint32_t thread)
{
    uint64_t seen = seep_word_load(lock);
    uint64_t mine = (uint64_t)thread << 32 | (uint32_t)(seen + 1);

    if ((seen & 1) != 0) {
        return false;
    }
    /* Acquire: what the last holder wrote; pairs with the release in
     * seep_fold_unlock(). */
    if (!atomic_compare_exchange_strong_explicit(
            lock, &seen, mine, memory_order_acquire, memory_order_relaxed)) {
        return false;
    }
    /* Release: a reader that sees what is written next sees the odd word
     * too; pairs with the acquire fence of the reader's second look
     * (reader/recording/open.h). */
    atomic_thread_fence(memory_order_release);
    return true;
}

void seep_fold_unlock(_Atomic uint64_t *lock, uint32_t thread)
{
    uint64_t seen = seep_word_load(lock);

    if ((seen & 1) == 0 || (uint32_t)(seen >> 32) != thread) {
        return; /* it was taken from us, and is not ours to release */
    }
    /* Release: pairs with the acquire in seep_fold_try_lock(). */
    atomic_compare_exchange_strong_explicit(
        lock, &seen, (uint64_t)(uint32_t)(seen + 1), memory_order_release,
        memory_order_relaxed);
}

static bool lock_site(struct seep_fold *fold, uint32_t site)
{
    if (site >= fold->view->site_capacity) {
        return false;
    }
    if (fold->held_site != NULL) {
        seep_word_store(fold->held_site, site + 1);
    }
    for (int attempt = 0; attempt < 64; attempt++) {
        if (seep_fold_try_lock(&fold->view->sites[site].lock, fold->thread)) {
            return true;
        }
    }
    if (fold->held_site != NULL) {
        seep_word_store(fold->held_site, 0);
    }
    fold->blocked_site = site + 1;
    return false;
}

static void unlock_site(struct seep_fold *fold, uint32_t site)
{
    seep_fold_unlock(&fold->view->sites[site].lock, fold->thread);
    if (fold->held_site != NULL) {
        seep_word_store(fold->held_site, 0);
    }
}

static void forget(struct seep_fold *fold, uint64_t address)
{
    if (fold->forget != NULL && !SEEP_ADDRESS_IS_KEY(address)) {
        fold->forget(fold->context, address);
    }
}

/* What came and went in a shard, by bucket. */

struct change {
    uint64_t allocated_bytes;
    uint64_t freed_bytes;
};

static void flow_widen(struct seep_rec_shard *shard, uint32_t width_log2)
{
    uint32_t width = seep_word_load(&shard->flow_width_log2);

    for (; width < width_log2; width++) {
        for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
            struct seep_rec_flow *into = &shard->flow[i];
            uint64_t allocated = 0;
            uint64_t freed = 0;

            if (i < SEEP_BUCKET_COUNT / 2) {
                allocated =
                    seep_word_load(&shard->flow[2 * i].allocated_bytes) +
                    seep_word_load(&shard->flow[2 * i + 1].allocated_bytes);
                freed = seep_word_load(&shard->flow[2 * i].freed_bytes) +
                        seep_word_load(&shard->flow[2 * i + 1].freed_bytes);
            }
            seep_word_store(&into->allocated_bytes, allocated);
            seep_word_store(&into->freed_bytes, freed);
        }
        seep_word_store(&shard->flow_width_log2, width + 1);
    }
}

/* What came and went at @site, for the sum of the shard. */
static void add_flow(const struct seep_fold *fold, struct seep_rec_shard *shard,
                     uint32_t site, uint32_t tick, struct change change)
{
    uint32_t width;
    struct seep_rec_flow *flow;

    if (fold->view->sites[site].space == SEEP_SPACE_FILE) {
        return; /* see struct seep_rec_flow */
    }
    flow_widen(shard, seep_series_width_for(tick));
    width = seep_word_load(&shard->flow_width_log2);
    flow = &shard->flow[(tick >> (width & 31)) % SEEP_BUCKET_COUNT];
    seep_word_store(&flow->allocated_bytes,
                    seep_word_load(&flow->allocated_bytes) +
                        change.allocated_bytes);
    seep_word_store(&flow->freed_bytes,
                    seep_word_load(&flow->freed_bytes) + change.freed_bytes);
}

/* The coin that thins. */

static unsigned level_of(const struct seep_view *view)
{
    return seep_word_load(&view->header->sample_log2) & 63;
}

static double uniform(struct seep_fold *fold)
{
    fold->random += fold->random == 0;
    return (double)(seep_hash_random(&fold->random) >> 11) * 0x1p-53;
}

static bool coin(struct seep_fold *fold, uint64_t size, unsigned from_log2,
                 unsigned to_log2)
{
    double keep = seep_weight_probability(size, to_log2) /
                  seep_weight_probability(size, from_log2);

    return uniform(fold) < keep;
}

/*
 * Blocks, found by their exact address.
 */

static bool insert(struct seep_fold *fold, const struct seep_live *live,
                   const struct seep_block *block)
{
    struct seep_weight weight = seep_account_weight(block);

    if (!lock_site(fold, block->site)) {
        return false;
    }
    if (seep_live_insert(live, block)) {
        seep_account_allocated(fold->view, block);
        add_flow(fold, live->shard, block->site, block->birth_tick,
                 (struct change){weight.bytes, 0});
    } else {
        seep_view_count(fold->view, SEEP_COUNT_LIVE_FULL, 1);
        forget(fold, block->address);
    }
    unlock_site(fold, block->site);
    return true;
}

/*
 * Take the entry at @index out and account it as freed at @tick.
 *
 * @param ret_block  what was taken out, for stash()
 */
static bool close_entry(struct seep_fold *fold, const struct seep_live *live,
                        uint32_t index, uint32_t tick,
                        struct seep_block *ret_block)
{
    struct seep_block block = seep_live_get(live, index);
    struct seep_weight weight = seep_account_weight(&block);

    if (block.site >= fold->view->site_capacity) {
        seep_live_remove(live, index); /* a damaged copy */
        *ret_block = block;
        return true;
    }
    if (!lock_site(fold, block.site)) {
        return false;
    }
    block.in_series = seep_account_freed(fold->view, block.site, tick,
                                         block.birth_tick, weight);
    seep_live_remove(live, index);
    unlock_site(fold, block.site);
    add_flow(fold, live->shard, block.site, tick,
             (struct change){0, weight.bytes});
    forget(fold, block.address);
    *ret_block = block;
    return true;
}

/* The free of the entry at @index was lost, else nobody could have got its
 * address. */
static bool close_stale(struct seep_fold *fold, const struct seep_live *live,
                        uint32_t index, uint32_t tick)
{
    struct seep_block closed;

    if (!close_entry(fold, live, index, tick, &closed)) {
        return false;
    }
    seep_view_count(fold->view, SEEP_COUNT_LOST_FREES_CLOSED, 1);
    return true;
}

static bool apply_alloc(struct seep_fold *fold, const struct seep_live *live,
                        const struct seep_event *event)
{
    struct seep_block block = {
        .address = event->address,
        .size = event->size,
        .site = event->site,
        .birth_tick = event->tick,
        .sample_log2 = event->sample_log2,
    };
    uint32_t stale = seep_live_find(live, event->address);
    unsigned level = level_of(fold->view);

    if (event->site >= fold->view->site_capacity) {
        return true;
    }
    if (stale != SEEP_LIVE_NONE &&
        !close_stale(fold, live, stale, event->tick)) {
        return false;
    }
    if (block.sample_log2 < level && !SEEP_ADDRESS_IS_KEY(block.address)) {
        if (!coin(fold, block.size, block.sample_log2, level)) {
            forget(fold, block.address);
            return true;
        }
        block.sample_log2 = level;
    }
    return insert(fold, live, &block);
}

/* Forget what earlier events took out at @address: those succeeded. */
static void unstash(const struct seep_live *live, uint64_t address)
{
    for (uint32_t i = 0; i < SEEP_STASH_COUNT; i++) {
        _Atomic uint64_t *stashed = &live->shard->stash[i].address;

        if (seep_word_load(stashed) == address) {
            seep_word_store(stashed, 0);
        }
    }
}

static void stash(const struct seep_live *live, uint64_t address,
                  const struct seep_block *block)
{
    struct seep_rec_shard *shard = live->shard;
    uint32_t next = seep_word_load(&shard->stash_next);
    struct seep_rec_stashed *stashed = &shard->stash[next % SEEP_STASH_COUNT];

    seep_word_store(&stashed->address, address);
    seep_word_store(&stashed->live.address, block->address);
    seep_word_store(&stashed->live.size_level,
                    seep_live_size_level(block) |
                        (block->in_series ? SEEP_STASHED_IN_SERIES : 0));
    seep_word_store(&stashed->live.site, block->site);
    seep_word_store(&stashed->live.birth_tick, block->birth_tick);
    seep_word_store(&shard->stash_next, next + 1);
}

static bool apply_free(struct seep_fold *fold, const struct seep_live *live,
                       const struct seep_event *event)
{
    uint32_t index = seep_live_find(live, event->address);
    struct seep_block block;

    if (index == SEEP_LIVE_NONE) {
        seep_view_count(fold->view, SEEP_COUNT_FOREIGN_FREES, 1);
        /* Should this realloc fail, what an earlier one took out of the same
         * address must not come back for it. */
        unstash(live, event->address);
        return true;
    }
    if (!close_entry(fold, live, index, event->tick, &block)) {
        return false;
    }
    if (event->kind == SEEP_EVENT_REALLOC_OUT) {
        unstash(live, event->address);
        stash(live, event->address, &block);
    }
    return true;
}

/* Put back one stashed block. */
static bool put_back(struct seep_fold *fold, const struct seep_live *live,
                     struct seep_rec_stashed *stashed, uint32_t tick)
{
    struct seep_block block = seep_live_read(&stashed->live);

    if (block.site < fold->view->site_capacity) {
        if (!lock_site(fold, block.site)) {
            return false;
        }
        if (seep_live_insert(live, &block)) {
            seep_account_restored(fold->view, tick, &block);
            add_flow(fold, live->shard, block.site, tick,
                     (struct change){0, 0 - seep_account_weight(&block).bytes});
        } else {
            seep_view_count(fold->view, SEEP_COUNT_RESTORE_LOST, 1);
        }
        unlock_site(fold, block.site);
    }
    seep_word_store(&stashed->address, 0);
    return true;
}

static bool apply_restore(struct seep_fold *fold, const struct seep_live *live,
                          const struct seep_event *event)
{
    for (uint32_t i = 0; i < SEEP_STASH_COUNT; i++) {
        struct seep_rec_stashed *stashed = &live->shard->stash[i];

        if (event->address != 0 &&
            seep_word_load(&stashed->address) == event->address &&
            !put_back(fold, live, stashed, event->tick)) {
            return false;
        }
    }
    return true;
}

/*
 * Mappings. An entry is one contiguous piece that is still mapped; munmap can
 * take all of it, an end, or a part in its middle, of several at once.
 *
 * A piece that is cut off keeps its birth and its site. Only one piece of a
 * mapping counts as the block, so that allocated counts stay those of mmap.
 * Memory and files lie in one table: an address is mapped as the one or the
 * other, and what is unmapped or mapped over may be pieces of both.
 */

struct span {
    uint64_t start;
    uint64_t end;
};

static struct span overlap(const struct seep_block *block, struct span cut)
{
    struct span both = {block->address, block->address + block->size};

    if (both.start < cut.start) {
        both.start = cut.start;
    }
    if (both.end > cut.end) {
        both.end = cut.end;
    }
    return both;
}

/* What is behind the hole finds no room: nobody could tell when it goes, so it
 * goes now. @return its bytes */
static uint64_t give_up(struct seep_fold *fold, const struct seep_block *tail,
                        uint32_t tick)
{
    struct seep_weight weight = {tail->size, 0};

    if (!tail->fragment) {
        weight.count_q16 = SEEP_COUNT_ONE;
    }
    seep_view_count(fold->view, SEEP_COUNT_LIVE_FULL, 1);
    seep_account_freed(fold->view, tail->site, tick, tail->birth_tick, weight);
    return weight.bytes;
}

/* The entry at @index loses @gone, a proper part of it. */
static bool cut_piece(struct seep_fold *fold, const struct seep_live *live,
                      uint32_t index, struct span gone, uint32_t tick,
                      bool *ret_in_series)
{
    struct seep_block block = seep_live_get(live, index);
    uint64_t end = block.address + block.size;
    struct seep_block head = block;
    struct seep_block tail = block;
    struct seep_weight weight = {gone.end - gone.start, 0};

    if (!lock_site(fold, block.site)) {
        return false;
    }
    *ret_in_series = seep_account_freed(fold->view, block.site, tick,
                                        block.birth_tick, weight);
    head.size = gone.start - block.address;
    tail.address = gone.end;
    tail.size = end - gone.end;
    tail.fragment = block.fragment || head.size != 0;
    if (head.size != 0) {
        seep_live_update(live, index, &head);
    } else {
        seep_live_remove(live, index);
    }
    if (tail.size != 0 && !seep_live_insert(live, &tail)) {
        weight.bytes += give_up(fold, &tail, tick);
    }
    unlock_site(fold, block.site);
    add_flow(fold, live->shard, block.site, tick,
             (struct change){0, weight.bytes});
    return true;
}

/* Take @cut out of the entry at @index, which overlaps it. */
static bool take_out(struct seep_fold *fold, const struct seep_live *live,
                     uint32_t index, struct span cut,
                     const struct seep_event *event)
{
    struct seep_block block = seep_live_get(live, index);
    struct span gone = overlap(&block, cut);
    struct seep_block piece = block;
    bool in_series;

    if (block.site >= fold->view->site_capacity) {
        seep_live_remove(live, index); /* a damaged copy */
        return true;
    }
    if (gone.end - gone.start == block.size) {
        if (!close_entry(fold, live, index, event->tick, &piece)) {
            return false;
        }
    } else {
        if (!cut_piece(fold, live, index, gone, event->tick, &in_series)) {
            return false;
        }
        piece.address = gone.start;
        piece.size = gone.end - gone.start;
        piece.fragment = true;
        piece.in_series = in_series;
    }
    if (event->kind == SEEP_EVENT_REMAP_OUT) {
        stash(live, event->address, &piece);
    }
    return true;
}

static bool apply_unmap(struct seep_fold *fold, const struct seep_live *live,
                        const struct seep_event *event)
{
    struct span cut = {event->address, event->address + event->size};
    uint32_t index = seep_live_find(live, event->address);
    uint64_t left;

    if (event->kind == SEEP_EVENT_REMAP_OUT) {
        unstash(live, event->address);
    }
    /* Nearly always it is one whole mapping. */
    if (index != SEEP_LIVE_NONE &&
        seep_live_get(live, index).size == event->size) {
        return take_out(fold, live, index, cut, event);
    }
    left = seep_word_load(&live->shard->live_count);
    for (index = 0; index < seep_live_end(live) && left > 0;) {
        struct seep_block block = seep_live_get(live, index);
        struct span both = overlap(&block, cut);

        if (block.address == 0 || both.start >= both.end) {
            left -= block.address != 0;
            index++;
        } else if (!take_out(fold, live, index, cut, event)) {
            /* Else another entry may have moved here: look again. None moves
             * to a slot that was passed. */
            return false;
        }
    }
    return true;
}

static bool apply_map(struct seep_fold *fold, const struct seep_live *live,
                      const struct seep_event *event)
{
    uint32_t stale = seep_live_find(live, event->address);
    struct seep_block block = {
        .address = event->address,
        .size = event->size,
        .site = event->site,
        .birth_tick = event->tick,
    };

    if (event->site >= fold->view->site_capacity || event->size == 0) {
        return true;
    }
    /* Unmapped unseen, by a raw system call say. (What MAP_FIXED replaces is
     * told by an event of its own.) */
    if (stale != SEEP_LIVE_NONE &&
        !close_stale(fold, live, stale, event->tick)) {
        return false;
    }
    return insert(fold, live, &block);
}

/*
 * Thinning: when a shard's table is three quarters full, the mean sampling
 * interval doubles for the whole recording, and every shard drops blocks by
 * coin flips until what is left looks as if it had been sampled so from the
 * start.
 *
 * Invariant: a block kept under mean m stands for s / p(m) bytes. Going from
 * p1 to p2 it is kept with probability p2 / p1, and its site and its cohort
 * are told the difference at once, so allocated - freed = live holds at every
 * moment and every total stays unbiased.
 */

/* Of what is live, what can be thinned. */
static uint64_t sampled_count(const struct seep_live *live)
{
    uint64_t count = seep_word_load(&live->shard->live_count);
    uint64_t keys = seep_word_load(&live->shard->key_count);

    return count > keys ? count - keys : 0;
}

/* The next level: twice the mean; from exact, about the mean block. */
static unsigned next_level(const struct seep_live *live, unsigned level)
{
    uint64_t count = sampled_count(live);
    uint64_t bytes = seep_word_load(&live->shard->live_bytes);
    unsigned next = level + 1;

    if (level == 0 && count != 0) {
        while (next < LEVEL_MAX && (UINT64_C(1) << next) < bytes / count) {
            next++;
        }
    }
    return next;
}

static void raise_level(struct seep_fold *fold, const struct seep_live *live)
{
    const struct seep_view *view = fold->view;
    unsigned level = level_of(view);
    uint64_t count = seep_word_load(&live->shard->live_count);
    uint64_t slots = seep_live_slots(live);
    uint32_t seen = level;

    /* A table that is full of what is never thinned gains nothing by it. */
    if (count <= slots / 4 * 3 || sampled_count(live) <= slots / 8 ||
        level >= LEVEL_MAX ||
        seep_word_load(&live->shard->thin_level) != level) {
        return;
    }
    if (seep_word_replace(&view->header->sample_log2, &seen,
                          next_level(live, level))) {
        seep_view_count(view, SEEP_COUNT_THINNINGS, 1);
    }
}

/* Thin the entry at @index. @return false: its site is held, try later */
static bool thin_entry(struct seep_fold *fold, const struct seep_live *live,
                       uint32_t index, unsigned level)
{
    struct seep_block block = seep_live_get(live, index);
    struct seep_weight before = seep_account_weight(&block);
    struct seep_weight after = {0, 0};
    uint32_t site = block.site;
    bool keep;

    if (site >= fold->view->site_capacity) {
        seep_live_remove(live, index); /* a damaged copy */
        return true;
    }
    if (!lock_site(fold, site)) {
        return false;
    }
    keep = coin(fold, block.size, block.sample_log2, level);
    if (keep) {
        block.sample_log2 = level;
        after = seep_account_weight(&block);
        seep_live_update(live, index, &block);
    } else {
        seep_live_remove(live, index);
    }
    seep_account_reweighed(fold->view, site, block.birth_tick, before, after);
    unlock_site(fold, site);
    add_flow(fold, live->shard, site, block.birth_tick,
             (struct change){after.bytes - before.bytes, 0});
    if (!keep) {
        seep_view_count(fold->view, SEEP_COUNT_THINNED_BLOCKS, 1);
        forget(fold, block.address);
    }
    return true;
}

/* One pass over part of the table; the level is reached by a pass that found
 * nothing to do, for a shift can carry an entry behind the cursor. */
static void thin_step(struct seep_fold *fold, const struct seep_live *live,
                      unsigned level, uint32_t limit)
{
    struct seep_rec_shard *shard = live->shard;
    uint32_t at = seep_word_load(&shard->thin_cursor);
    uint32_t end = seep_live_end(live);
    uint32_t index = at & live->mask;
    bool dirty = (at & ~live->mask) != 0;

    if (index >= end) {
        index = 0;
    }
    if (end == 0) {
        seep_word_store(&shard->thin_level, level);
    }
    for (uint32_t step = 0; step < limit && end != 0; step++) {
        struct seep_block block = seep_live_get(live, index);

        if (block.address != 0 && block.sample_log2 < level &&
            !SEEP_ADDRESS_IS_KEY(block.address)) {
            if (!thin_entry(fold, live, index, level)) {
                break;
            }
            dirty = true;
            continue; /* another entry may have moved here */
        }
        index++;
        if (index < end) {
            continue;
        }
        index = 0;
        if (!dirty) {
            seep_word_store(&shard->thin_level, level);
            break;
        }
        dirty = false;
    }
    seep_word_store(&shard->thin_cursor, index | (dirty ? live->mask + 1 : 0));
}

static void thin(struct seep_fold *fold, const struct seep_live *live,
                 uint32_t shard)
{
    const struct seep_view *view = fold->view;
    uint64_t count = seep_word_load(&live->shard->live_count);
    uint64_t slots = seep_live_slots(live);
    unsigned level;

    if (shard + 1 == view->shard_count) {
        return; /* ranges are few, exact, and never thinned */
    }
    raise_level(fold, live);
    level = level_of(view);
    if (seep_word_load(&live->shard->thin_level) != level) {
        thin_step(fold, live, level,
                  count > slots / 8 * 7 ? (uint32_t)(4 * slots) : STEP_ENTRIES);
    }
}

/*
 * The ring.
 */

static bool apply(struct seep_fold *fold, const struct seep_live *live,
                  const struct seep_event *event)
{
    switch (event->kind) {
    case SEEP_EVENT_ALLOC:
        return apply_alloc(fold, live, event);
    case SEEP_EVENT_FREE:
    case SEEP_EVENT_REALLOC_OUT:
        return apply_free(fold, live, event);
    case SEEP_EVENT_RESTORE:
        return apply_restore(fold, live, event);
    case SEEP_EVENT_MAP:
        return apply_map(fold, live, event);
    case SEEP_EVENT_UNMAP:
    case SEEP_EVENT_REMAP_OUT:
        return apply_unmap(fold, live, event);
    default:
        return true; /* a torn or damaged event changes nothing */
    }
}

static struct seep_event read_event(const struct seep_rec_event *slot)
{
    uint64_t size_kind = seep_word_load(&slot->size_kind);

    return (struct seep_event){
        .address = seep_word_load(&slot->address),
        .size = size_kind & SEEP_SIZE_MASK,
        .sample_log2 = (unsigned)(size_kind >> SEEP_SIZE_BITS) & 63,
        .kind = (enum seep_event_kind)(size_kind >> (SEEP_SIZE_BITS + 8)),
        .site = seep_word_load(&slot->site),
        .tick = seep_word_load(&slot->tick),
    };
}

uint32_t seep_fold_shard(struct seep_fold *fold, uint32_t shard, uint32_t limit)
{
    const struct seep_view *view = fold->view;
    struct seep_rec_event *ring = seep_view_ring(view, shard);
    struct seep_rec_shard *header = &view->shards[shard];
    uint64_t head = seep_word_load(&header->head) & SEEP_VIEW_POSITION_MASK;
    struct seep_live live;
    uint32_t done = 0;

    if (!seep_live_init(&live, view, shard)) {
        return 0;
    }
    while (done < limit) {
        struct seep_rec_event *slot = &ring[head & (view->ring_slots - 1)];
        uint64_t state;
        uint64_t position;

        if (head < view->ring_slots &&
            !seep_view_has(view, slot, sizeof(*slot))) {
            break; /* no event has come so far yet */
        }
        /* Acquire: the event's fields; pairs with the release by which its
         * producer made it READY (record/ring.c). */
        state = atomic_load_explicit(&slot->state, memory_order_acquire);
        position = seep_view_position(view, state, head);
        if (fold->still_ours != NULL && !fold->still_ours()) {
            return done;
        }
        if (position == head && seep_view_phase(state) == SEEP_SLOT_READY) {
            struct seep_event event = read_event(slot);

            if (!apply(fold, &live, &event)) {
                break;
            }
            /* Release: the fields were read; pairs with the acquire of the
             * producer that claims the slot next (record/ring.c). */
            atomic_store_explicit(&slot->state,
                                  seep_view_state(view, head + view->ring_slots,
                                                  SEEP_SLOT_FREE, 0),
                                  memory_order_release);
            done++;
            if (done % THIN_EVERY == 0) {
                thin(fold, &live, shard);
            }
        } else if (position !=
                   ((head + view->ring_slots) & SEEP_VIEW_POSITION_MASK)) {
            break; /* not ready; else: given back, and then killed */
        }
        head = (head + 1) & SEEP_VIEW_POSITION_MASK;
        seep_word_store(&header->head, head);
    }
    thin(fold, &live, shard);
    return done;
}

uint32_t seep_fold_backlog(const struct seep_view *view, uint32_t shard)
{
    uint64_t tail = seep_word_load(&view->shards[shard].tail_hint);
    uint64_t head = seep_word_load(&view->shards[shard].head);
    uint64_t backlog = (tail - head) & SEEP_VIEW_POSITION_MASK;

    return backlog > view->ring_slots ? 0 : (uint32_t)backlog;
}

/*
 * What the dead left: their locks, and a private copy of their recording.
 */

void seep_fold_repair_shard(struct seep_fold *fold, uint32_t shard)
{
    struct seep_live live;

    if (!seep_live_init(&live, fold->view, shard)) {
        return;
    }
    seep_live_repair(&live);
    /* The count of a small table: where munmap stops looking. */
    if (shard + 1 == fold->view->shard_count) {
        seep_live_recount(&live);
    }
}

/* Pass over a claimed slot of the dead. @return false: the ring ends here */
static bool skip_claimed(const struct seep_view *view, uint32_t shard)
{
    struct seep_rec_shard *header = &view->shards[shard];
    uint64_t head = seep_word_load(&header->head) & SEEP_VIEW_POSITION_MASK;
    struct seep_rec_event *slot =
        &seep_view_ring(view, shard)[head & (view->ring_slots - 1)];
    uint64_t state = seep_word_load(&slot->state);

    if (seep_view_position(view, state, head) != head ||
        seep_view_phase(state) != SEEP_SLOT_CLAIMED) {
        return false;
    }
    seep_word_store(&slot->state, seep_view_state(view, head + view->ring_slots,
                                                  SEEP_SLOT_FREE, 0));
    seep_word_store(&header->head, (head + 1) & SEEP_VIEW_POSITION_MASK);
    return true;
}

static void fold_copied_shard(struct seep_fold *fold, uint32_t shard, bool dead,
                              uint64_t *applied, uint64_t *torn)
{
    const struct seep_view *view = fold->view;
    struct seep_rec_shard *header = &view->shards[shard];

    struct seep_live live;

    if (((seep_word_load(&header->lock) & 1) != 0 ||
         seep_word_load(&header->move) != 0) &&
        seep_live_init(&live, view, shard)) {
        seep_live_repair(&live);
        seep_live_recount(&live);
    }
    seep_word_store(&header->lock, 0);
    /* Twice the ring: a hostile file must not keep us for ever. */
    for (uint32_t i = 0; i < 2 * view->ring_slots; i++) {
        *applied += seep_fold_shard(fold, shard, view->ring_slots);
        if (!dead || !skip_claimed(view, shard)) {
            break;
        }
        *torn += 1;
    }
}

void seep_fold_private_copy(const struct seep_view *view, bool dead,
                            uint64_t *ret_applied, uint64_t *ret_torn)
{
    struct seep_fold fold = {.view = view, .thread = 1, .random = 1};
    uint64_t applied = 0;
    uint64_t torn = 0;

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        seep_word_store(&view->sites[i].lock, 0);
    }
    for (uint32_t i = 0; i < view->shard_count; i++) {
        fold_copied_shard(&fold, i, dead, &applied, &torn);
    }
    *ret_applied = applied;
    *ret_torn = torn;
}
