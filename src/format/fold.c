/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the ring of a shard into the tables, by what one event does (apply.c);
 * and a reader's private copy.
 *
 * An event is applied, then its slot is given back, then .head moves.
 */
#include "format/fold.h"

#include <string.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/word.h"
#include "format/account.h"

/* Often enough that the smallest table cannot fill up in between. */
#define THIN_EVERY 4U

/* Locks. */

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

SEEP_INLINE struct seep_event read_event(const struct seep_rec_event *slot)
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

/*
 * Most blocks die young. Of the events that are ready an allocation is found
 * its free, where that is among them: such a pair is one step.
 */

/* What a batch has is in the cache, and what is noted of it fits a hook's
 * stack. */
#define BATCH_EVENTS SEEP_FOLD_LOOKS_AT
#define BATCH_BUCKETS 256U
/* What is larger is rare, and worth its place in the order: a peak is never low
 * by more than a batch of these. */
#define YOUNG_BYTES (UINT64_C(64) << 10)

struct batch {
    struct seep_rec_event *ring;
    uint64_t first; /* position of its entry 0 */
    uint32_t count;
    /* How far apart the two events of a pair are, at either; 0: none. */
    uint8_t apart[BATCH_EVENTS];
    /* By address: the last allocation that is not freed yet, + 1. */
    uint8_t alive[BATCH_BUCKETS];
};

#define AHEAD_EVENTS 6U

/* In place of a distance: given back, and then the folder was killed. */
#define GIVEN_BACK UINT8_MAX

static_assert(BATCH_EVENTS < GIVEN_BACK, "distances are bytes");
static_assert(BATCH_BUCKETS == 256, "a byte of a hash chooses one");

SEEP_INLINE struct seep_rec_event *
slot_at(const struct seep_view *view, const struct batch *batch, uint32_t at)
{
    return &batch->ring[(batch->first + at) & (view->ring_slots - 1)];
}

SEEP_INLINE enum seep_event_kind kind_of(uint64_t size_kind)
{
    return (enum seep_event_kind)(size_kind >> (SEEP_SIZE_BITS + 8));
}

/* Does entry @at free a block of the batch, is it one? */
SEEP_INLINE void compare_one(const struct seep_view *view, struct batch *batch,
                             uint32_t at)
{
    const struct seep_rec_event *slot = slot_at(view, batch, at);
    uint64_t address = seep_word_load(&slot->address);
    uint64_t size_kind = seep_word_load(&slot->size_kind);
    uint8_t *alive = &batch->alive[(address >> 4) * SEEP_HASH_SEED >> 56];
    uint32_t birth = *alive - 1U;

    if (batch->apart[at] == GIVEN_BACK) {
        return;
    }
    if (kind_of(size_kind) == SEEP_EVENT_ALLOC) {
        *alive =
            (size_kind & SEEP_SIZE_MASK) <= YOUNG_BYTES ? (uint8_t)(at + 1) : 0;
        return;
    }
    /* Not tested: a block that is alive at entry 0, for which the compiler has
     * this a second time. There is none yet. */
    if (*alive == 0 ||
        seep_word_load(&slot_at(view, batch, birth)->address) != address) {
        return;
    }
    /* Whatever else is said of the address is told in its order. */
    *alive = 0;
    /* Not tested: the same. */
    if (kind_of(size_kind) == SEEP_EVENT_FREE) {
        batch->apart[birth] = (uint8_t)(at - birth);
        batch->apart[at] = (uint8_t)(at - birth);
    }
}

/* Entry @at has come. Samples are folded one by one: what comes alone is
 * compared with nothing. */
SEEP_INLINE void compare(const struct seep_view *view, struct batch *batch,
                         uint32_t at)
{
    if (at == 1) {
        memset(batch->alive, 0, sizeof(batch->alive));
        compare_one(view, batch, 0);
    }
    if (at > 0) {
        compare_one(view, batch, at);
    }
}

/* The next that are ready, or were given back. */
static void gather(const struct seep_view *view, struct batch *batch)
{
    const uint64_t thread = (UINT64_C(1) << SEEP_SLOT_THREAD_BITS) - 1;
    uint64_t ready = seep_view_state(view, batch->first, SEEP_SLOT_READY, 0);
    uint32_t at;

    for (at = 0; at < BATCH_EVENTS; at++) {
        const struct seep_rec_event *slot = slot_at(view, batch, at);
        uint64_t position = (batch->first + at) & SEEP_VIEW_POSITION_MASK;
        uint64_t state;

        if (seep_unlikely((position & (view->ring_slots - 1)) == 0)) {
            ready = seep_view_state(view, position, SEEP_SLOT_READY, 0);
        }
        if (seep_unlikely(position < view->ring_slots) &&
            !seep_view_has(view, slot, sizeof(*slot))) {
            break; /* no event has come so far yet */
        }
        /* Acquire: the event's fields; pairs with the release by which its
         * producer made it READY (record/ring.c). */
        state = atomic_load_explicit(&slot->state, memory_order_acquire);
        if (seep_likely((state & ~thread) == ready)) {
            batch->apart[at] = 0;
        } else if (seep_view_position(view, state, position) ==
                   ((position + view->ring_slots) & SEEP_VIEW_POSITION_MASK)) {
            batch->apart[at] = GIVEN_BACK;
        } else {
            break; /* not ready */
        }
        compare(view, batch, at);
    }
    batch->count = at;
}

/*
 * Both events of a pair are told. The birth's slot is given back first: killed
 * in between its free is one of an unknown block, and not the block one that
 * is never freed.
 */
static void give_back(const struct seep_view *view, const struct batch *batch,
                      uint32_t at)
{
    uint64_t position = batch->first + at;

    /* Release: the fields were read; pairs with the acquire of the producer
     * that claims the slot next (record/ring.c). */
    atomic_store_explicit(
        &slot_at(view, batch, at)->state,
        seep_view_state(view, position + view->ring_slots, SEEP_SLOT_FREE, 0),
        memory_order_release);
}

/* The free of @birth is an event of no kind now, which says what has gone. */
static void make_told(struct seep_rec_event *death,
                      const struct seep_event *birth)
{
    seep_word_store(&death->site, birth->site);
    seep_word_store(&death->size_kind,
                    birth->size | (uint64_t)birth->sample_log2
                                      << SEEP_SIZE_BITS);
}

/* The events of a pair in one. */
static bool fold_pair(struct seep_fold *fold, const struct seep_live *live,
                      const struct batch *batch, uint32_t at,
                      const struct seep_event *birth)
{
    const struct seep_view *view = fold->view;
    struct seep_rec_event *death = slot_at(view, batch, at + batch->apart[at]);

    if (!seep_apply_pair(fold, live, birth, seep_word_load(&death->tick))) {
        return false;
    }
    give_back(view, batch, at);
    make_told(death, birth);
    return true;
}

/* Entry @at, which is ready. @return false: not now */
static bool fold_one(struct seep_fold *fold, const struct seep_live *live,
                     struct batch *batch, uint32_t at)
{
    struct seep_event event = read_event(slot_at(fold->view, batch, at));
    uint8_t apart = batch->apart[at];

    if (apart != 0 && event.kind == SEEP_EVENT_ALLOC) {
        if (seep_apply_may_pass(fold->view, &event)) {
            return fold_pair(fold, live, batch, at, &event);
        }
        batch->apart[at + apart] = 0; /* one by one then */
        apart = 0;
    }
    if (apart != 0) {
        seep_apply_died(fold, &event);
    } else if (!seep_apply_event(fold, live, &event)) {
        return false;
    }
    give_back(fold->view, batch, at);
    return true;
}

/* What entry @at will need first is asked of the cache. */
SEEP_INLINE void ask_ahead(const struct seep_view *view,
                           const struct seep_live *live,
                           const struct batch *batch, uint32_t at)
{
    const struct seep_rec_event *slot;
    uint32_t site;

    if (at >= batch->count) {
        return;
    }
    slot = slot_at(view, batch, at);
    site = seep_word_load(&slot->site);
    if (site < view->site_capacity) {
        __builtin_prefetch(&view->sites[site], 1);
    }
    if (batch->apart[at] == 0) {
        seep_live_ask(live, seep_word_load(&slot->address));
    }
}

/* @return false: the fold is over */
static bool fold_batch(struct seep_fold *fold, const struct seep_live *live,
                       struct batch *batch, uint32_t limit, uint32_t *done)
{
    for (uint32_t at = 0; at < batch->count && *done < limit; at++) {
        if (fold->still_ours != NULL && !fold->still_ours()) {
            return false;
        }
        ask_ahead(fold->view, live, batch, at + AHEAD_EVENTS);
        if (batch->apart[at] != GIVEN_BACK) {
            if (!fold_one(fold, live, batch, at)) {
                return false;
            }
            *done += 1;
            if (*done % THIN_EVERY == 0) {
                seep_apply_thin(fold, live);
            }
        }
        seep_word_store(&live->shard->head,
                        (batch->first + at + 1) & SEEP_VIEW_POSITION_MASK);
    }
    return true;
}

uint32_t seep_fold_shard(struct seep_fold *fold, uint32_t shard, uint32_t limit)
{
    const struct seep_view *view = fold->view;
    struct seep_rec_shard *header = &view->shards[shard];
    struct batch batch = {.ring = seep_view_ring(view, shard)};
    struct seep_live live;
    uint32_t done = 0;

    if (!seep_live_init(&live, view, shard)) {
        return 0;
    }
    do {
        batch.first = seep_word_load(&header->head) & SEEP_VIEW_POSITION_MASK;
        gather(view, &batch);
    } while (batch.count != 0 &&
             fold_batch(fold, &live, &batch, limit, &done) && done < limit);
    seep_apply_thin(fold, &live);
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
    *applied += seep_fold_shard(fold, shard, view->ring_slots);
    /* It ends, whatever a hostile file says: each slot is passed over once, as
     * nobody claims one in a copy. */
    while (dead && skip_claimed(view, shard)) {
        *torn += 1;
        *applied += seep_fold_shard(fold, shard, view->ring_slots);
    }
}

/*
 * A site that was locked when its folder died: its last event may be in some
 * of its totals, and is told again by the ring. What is live is what the table
 * has; of the totals the frees are made to agree with it.
 *
 * What marks it is a bit of its lock that an unlocked one does not have, and
 * that the locks of this fold leave alone.
 */
#define HALF_TOLD (UINT64_C(1) << 31)

static bool is_half_told(const struct seep_rec_site *site)
{
    return (seep_word_load(&site->lock) & HALF_TOLD) != 0;
}

/* @return whether any was held by the dead */
static bool release_sites(const struct seep_view *view, bool dead)
{
    bool any = false;

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        _Atomic uint64_t *lock = &view->sites[i].lock;
        bool held = dead && (seep_word_load(lock) & 1) != 0;

        any = any || held;
        seep_word_store(lock, held ? HALF_TOLD : 0);
    }
    return any;
}

/* What a site that is half told has in the table of @live is not freed. */
static void keep_what_lives(const struct seep_live *live)
{
    const struct seep_view *view = live->view;

    for (uint32_t i = 0; i < seep_live_end(live); i++) {
        struct seep_block block = seep_live_get(live, i);
        struct seep_weight weight = seep_account_weight(&block);

        if (block.address != 0 && block.site < view->site_capacity &&
            is_half_told(&view->sites[block.site])) {
            struct seep_rec_site *site = &view->sites[block.site];

            seep_word_add(&site->freed_bytes, 0 - weight.bytes);
            seep_word_add(&site->freed_count_q16, 0 - weight.count_q16);
        }
    }
}

static void tell_half_told(const struct seep_view *view)
{
    struct seep_live live;

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        struct seep_rec_site *site = &view->sites[i];

        if (is_half_told(site)) {
            seep_word_copy(&site->freed_bytes, &site->allocated_bytes);
            seep_word_copy(&site->freed_count_q16, &site->allocated_count_q16);
        }
    }
    for (uint32_t i = 0; i < view->shard_count; i++) {
        if (seep_live_init(&live, view, i)) {
            keep_what_lives(&live);
        }
    }
}

void seep_fold_private_copy(const struct seep_view *view, bool dead,
                            uint64_t *ret_applied, uint64_t *ret_torn)
{
    struct seep_fold fold = {.view = view, .thread = 1, .random = 1};
    bool half_told = release_sites(view, dead);
    uint64_t applied = 0;
    uint64_t torn = 0;

    for (uint32_t i = 0; i < view->shard_count; i++) {
        fold_copied_shard(&fold, i, dead, &applied, &torn);
    }
    if (half_told) {
        tell_half_told(view);
    }
    *ret_applied = applied;
    *ret_torn = torn;
}
