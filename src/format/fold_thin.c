/* SPDX-License-Identifier: LGPL-2.1-or-later */
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
#include "format/account.h"
#include "format/fold_parts.h"

#define STEP_ENTRIES 256U
#define LEVEL_MAX 40U

unsigned seep_fold_level(const struct seep_view *view)
{
    return atomic_load_explicit(&view->header->sample_log2,
                                memory_order_relaxed) &
           63;
}

static double uniform(struct seep_fold *fold)
{
    /* xorshift64* (Vigna 2016) */
    uint64_t x = fold->random != 0 ? fold->random : 1;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    fold->random = x;
    return (double)((x * UINT64_C(0x2545f4914f6cdd1d)) >> 11) * 0x1p-53;
}

bool seep_fold_coin(struct seep_fold *fold, uint64_t size, unsigned from_log2,
                    unsigned to_log2)
{
    double keep = seep_weight_probability(size, to_log2) /
                  seep_weight_probability(size, from_log2);

    return uniform(fold) < keep;
}

/* Of what is live, what can be thinned. */
static uint64_t sampled_count(const struct seep_live *live)
{
    uint64_t count =
        atomic_load_explicit(&live->shard->live_count, memory_order_relaxed);
    uint64_t keys =
        atomic_load_explicit(&live->shard->key_count, memory_order_relaxed);

    return count > keys ? count - keys : 0;
}

/* The next level: twice the mean; from exact, about the mean block. */
static unsigned next_level(const struct seep_live *live, unsigned level)
{
    uint64_t count = sampled_count(live);
    uint64_t bytes =
        atomic_load_explicit(&live->shard->live_bytes, memory_order_relaxed);
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
    unsigned level = seep_fold_level(view);
    uint64_t count =
        atomic_load_explicit(&live->shard->live_count, memory_order_relaxed);
    uint64_t slots = (uint64_t)live->mask + 1;
    uint32_t seen = level;

    /* A table that is full of what is never thinned gains nothing by it. */
    if (count <= slots / 4 * 3 || sampled_count(live) <= slots / 8 ||
        level >= LEVEL_MAX ||
        atomic_load_explicit(&live->shard->thin_level, memory_order_relaxed) !=
            level) {
        return;
    }
    if (atomic_compare_exchange_strong_explicit(
            &view->header->sample_log2, &seen, next_level(live, level),
            memory_order_relaxed, memory_order_relaxed)) {
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
    if (!seep_fold_lock_site(fold, site)) {
        return false;
    }
    keep = seep_fold_coin(fold, block.size, block.sample_log2, level);
    if (keep) {
        block.sample_log2 = level;
        after = seep_account_weight(&block);
        seep_live_update(live, index, &block);
    } else {
        seep_live_remove(live, index);
    }
    seep_account_reweighed(fold->view, site, block.birth_tick, before, after);
    seep_fold_unlock_site(fold, site);
    seep_fold_flow(live->shard, block.birth_tick, after.bytes - before.bytes,
                   0);
    if (!keep) {
        seep_view_count(fold->view, SEEP_COUNT_THINNED_BLOCKS, 1);
        seep_fold_forget(fold, block.address);
    }
    return true;
}

/* One pass over part of the table; the level is reached by a pass that found
 * nothing to do, for a shift can carry an entry behind the cursor. */
static void thin_step(struct seep_fold *fold, const struct seep_live *live,
                      unsigned level, uint32_t limit)
{
    struct seep_rec_shard *shard = live->shard;
    uint32_t at =
        atomic_load_explicit(&shard->thin_cursor, memory_order_relaxed);
    uint32_t index = at & live->mask;
    bool dirty = (at & ~live->mask) != 0;

    for (uint32_t step = 0; step < limit; step++) {
        struct seep_block block = seep_live_get(live, index);

        if (block.address != 0 && block.sample_log2 < level &&
            !SEEP_ADDRESS_IS_KEY(block.address)) {
            if (!thin_entry(fold, live, index, level)) {
                break;
            }
            dirty = true;
            continue; /* another entry may have moved here */
        }
        index = (index + 1) & live->mask;
        if (index != 0) {
            continue;
        }
        if (!dirty) {
            atomic_store_explicit(&shard->thin_level, level,
                                  memory_order_relaxed);
            break;
        }
        dirty = false;
    }
    atomic_store_explicit(&shard->thin_cursor,
                          index | (dirty ? live->mask + 1 : 0),
                          memory_order_relaxed);
}

void seep_fold_thin(struct seep_fold *fold, const struct seep_live *live,
                    uint32_t shard)
{
    const struct seep_view *view = fold->view;
    uint64_t count =
        atomic_load_explicit(&live->shard->live_count, memory_order_relaxed);
    uint64_t slots = (uint64_t)live->mask + 1;
    unsigned level;

    if (shard + 1 == view->shard_count) {
        return; /* ranges are few, exact, and never thinned */
    }
    raise_level(fold, live);
    level = seep_fold_level(view);
    if (atomic_load_explicit(&live->shard->thin_level, memory_order_relaxed) !=
        level) {
        thin_step(fold, live, level,
                  count > slots / 8 * 7 ? (uint32_t)(4 * slots) : STEP_ENTRIES);
    }
}
