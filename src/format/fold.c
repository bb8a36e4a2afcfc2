/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the ring of a shard into the tables; see fold.h.
 *
 * An event is applied under the lock of its site, then its slot is given back,
 * then .head moves. When a site is held by another folder nothing of the event
 * has been done yet and the fold ends: the ring keeps it.
 */
#include "format/fold.h"

#include "base/word.h"
#include "format/fold_parts.h"
#include "format/series.h"

/* Often enough that the smallest table cannot fill up in between. */
#define THIN_EVERY 4U

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
     * too; pairs with the acquire fence of the reader's second look. */
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

bool seep_fold_lock_site(struct seep_fold *fold, uint32_t site)
{
    if (site >= fold->view->site_capacity) {
        return false;
    }
    if (fold->held_site != NULL) {
        atomic_store_explicit(fold->held_site, site + 1, memory_order_relaxed);
    }
    for (int attempt = 0; attempt < 64; attempt++) {
        if (seep_fold_try_lock(&fold->view->sites[site].lock, fold->thread)) {
            return true;
        }
    }
    if (fold->held_site != NULL) {
        atomic_store_explicit(fold->held_site, 0, memory_order_relaxed);
    }
    fold->blocked_site = site + 1;
    return false;
}

void seep_fold_unlock_site(struct seep_fold *fold, uint32_t site)
{
    seep_fold_unlock(&fold->view->sites[site].lock, fold->thread);
    if (fold->held_site != NULL) {
        atomic_store_explicit(fold->held_site, 0, memory_order_relaxed);
    }
}

void seep_fold_forget(struct seep_fold *fold, uint64_t address)
{
    if (fold->forget != NULL && !SEEP_ADDRESS_IS_KEY(address)) {
        fold->forget(fold->context, address);
    }
}

static void flow_widen(struct seep_rec_shard *shard, uint32_t width_log2)
{
    uint32_t width =
        atomic_load_explicit(&shard->flow_width_log2, memory_order_relaxed);

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
        atomic_store_explicit(&shard->flow_width_log2, width + 1,
                              memory_order_relaxed);
    }
}

void seep_fold_flow(struct seep_rec_shard *shard, uint32_t tick,
                    uint64_t allocated_bytes, uint64_t freed_bytes)
{
    uint32_t width;
    struct seep_rec_flow *flow;

    flow_widen(shard, seep_series_width_for(tick));
    width = atomic_load_explicit(&shard->flow_width_log2, memory_order_relaxed);
    flow = &shard->flow[(tick >> (width & 31)) % SEEP_BUCKET_COUNT];
    seep_word_store(&flow->allocated_bytes,
                    seep_word_load(&flow->allocated_bytes) + allocated_bytes);
    seep_word_store(&flow->freed_bytes,
                    seep_word_load(&flow->freed_bytes) + freed_bytes);
}

static bool apply(struct seep_fold *fold, const struct seep_live *live,
                  const struct seep_fold_event *event)
{
    switch (event->kind) {
    case SEEP_EVENT_ALLOC:
        return seep_fold_alloc(fold, live, event);
    case SEEP_EVENT_FREE:
    case SEEP_EVENT_REALLOC_OUT:
        return seep_fold_free(fold, live, event);
    case SEEP_EVENT_RESTORE:
        return seep_fold_restore(fold, live, event);
    case SEEP_EVENT_MAP:
        return seep_fold_map(fold, live, event);
    case SEEP_EVENT_UNMAP:
    case SEEP_EVENT_REMAP_OUT:
        return seep_fold_unmap(fold, live, event);
    default:
        return true; /* a torn or damaged event changes nothing */
    }
}

static struct seep_fold_event read_event(const struct seep_rec_event *slot)
{
    uint64_t size_kind = seep_word_load(&slot->size_kind);

    return (struct seep_fold_event){
        .address = seep_word_load(&slot->address),
        .size = size_kind & SEEP_SIZE_MASK,
        .sample_log2 = (unsigned)(size_kind >> SEEP_SIZE_BITS) & 63,
        .kind = (unsigned)(size_kind >> (SEEP_SIZE_BITS + 8)) & 255,
        .site = atomic_load_explicit(&slot->site, memory_order_relaxed),
        .tick = atomic_load_explicit(&slot->tick, memory_order_relaxed),
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
        /* Acquire: the event's fields; pairs with the release by which its
         * producer made it READY (record/ring.c). */
        uint64_t state =
            atomic_load_explicit(&slot->state, memory_order_acquire);
        uint64_t position = seep_view_position(view, state, head);

        if (fold->still_ours != NULL && !fold->still_ours()) {
            return done;
        }
        if (position == head && seep_view_phase(state) == SEEP_SLOT_READY) {
            struct seep_fold_event event = read_event(slot);

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
                seep_fold_thin(fold, &live, shard);
            }
        } else if (position !=
                   ((head + view->ring_slots) & SEEP_VIEW_POSITION_MASK)) {
            break; /* not ready; else: given back, and then killed */
        }
        head = (head + 1) & SEEP_VIEW_POSITION_MASK;
        seep_word_store(&header->head, head);
    }
    seep_fold_thin(fold, &live, shard);
    return done;
}

uint32_t seep_fold_backlog(const struct seep_view *view, uint32_t shard)
{
    uint64_t tail = seep_word_load(&view->shards[shard].tail_hint);
    uint64_t head = seep_word_load(&view->shards[shard].head);
    uint64_t backlog = (tail - head) & SEEP_VIEW_POSITION_MASK;

    return backlog > view->ring_slots ? 0 : (uint32_t)backlog;
}

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

static void fold_private_shard(struct seep_fold *fold, uint32_t shard,
                               bool dead, uint64_t *applied, uint64_t *torn)
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
        fold_private_shard(&fold, i, dead, &applied, &torn);
    }
    *ret_applied = applied;
    *ret_torn = torn;
}
