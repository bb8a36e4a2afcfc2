/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ring's producer side, and the filter of recorded addresses.
 *
 * Whoever claims a slot has noted it in seep_thread.claim before: a claim that
 * is never made ready is found and voided. Folding is format/fold.c.
 */
#include "record/ring.h"

#include "base/clear.h"
#include "base/compiler.h"
#include "base/word.h"

/* Slots from which on the cache is asked for those of the next pushes. */
#define NEXT_LINES 4U

/* a - b on the circle of positions: negative when a lies before b. */
static int64_t ahead(uint64_t a, uint64_t b)
{
    return (int64_t)((a - b) << SEEP_SLOT_POSITION_SHIFT) >>
           SEEP_SLOT_POSITION_SHIFT;
}

/* The hint only ever helps: a store that comes late costs a few steps. */
static void advance_hint(struct seep_rec_shard *shard, uint64_t position)
{
    uint64_t hint = seep_word_load(&shard->tail_hint);

    if (ahead(position, hint) > 0) {
        seep_word_store(&shard->tail_hint, position);
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
    uint64_t position = seep_word_load(&header->tail_hint);

    for (uint32_t step = 0; step < 4 * view->ring_slots; step++) {
        struct seep_rec_event *slot = &ring[position & (view->ring_slots - 1)];
        uint64_t state;
        uint64_t found;
        int64_t lap;

        /* Later laps are where the first one was. */
        if (seep_unlikely(position < view->ring_slots) &&
            !seep_view_reserve(view, ring,
                               (uint64_t)view->ring_slots * sizeof(*slot), slot,
                               sizeof(*slot))) {
            return NULL;
        }
        state = seep_word_load(&slot->state);
        found = seep_view_position(view, state, position);
        lap = ahead(found, position);
        if (lap < 0) {
            return NULL; /* the lap before is not folded yet */
        }
        if (lap > 0) {
            /* All before this slot's lap began is folded. */
            position = (found - view->ring_slots + 1) & SEEP_VIEW_POSITION_MASK;
            continue;
        }
        if (seep_view_phase(state) == SEEP_SLOT_FREE) {
            seep_word_store(&thread->claim,
                            position << SEEP_SLOT_POSITION_SHIFT | (shard + 1));
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
                    const struct seep_event *event, struct seep_thread *thread,
                    bool (*still_ours)(void))
{
    uint64_t position = 0;
    struct seep_rec_event *slot =
        claim(view, shard, thread, still_ours, &position);
    uint64_t size = event->size > SEEP_SIZE_MASK ? SEEP_SIZE_MASK : event->size;

    if (slot == NULL) {
        seep_word_store(&thread->claim, 0);
        return false;
    }
    advance_hint(&view->shards[shard],
                 (position + 1) & SEEP_VIEW_POSITION_MASK);
    /* A lap ago it was in the cache, and the next push has to wait for it. */
    __builtin_prefetch(
        &seep_view_ring(
            view, shard)[(position + NEXT_LINES) & (view->ring_slots - 1)],
        1);
    seep_word_store(&slot->address, event->address);
    seep_word_store(&slot->size_kind,
                    size | (uint64_t)event->sample_log2 << SEEP_SIZE_BITS |
                        (uint64_t)event->kind << (SEEP_SIZE_BITS + 8));
    seep_word_store(&slot->site, event->site);
    seep_word_store(&slot->tick, event->tick);
    if (seep_likely(still_ours())) {
        publish(view, slot, position, thread->id);
    }
    seep_word_store(&thread->claim, 0);
    return true;
}

bool seep_ring_is_short(const struct seep_view *view, uint32_t shard)
{
    const struct seep_rec_event *ring = seep_view_ring(view, shard);
    uint64_t position = seep_word_load(&view->shards[shard].tail_hint);

    return position < view->ring_slots &&
           !seep_view_has(view, &ring[position], sizeof(*ring));
}

/* From CLAIMED by @owner to an event of no kind. */
static bool make_void(const struct seep_view *view, struct seep_rec_event *slot,
                      uint64_t position, uint32_t owner)
{
    uint64_t mine = seep_view_state(view, position, SEEP_SLOT_CLAIMED, owner);

    if (seep_word_load(&slot->state) != mine) {
        return false;
    }
    seep_word_store(&slot->size_kind, 0);
    /* Release: as for an event; pairs with the acquire of the folder. */
    return atomic_compare_exchange_strong_explicit(
        &slot->state, &mine,
        seep_view_state(view, position, SEEP_SLOT_READY, owner),
        memory_order_release, memory_order_relaxed);
}

bool seep_ring_abandon(const struct seep_view *view, struct seep_thread *thread)
{
    uint64_t noted = seep_word_load(&thread->claim);
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
    seep_word_store(&thread->claim, 0);
    return voided;
}

static struct seep_rec_event *head_slot(const struct seep_view *view,
                                        uint32_t shard, uint64_t *ret_head)
{
    *ret_head =
        seep_word_load(&view->shards[shard].head) & SEEP_VIEW_POSITION_MASK;
    return &seep_view_ring(view, shard)[*ret_head & (view->ring_slots - 1)];
}

uint32_t seep_ring_blocker(const struct seep_view *view, uint32_t shard)
{
    uint64_t head;
    struct seep_rec_event *slot = head_slot(view, shard, &head);
    uint64_t state;

    if (!seep_view_has(view, slot, sizeof(*slot))) {
        return 0;
    }
    state = seep_word_load(&slot->state);
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

/*
 * The filter.
 */

#define CELL_FULL 15U
#define PAGE_FULL UINT8_MAX

seep_own_table seep_filter_words __attribute__((visibility("hidden")));

_Atomic uint8_t seep_filter_pages[SEEP_FILTER_PAGES]
    __attribute__((visibility("hidden"), aligned(64)));

static void change_page(uint64_t page_hash, int delta)
{
    _Atomic uint8_t *page = &seep_filter_pages[seep_filter_page(page_hash)];
    uint8_t seen = seep_word_load(page);

    while (seen != PAGE_FULL &&
           !seep_word_replace(page, &seen, (uint8_t)(seen + delta))) {
    }
}

/* Add @delta to the cell of @address, unless it is full (or empty, to take
 * from). @return the value after it; *@ret_changed: was it changed? */
static unsigned change(uint64_t page_hash, uintptr_t address, int delta,
                       bool *ret_changed)
{
    _Atomic uint64_t *words = seep_own_get(&seep_filter_words);
    uint32_t cell = seep_filter_cell(page_hash, address);
    unsigned shift = cell % 16 * 4;
    _Atomic uint64_t *word;
    uint64_t seen;
    uint64_t next;
    unsigned count;

    /* Without cells the page alone counts, and never down: nobody can tell
     * what was added. */
    *ret_changed = words == NULL && delta > 0;
    if (words == NULL) {
        return 0;
    }
    word = &words[cell / 16];
    seen = seep_word_load(word);
    do {
        count = (unsigned)(seen >> shift) & CELL_FULL;
        if (count == CELL_FULL || (count == 0 && delta < 0)) {
            return count;
        }
        next = seen + ((uint64_t)(int64_t)delta << shift);
    } while (!seep_word_replace(word, &seen, next));
    *ret_changed = true;
    return count + (unsigned)delta;
}

/* The page is counted up before its cell and down behind it. What a full cell
 * has got stays counted, as it stays in the cell. */
bool seep_filter_add(uintptr_t address)
{
    uint64_t hash = seep_filter_page_hash(address);
    unsigned count;
    bool changed;

    change_page(hash, 1);
    count = change(hash, address, 1, &changed);
    if (!changed) {
        change_page(hash, -1);
    }
    return count != CELL_FULL;
}

void seep_filter_forget(uintptr_t address)
{
    uint64_t hash = seep_filter_page_hash(address);
    bool changed;

    change(hash, address, -1, &changed);
    if (changed) {
        change_page(hash, -1);
    }
}

void seep_filter_start(void)
{
    seep_own_make(&seep_filter_words, SEEP_FILTER_WORDS * sizeof(uint64_t));
}

void seep_filter_fill(bool all)
{
    _Atomic uint64_t *words = seep_own_get(&seep_filter_words);

    for (uint32_t i = 0; i < SEEP_FILTER_PAGES; i++) {
        uint8_t count = all ? PAGE_FULL : 0;

        if (seep_word_load(&seep_filter_pages[i]) != count) {
            seep_word_store(&seep_filter_pages[i], count);
        }
    }
    if (words != NULL && !all) {
        seep_clear_pages(words, SEEP_FILTER_WORDS);
        return;
    }
    for (uint32_t i = 0; words != NULL && i < SEEP_FILTER_WORDS; i++) {
        seep_word_store(&words[i], UINT64_MAX);
    }
}
