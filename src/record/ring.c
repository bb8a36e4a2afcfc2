/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ring's producer side; see ring.h for the invariant. */
#include "record/ring.h"

#include "base/compiler.h"

/* a - b on the circle of positions: negative when a lies before b. */
static int64_t ahead(uint64_t a, uint64_t b)
{
    return (int64_t)((a - b) << SEEP_SLOT_POSITION_SHIFT) >>
           SEEP_SLOT_POSITION_SHIFT;
}

/* The hint only ever helps: a store that comes late costs a few steps. */
static void advance_hint(struct seep_rec_shard *shard, uint64_t position)
{
    uint64_t hint =
        atomic_load_explicit(&shard->tail_hint, memory_order_relaxed);

    if (ahead(position, hint) > 0) {
        atomic_store_explicit(&shard->tail_hint, position,
                              memory_order_relaxed);
    }
}

/* Claim a slot for @thread. @return NULL when the ring is full */
static struct seep_rec_event *claim(const struct seep_view *view,
                                    uint32_t shard, struct seep_thread *thread,
                                    bool (*still_ours)(void),
                                    uint64_t *ret_position)
{
    struct seep_rec_event *ring = seep_view_ring(view, shard);
    struct seep_rec_shard *header = &view->shards[shard];
    uint64_t position =
        atomic_load_explicit(&header->tail_hint, memory_order_relaxed);

    for (uint32_t step = 0; step < 4 * view->ring_slots; step++) {
        struct seep_rec_event *slot = &ring[position & (view->ring_slots - 1)];
        uint64_t state =
            atomic_load_explicit(&slot->state, memory_order_relaxed);
        uint64_t found = seep_view_position(view, state, position);
        int64_t lap = ahead(found, position);

        if (lap < 0) {
            return NULL; /* the lap before is not folded yet */
        }
        if (lap > 0) {
            /* All before this slot's lap began is folded. */
            position = (found - view->ring_slots + 1) & SEEP_VIEW_POSITION_MASK;
            continue;
        }
        if (seep_view_phase(state) == SEEP_SLOT_FREE) {
            atomic_store_explicit(&thread->claim,
                                  position << SEEP_SLOT_POSITION_SHIFT |
                                      (shard + 1),
                                  memory_order_relaxed);
            if (seep_unlikely(!still_ours())) {
                return NULL;
            }
            /* Acquire: the folder has read the slot's old event; pairs with
             * the release by which it gave the slot back (format/fold.c). */
            if (atomic_compare_exchange_strong_explicit(
                    &slot->state, &state,
                    seep_view_state(view, position, SEEP_SLOT_CLAIMED,
                                    thread->id),
                    memory_order_acquire, memory_order_relaxed)) {
                *ret_position = position;
                return slot;
            }
        }
        position = (position + 1) & SEEP_VIEW_POSITION_MASK;
    }
    return NULL;
}

/* From CLAIMED to READY; not if the claim was voided meanwhile. */
static void publish(const struct seep_view *view, struct seep_rec_event *slot,
                    uint64_t position, uint32_t thread)
{
    uint64_t mine = seep_view_state(view, position, SEEP_SLOT_CLAIMED, thread);

    /* Release: the event's fields; pairs with the acquire of the folder
     * (format/fold.c) and of readers that look at the slot. */
    atomic_compare_exchange_strong_explicit(
        &slot->state, &mine,
        seep_view_state(view, position, SEEP_SLOT_READY, thread),
        memory_order_release, memory_order_relaxed);
}

bool seep_ring_push(const struct seep_view *view, uint32_t shard,
                    const struct seep_ring_event *event,
                    struct seep_thread *thread, bool (*still_ours)(void))
{
    uint64_t position = 0;
    struct seep_rec_event *slot =
        claim(view, shard, thread, still_ours, &position);
    uint64_t size = event->size > SEEP_SIZE_MASK ? SEEP_SIZE_MASK : event->size;

    if (slot == NULL) {
        atomic_store_explicit(&thread->claim, 0, memory_order_relaxed);
        return false;
    }
    advance_hint(&view->shards[shard],
                 (position + 1) & SEEP_VIEW_POSITION_MASK);
    atomic_store_explicit(&slot->address, event->address, memory_order_relaxed);
    atomic_store_explicit(&slot->size_kind,
                          size |
                              (uint64_t)event->sample_log2 << SEEP_SIZE_BITS |
                              (uint64_t)event->kind << (SEEP_SIZE_BITS + 8),
                          memory_order_relaxed);
    atomic_store_explicit(&slot->site, event->site, memory_order_relaxed);
    atomic_store_explicit(&slot->tick, event->tick, memory_order_relaxed);
    if (seep_likely(still_ours())) {
        publish(view, slot, position, thread->id);
    }
    atomic_store_explicit(&thread->claim, 0, memory_order_relaxed);
    return true;
}

/* From CLAIMED by @owner to an event of no kind. */
static bool make_void(const struct seep_view *view, struct seep_rec_event *slot,
                      uint64_t position, uint32_t owner)
{
    uint64_t mine = seep_view_state(view, position, SEEP_SLOT_CLAIMED, owner);

    if (atomic_load_explicit(&slot->state, memory_order_relaxed) != mine) {
        return false;
    }
    atomic_store_explicit(&slot->size_kind, 0, memory_order_relaxed);
    /* Release: as for an event; pairs with the acquire of the folder. */
    return atomic_compare_exchange_strong_explicit(
        &slot->state, &mine,
        seep_view_state(view, position, SEEP_SLOT_READY, owner),
        memory_order_release, memory_order_relaxed);
}

bool seep_ring_abandon(const struct seep_view *view, struct seep_thread *thread)
{
    uint64_t noted = atomic_load_explicit(&thread->claim, memory_order_relaxed);
    uint64_t position = noted >> SEEP_SLOT_POSITION_SHIFT;
    uint32_t shard =
        (uint32_t)(noted & ((1U << SEEP_SLOT_POSITION_SHIFT) - 1)) - 1;

    bool voided = false;

    if (noted != 0 && shard < view->shard_count) {
        voided = make_void(
            view,
            &seep_view_ring(view, shard)[position & (view->ring_slots - 1)],
            position, thread->id);
    }
    /* Last: a jump out of here is made up for by the next entry. */
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&thread->claim, 0, memory_order_relaxed);
    return voided;
}

static struct seep_rec_event *head_slot(const struct seep_view *view,
                                        uint32_t shard, uint64_t *ret_head)
{
    *ret_head =
        atomic_load_explicit(&view->shards[shard].head, memory_order_relaxed) &
        SEEP_VIEW_POSITION_MASK;
    return &seep_view_ring(view, shard)[*ret_head & (view->ring_slots - 1)];
}

uint32_t seep_ring_blocker(const struct seep_view *view, uint32_t shard)
{
    uint64_t head;
    struct seep_rec_event *slot = head_slot(view, shard, &head);
    uint64_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);

    if (seep_view_position(view, state, head) != head ||
        seep_view_phase(state) != SEEP_SLOT_CLAIMED) {
        return 0;
    }
    return (uint32_t)state & ((UINT32_C(1) << SEEP_SLOT_THREAD_BITS) - 1);
}

void seep_ring_void(const struct seep_view *view, uint32_t shard,
                    uint32_t owner)
{
    uint64_t head;
    struct seep_rec_event *slot = head_slot(view, shard, &head);

    make_void(view, slot, head, owner);
}
