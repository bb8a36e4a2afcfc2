/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events of single blocks; the invariants are those of fold.h. */
#include "format/account.h"
#include "format/fold_parts.h"

bool seep_fold_insert(struct seep_fold *fold, const struct seep_live *live,
                      const struct seep_block *block)
{
    struct seep_weight weight = seep_account_weight(block);

    if (!seep_fold_lock_site(fold, block->site)) {
        return false;
    }
    if (seep_live_insert(live, block)) {
        seep_account_allocated(fold->view, block);
        seep_fold_flow(live->shard, block->birth_tick, weight.bytes, 0);
    } else {
        seep_view_count(fold->view, SEEP_COUNT_LIVE_FULL, 1);
        seep_fold_forget(fold, block->address);
    }
    seep_fold_unlock_site(fold, block->site);
    return true;
}

bool seep_fold_close(struct seep_fold *fold, const struct seep_live *live,
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
    if (!seep_fold_lock_site(fold, block.site)) {
        return false;
    }
    block.in_series = seep_account_freed(fold->view, block.site, tick,
                                         block.birth_tick, weight);
    seep_live_remove(live, index);
    seep_fold_unlock_site(fold, block.site);
    seep_fold_flow(live->shard, tick, 0, weight.bytes);
    seep_fold_forget(fold, block.address);
    *ret_block = block;
    return true;
}

bool seep_fold_alloc(struct seep_fold *fold, const struct seep_live *live,
                     const struct seep_fold_event *event)
{
    struct seep_block block = {
        .address = event->address,
        .size = event->size,
        .site = event->site,
        .birth_tick = event->tick,
        .sample_log2 = event->sample_log2,
    };
    struct seep_block closed;
    uint32_t stale = seep_live_find(live, event->address);
    unsigned level = seep_fold_level(fold->view);

    if (event->site >= fold->view->site_capacity) {
        return true;
    }
    if (stale != SEEP_LIVE_NONE) {
        /* Its free was lost, else nobody could have got the address. */
        if (!seep_fold_close(fold, live, stale, event->tick, &closed)) {
            return false;
        }
        seep_view_count(fold->view, SEEP_COUNT_LOST_FREES_CLOSED, 1);
    }
    if (block.sample_log2 < level && !SEEP_ADDRESS_IS_KEY(block.address)) {
        if (!seep_fold_coin(fold, block.size, block.sample_log2, level)) {
            seep_fold_forget(fold, block.address);
            return true;
        }
        block.sample_log2 = level;
    }
    return seep_fold_insert(fold, live, &block);
}

void seep_fold_unstash(const struct seep_live *live, uint64_t address)
{
    for (uint32_t i = 0; i < SEEP_STASH_COUNT; i++) {
        _Atomic uint64_t *stashed = &live->shard->stash[i].address;

        if (atomic_load_explicit(stashed, memory_order_relaxed) == address) {
            atomic_store_explicit(stashed, 0, memory_order_relaxed);
        }
    }
}

void seep_fold_stash(const struct seep_live *live, uint64_t address,
                     const struct seep_block *block)
{
    struct seep_rec_shard *shard = live->shard;
    uint32_t next =
        atomic_load_explicit(&shard->stash_next, memory_order_relaxed);
    struct seep_rec_stashed *stashed = &shard->stash[next % SEEP_STASH_COUNT];

    atomic_store_explicit(&stashed->address, address, memory_order_relaxed);
    atomic_store_explicit(&stashed->live.address, block->address,
                          memory_order_relaxed);
    atomic_store_explicit(&stashed->live.size_level,
                          (block->size & SEEP_SIZE_MASK) |
                              (uint64_t)block->sample_log2 << SEEP_SIZE_BITS |
                              (block->fragment ? SEEP_LIVE_FRAGMENT : 0) |
                              (block->in_series ? SEEP_STASHED_IN_SERIES : 0),
                          memory_order_relaxed);
    atomic_store_explicit(&stashed->live.site, block->site,
                          memory_order_relaxed);
    atomic_store_explicit(&stashed->live.birth_tick, block->birth_tick,
                          memory_order_relaxed);
    atomic_store_explicit(&shard->stash_next, next + 1, memory_order_relaxed);
}

bool seep_fold_free(struct seep_fold *fold, const struct seep_live *live,
                    const struct seep_fold_event *event)
{
    uint32_t index = seep_live_find(live, event->address);
    struct seep_block block;

    if (index == SEEP_LIVE_NONE) {
        seep_view_count(fold->view, SEEP_COUNT_FOREIGN_FREES, 1);
        /* Should this realloc fail, what an earlier one took out of the same
         * address must not come back for it. */
        seep_fold_unstash(live, event->address);
        return true;
    }
    if (!seep_fold_close(fold, live, index, event->tick, &block)) {
        return false;
    }
    if (event->kind == SEEP_EVENT_REALLOC_OUT) {
        seep_fold_unstash(live, event->address);
        seep_fold_stash(live, event->address, &block);
    }
    return true;
}

/* Put back one stashed block. */
static bool put_back(struct seep_fold *fold, const struct seep_live *live,
                     struct seep_rec_stashed *stashed, uint32_t tick)
{
    uint64_t size_level =
        atomic_load_explicit(&stashed->live.size_level, memory_order_relaxed);
    struct seep_block block = {
        .address =
            atomic_load_explicit(&stashed->live.address, memory_order_relaxed),
        .size = size_level & SEEP_SIZE_MASK,
        .site = atomic_load_explicit(&stashed->live.site, memory_order_relaxed),
        .birth_tick = atomic_load_explicit(&stashed->live.birth_tick,
                                           memory_order_relaxed),
        .sample_log2 = (unsigned)(size_level >> SEEP_SIZE_BITS) & 63,
        .fragment = (size_level & SEEP_LIVE_FRAGMENT) != 0,
        .in_series = (size_level & SEEP_STASHED_IN_SERIES) != 0,
    };

    if (block.site < fold->view->site_capacity) {
        if (!seep_fold_lock_site(fold, block.site)) {
            return false;
        }
        if (seep_live_insert(live, &block)) {
            seep_account_restored(fold->view, tick, &block);
            seep_fold_flow(live->shard, tick, 0,
                           0 - seep_account_weight(&block).bytes);
        } else {
            seep_view_count(fold->view, SEEP_COUNT_RESTORE_LOST, 1);
        }
        seep_fold_unlock_site(fold, block.site);
    }
    atomic_store_explicit(&stashed->address, 0, memory_order_relaxed);
    return true;
}

bool seep_fold_restore(struct seep_fold *fold, const struct seep_live *live,
                       const struct seep_fold_event *event)
{
    for (uint32_t i = 0; i < SEEP_STASH_COUNT; i++) {
        struct seep_rec_stashed *stashed = &live->shard->stash[i];

        if (event->address != 0 &&
            atomic_load_explicit(&stashed->address, memory_order_relaxed) ==
                event->address &&
            !put_back(fold, live, stashed, event->tick)) {
            return false;
        }
    }
    return true;
}
