/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What one event does to the tables: locks, blocks, ranges, thinning, in this
 * order.
 *
 * An event is applied under the lock of its site. When that is held by another
 * folder the fold ends, and the ring keeps the event: what applies one returns
 * false if it could not lock a site, and told again it does not do twice what
 * it did before that site: see fold.h.
 */
#include "format/fold.h"

#include "base/hash.h"
#include "base/word.h"
#include "format/account.h"
#include "format/series.h"

#define STEP_ENTRIES 256U
#define LEVEL_MAX 40U

/* @site is within the table: who read it from an entry or an event has asked.
 */
static bool lock_site(struct seep_fold *fold, uint32_t site)
{
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

/* Young blocks, by site. */

static struct seep_fold_young *young_at(struct seep_fold *fold, uint32_t site)
{
    return &fold->young[site % SEEP_FOLD_YOUNG_SITES];
}

static uint64_t young_bytes(struct seep_fold *fold, uint32_t site)
{
    const struct seep_fold_young *young = young_at(fold, site);

    return young->site == site ? young->bytes : 0;
}

static void young_came(struct seep_fold *fold, uint32_t site, uint64_t bytes)
{
    struct seep_fold_young *young = young_at(fold, site);

    if (young->bytes == 0) {
        young->site = site;
    }
    if (young->site == site) {
        young->bytes += bytes;
    }
}

static void young_went(struct seep_fold *fold, uint32_t site, uint64_t bytes)
{
    struct seep_fold_young *young = young_at(fold, site);

    if (young->site == site) {
        young->bytes -= bytes < young->bytes ? bytes : young->bytes;
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

/* The table had no room for one more. */
static void count_full(struct seep_fold *fold, const struct seep_live *live)
{
    const struct seep_view *view = fold->view;
    bool ranges = live->shard == &view->shards[view->shard_count - 1];

    seep_view_count(view,
                    ranges ? SEEP_COUNT_RANGES_FULL : SEEP_COUNT_LIVE_FULL, 1);
}

/* Under the lock of its site. */
static void insert(struct seep_fold *fold, const struct seep_live *live,
                   const struct seep_block *block)
{
    struct seep_weight weight = seep_account_weight(block);

    if (seep_live_insert(live, block)) {
        seep_account_allocated(fold->view, block,
                               young_bytes(fold, block->site));
        add_flow(fold, live->shard, block->site, block->birth_tick,
                 (struct change){weight.bytes, 0});
    } else {
        count_full(fold, live);
        forget(fold, block->address);
    }
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

static struct seep_block block_of(const struct seep_event *event)
{
    return (struct seep_block){
        .address = event->address,
        .size = event->size,
        .site = event->site,
        .birth_tick = event->tick,
        .sample_log2 = event->sample_log2,
    };
}

/* What is live at the address of an allocation goes. */
static bool make_free(struct seep_fold *fold, const struct seep_live *live,
                      const struct seep_event *event)
{
    uint32_t stale = seep_live_find(live, event->address);

    return stale == SEEP_LIVE_NONE ||
           close_stale(fold, live, stale, event->tick);
}

/* Recorded under a lower mean than holds now. */
static bool is_too_dense(const struct seep_view *view,
                         const struct seep_event *event)
{
    return event->sample_log2 < level_of(view) &&
           !SEEP_ADDRESS_IS_KEY(event->address);
}

static bool apply_alloc(struct seep_fold *fold, const struct seep_live *live,
                        const struct seep_event *event)
{
    struct seep_block block = block_of(event);
    unsigned level = level_of(fold->view);

    if (event->site >= fold->view->site_capacity) {
        return true;
    }
    /* The lock first: a coin that was flipped for an event that has to wait
     * would be flipped again, until it falls the wrong way. */
    if (!make_free(fold, live, event) || !lock_site(fold, block.site)) {
        return false;
    }
    if (!is_too_dense(fold->view, event)) {
        insert(fold, live, &block);
    } else if (coin(fold, block.size, block.sample_log2, level)) {
        block.sample_log2 = level;
        insert(fold, live, &block);
    } else {
        forget(fold, block.address);
    }
    unlock_site(fold, block.site);
    return true;
}

bool seep_apply_may_pass(const struct seep_view *view,
                         const struct seep_event *birth)
{
    return birth->site < view->site_capacity && !is_too_dense(view, birth);
}

bool seep_apply_pair(struct seep_fold *fold, const struct seep_live *live,
                     const struct seep_event *birth, uint32_t death_tick)
{
    struct seep_block block = block_of(birth);
    uint64_t bytes = seep_weight_of(block.size, block.sample_log2).bytes;

    if (!make_free(fold, live, birth) || !lock_site(fold, block.site)) {
        return false;
    }
    seep_account_passed(fold->view, &block, death_tick,
                        young_bytes(fold, block.site));
    unlock_site(fold, block.site);
    young_came(fold, block.site, bytes);
    if (death_tick == block.birth_tick) {
        add_flow(fold, live->shard, block.site, death_tick,
                 (struct change){bytes, bytes});
    } else {
        add_flow(fold, live->shard, block.site, block.birth_tick,
                 (struct change){bytes, 0});
        add_flow(fold, live->shard, block.site, death_tick,
                 (struct change){0, bytes});
    }
    forget(fold, block.address);
    return true;
}

void seep_apply_died(struct seep_fold *fold, const struct seep_event *birth)
{
    young_went(fold, birth->site,
               seep_weight_of(birth->size, birth->sample_log2).bytes);
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

/* Put back one stashed block. Where its address is live the OUT that failed was
 * lost, and what is stashed is an older one's, which did not. */
static bool put_back(struct seep_fold *fold, const struct seep_live *live,
                     struct seep_rec_stashed *stashed, uint32_t tick)
{
    struct seep_block block = seep_live_read(&stashed->live);

    if (block.site < fold->view->site_capacity &&
        seep_live_find(live, block.address) == SEEP_LIVE_NONE) {
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
static uint64_t give_up(struct seep_fold *fold, const struct seep_live *live,
                        const struct seep_block *tail, uint32_t tick)
{
    struct seep_weight weight = {tail->size, 0};

    if (!tail->fragment) {
        weight.count_q16 = SEEP_COUNT_ONE;
    }
    count_full(fold, live);
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
        weight.bytes += give_up(fold, live, &tail, tick);
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

/* Forget what earlier events took out; but not what this one did, if it is told
 * again since the site of a further piece was held. */
static void begin_out(const struct seep_live *live, uint64_t address)
{
    uint64_t position = seep_word_load(&live->shard->head) + 1;

    if (seep_word_load(&live->shard->out_told) != position) {
        unstash(live, address);
        seep_word_store(&live->shard->out_told, position);
    }
}

static bool apply_unmap(struct seep_fold *fold, const struct seep_live *live,
                        const struct seep_event *event)
{
    struct span cut = {event->address, event->address + event->size};
    uint32_t index = seep_live_find(live, event->address);
    uint64_t left;

    if (event->kind == SEEP_EVENT_REMAP_OUT) {
        begin_out(live, event->address);
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
        uint64_t count = seep_word_load(&live->shard->live_count);

        if (block.address == 0 || both.start >= both.end) {
            left -= block.address != 0;
            index++;
            continue;
        }
        if (!take_out(fold, live, index, cut, event)) {
            return false;
        }
        /* Another entry may have moved here: look again. None moves to a slot
         * that was passed; but what was cut off is one more to pass. */
        left += seep_word_load(&live->shard->live_count) > count;
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
    if (!lock_site(fold, block.site)) {
        return false;
    }
    insert(fold, live, &block);
    unlock_site(fold, block.site);
    return true;
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
    /* Not tested: the folder of another shard in these few instructions. It
     * was the first then, and has counted it. */
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

void seep_apply_thin(struct seep_fold *fold, const struct seep_live *live)
{
    const struct seep_view *view = fold->view;
    uint64_t count = seep_word_load(&live->shard->live_count);
    uint64_t slots = seep_live_slots(live);
    unsigned level;

    if (live->shard == &view->shards[view->shard_count - 1]) {
        return; /* ranges are few, exact, and never thinned */
    }
    raise_level(fold, live);
    level = level_of(view);
    if (seep_word_load(&live->shard->thin_level) != level) {
        thin_step(fold, live, level,
                  count > slots / 8 * 7 ? (uint32_t)(4 * slots) : STEP_ENTRIES);
    }
}

/* All kinds. */

bool seep_apply_event(struct seep_fold *fold, const struct seep_live *live,
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
