/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mappings. An entry is one contiguous piece that is still mapped; munmap can
 * take all of it, an end, or a part in its middle, of several at once.
 *
 * A piece that is cut off keeps its birth and its site. Only one piece of a
 * mapping counts as the block, so that allocated counts stay those of mmap.
 */
#include "format/account.h"
#include "format/fold_parts.h"

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

    if (!seep_fold_lock_site(fold, block.site)) {
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
        seep_view_count(fold->view, SEEP_COUNT_LIVE_FULL, 1);
    }
    seep_fold_unlock_site(fold, block.site);
    seep_fold_flow(live->shard, tick, 0, weight.bytes);
    return true;
}

/* Take @cut out of the entry at @index, which overlaps it. */
static bool take_out(struct seep_fold *fold, const struct seep_live *live,
                     uint32_t index, struct span cut,
                     const struct seep_fold_event *event)
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
        if (!seep_fold_close(fold, live, index, event->tick, &piece)) {
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
        seep_fold_stash(live, event->address, &piece);
    }
    return true;
}

bool seep_fold_unmap(struct seep_fold *fold, const struct seep_live *live,
                     const struct seep_fold_event *event)
{
    struct span cut = {event->address, event->address + event->size};
    uint32_t index = seep_live_find(live, event->address);
    uint64_t left;

    if (event->kind == SEEP_EVENT_REMAP_OUT) {
        seep_fold_unstash(live, event->address);
    }
    /* Nearly always it is one whole mapping. */
    if (index != SEEP_LIVE_NONE &&
        seep_live_get(live, index).size == event->size) {
        return take_out(fold, live, index, cut, event);
    }
    left = atomic_load_explicit(&live->shard->live_count, memory_order_relaxed);
    for (index = 0; index <= live->mask && left > 0;) {
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

bool seep_fold_map(struct seep_fold *fold, const struct seep_live *live,
                   const struct seep_fold_event *event)
{
    uint32_t stale = seep_live_find(live, event->address);
    struct seep_block closed;
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
    if (stale != SEEP_LIVE_NONE) {
        if (!seep_fold_close(fold, live, stale, event->tick, &closed)) {
            return false;
        }
        seep_view_count(fold->view, SEEP_COUNT_LOST_FREES_CLOSED, 1);
    }
    return seep_fold_insert(fold, live, &block);
}
