/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What hooks call: an event goes into its shard's ring, and who pushed folds.
 *
 * Whoever holds a claim, a shard or a site has noted it in its seep_thread
 * before, so that it is found when the thread never comes back.
 */
#include "record/recorder.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

#include "base/compiler.h"
#include "base/syscall.h"
#include "base/thread.h"
#include "base/word.h"
#include "format/fold.h"
#include "format/live.h"
#include "record/modules.h"
#include "record/region.h"
#include "record/ring.h"
#include "record/sampler.h"
#include "record/timeline.h"

/* Exact events are folded when there are so many, and two thirds of them then:
 * of the last a free may come still. */
#define FOLD_AT 240U
#define FOLD_BATCH 160U
#define FOLD_RETRY 16U
#define SHARDS_MOST 128U
#define RANGE_TRIES 20 /* for the lock of the mappings */
#define WAIT_STEP_NS 50000L
#define WAIT_MOST_NS UINT64_C(20000000)
/* Of two processors for thirty threads who folds may be without one so long. A
 * call that maps waits for the kernel's own lock as long then. */
#define WAIT_MAPPING_NS UINT64_C(500000000)

static struct seep_view the_view;
static _Atomic uint32_t is_on;
static bool is_exact;
static bool (*is_ours)(void);
static bool is_restricted;

const struct seep_view *seep_recorder_view(void)
{
    /* Acquire: the view; pairs with the release in seep_recorder_start(). */
    return atomic_load_explicit(&is_on, memory_order_acquire) != 0 ? &the_view
                                                                   : NULL;
}

void seep_recorder_restrict(void)
{
    seep_room_restrict();
    is_restricted = true;
    seep_timeline_restrict();
    seep_pace_restrict(is_ours != NULL && is_ours() ? seep_recorder_view()
                                                    : NULL);
}

void seep_recorder_set_identity(bool (*still_ours)(void))
{
    is_ours = still_ours;
}

void seep_recorder_start(void *mapping)
{
    seep_view_init(&the_view, mapping);
    seep_room_attach(&the_view);
    is_exact = the_view.header->exact != 0;
    seep_timeline_start();
    seep_devices_start();
    seep_pace_start(&the_view);
    seep_sites_forget();
    seep_codes_forget();
    if (!is_exact) {
        seep_filter_start();
    }
    seep_filter_fill(is_exact);
    /* Release: pairs with the acquire in seep_recorder_view(). */
    atomic_store_explicit(&is_on, 1, memory_order_release);
}

void seep_recorder_end(void)
{
    /* Sequentially: pairs with the fence of who comes in (preload/life.c), that
     * either finds this or is found inside. */
    atomic_store_explicit(&is_on, 0, memory_order_seq_cst);
}

void seep_recorder_drop(void)
{
    seep_word_store(&is_on, 0);
    seep_pace_drop();
    /* Else it says of frees that they may be of interest, and they are not. */
    if (!is_restricted) {
        seep_filter_fill(false);
    }
}

uint32_t seep_recorder_tick(void)
{
    uint64_t tick =
        (seep_clock_monotonic_ns() - the_view.header->start_monotonic_ns) >>
        SEEP_TICK_LOG2_NS;

    if (tick > UINT32_MAX / 2) {
        seep_view_count(&the_view, SEEP_COUNT_CLOCK_SATURATED, 1);
        tick = UINT32_MAX / 2;
    }
    return (uint32_t)tick;
}

/* What the driver gave is in no filter: the CUDA part has a ledger of it. */
static bool is_filtered(uint64_t address)
{
    return !is_exact && !SEEP_ADDRESS_IS_KEY(address);
}

static void forget(void *context, uint64_t address)
{
    (void)context;
    if (is_filtered(address)) {
        seep_filter_forget((uintptr_t)address);
    }
}

/* A part of the address space: is it of a mapping that was recorded? */
struct range {
    uint64_t address;
    uint64_t size_bytes;
    uint32_t site;  /* 0: none, or not known of which */
    uint64_t bytes; /* of what is recorded, behind the address; 0: not known */
    bool is_known;
    bool is_settled; /* nobody else was at it meanwhile */
};

static void find_range(uint32_t shard, struct range *range);

/* Fold a batch of @shard, if nobody else is at it, and look for @range before
 * anybody else is. */
static uint32_t fold_and_find(struct seep_thread *thread, uint32_t shard,
                              uint32_t limit, uint32_t *ret_blocked_site,
                              struct range *range)
{
    struct seep_fold work = {
        .view = &the_view,
        .thread = thread->id,
        .random = thread->random,
        /* Mappings are in no filter: there is nothing to forget of them. */
        .forget = shard + 1 == the_view.shard_count ? NULL : forget,
        .held_site = &thread->held_site,
        .still_ours = is_ours,
    };
    uint32_t done;

    if (!is_ours()) {
        return 0;
    }
    seep_word_store(&thread->held_shard, shard + 1);
    if (!seep_fold_try_lock(&the_view.shards[shard].lock, thread->id)) {
        seep_word_store(&thread->held_shard, 0);
        return 0;
    }
    done = seep_fold_shard(&work, shard, limit);
    if (!is_ours()) {
        return done; /* a child: the lock is its parent's */
    }
    if (range != NULL) {
        find_range(shard, range);
        range->is_settled = true;
    }
    seep_fold_unlock(&the_view.shards[shard].lock, thread->id);
    seep_word_store(&thread->held_shard, 0);
    if (ret_blocked_site != NULL) {
        *ret_blocked_site = work.blocked_site;
    }
    thread->random = work.random;
    if (done != 0) {
        seep_pace_folded(&the_view, shard);
        seep_view_count(&the_view, SEEP_COUNT_FOLDS, 1);
        seep_view_count(&the_view, SEEP_COUNT_EVENTS, done);
    }
    return done;
}

static uint32_t fold(struct seep_thread *thread, uint32_t shard, uint32_t limit,
                     uint32_t *ret_blocked_site)
{
    return fold_and_find(thread, shard, limit, ret_blocked_site, NULL);
}

/* Is the thread @id of this process gone for good? Of 0, which is none, the
 * kernel says that the question is wrong. */
static bool is_gone(uint32_t id)
{
    return seep_syscall3(SYS_tgkill, the_view.header->pid, id, 0) == -ESRCH;
}

/* Take over @lock if its owner is gone; or is this thread, which holds nothing
 * now: then a child that a handler forked in a hook took it in our name. */
static bool take_over(_Atomic uint64_t *lock, struct seep_thread *thread)
{
    uint64_t seen = seep_word_load(lock);
    uint64_t mine = (uint64_t)thread->id << 32 | (uint32_t)seen;

    if ((seen & 1) == 0 || ((uint32_t)(seen >> 32) != thread->id &&
                            !is_gone((uint32_t)(seen >> 32)))) {
        return false;
    }
    /* Acquire: pairs with the last release in seep_fold_unlock().
     * Not tested: another thread takes it over at the same moment. */
    if (!atomic_compare_exchange_strong_explicit(
            lock, &seen, mine, memory_order_acquire, memory_order_relaxed)) {
        return false;
    }
    seep_view_count(&the_view, SEEP_COUNT_TORN, 1);
    return true;
}

/*
 * The ring stays full: is somebody in its way who will never come back (a
 * thread that was cancelled inside a hook)? Asks the kernel, so at most once a
 * tick.
 */
SEEP_COLD static void rescue(struct seep_thread *thread, uint32_t shard)
{
    static _Atomic uint32_t last_tick;
    struct seep_fold work = {.view = &the_view, .thread = thread->id};
    uint32_t blocker = seep_ring_blocker(&the_view, shard);
    uint32_t tick = seep_recorder_tick() + 1;
    uint32_t site = 0;

    /* A child that was forked in a hook has its parent's thread id: it would
     * take what its parent holds for its own. */
    if (is_restricted || !is_ours() ||
        seep_word_exchange(&last_tick, tick) == tick) {
        return;
    }
    /* This thread holds no claim now: one of its own was left by a hook that
     * a handler forked in, and whose child went on. */
    if (blocker != 0 && (blocker == thread->id || is_gone(blocker))) {
        seep_ring_void(&the_view, shard, blocker);
        seep_view_count(&the_view, SEEP_COUNT_TORN, 1);
    }
    if (take_over(&the_view.shards[shard].lock, thread)) {
        seep_fold_repair_shard(&work, shard);
        seep_fold_unlock(&the_view.shards[shard].lock, thread->id);
    }
    fold(thread, shard, 1, &site);
    if (site != 0 && take_over(&the_view.sites[site - 1].lock, thread)) {
        seep_fold_unlock(&the_view.sites[site - 1].lock, thread->id);
    }
}

/* Make room by folding and, if that does not help, by looking why. */
SEEP_COLD static bool push_again(struct seep_thread *thread, uint32_t shard,
                                 const struct seep_event *event)
{
    fold(thread, shard, the_view.ring_slots, NULL);
    if (seep_ring_push(&the_view, shard, event, thread, is_ours)) {
        return true;
    }
    rescue(thread, shard);
    fold(thread, shard, the_view.ring_slots, NULL);
    return seep_ring_push(&the_view, shard, event, thread, is_ours);
}

static void note_wait(uint64_t waited_ns)
{
    _Atomic uint64_t *longest = &the_view.counters[SEEP_COUNT_WAIT_MAX_NS];
    uint64_t seen = seep_word_load(longest);

    seep_view_count(&the_view, SEEP_COUNT_WAITS, 1);
    seep_view_count(&the_view, SEEP_COUNT_WAIT_NS, waited_ns);
    /* Not tested: another thread that waits ends at the same moment. */
    while (waited_ns > seen && !seep_word_replace(longest, &seen, waited_ns)) {
    }
}

/* Where .head of a shard stood when waiting for it was last in vain, + 1:
 * while it has not moved there is no sense in waiting again. */
static _Atomic uint64_t stuck_at[SHARDS_MOST];

static bool is_stuck(uint32_t shard)
{
    uint64_t head = seep_word_load(&the_view.shards[shard].head);

    return seep_word_load(&stuck_at[shard % SHARDS_MOST]) == head + 1;
}

static void note_stuck(uint32_t shard)
{
    seep_word_store(&stuck_at[shard % SHARDS_MOST],
                    seep_word_load(&the_view.shards[shard].head) + 1);
}

static bool is_of_mappings(uint32_t shard)
{
    return shard + 1 == the_view.shard_count;
}

/*
 * What stands for itself alone is worth a wait; a sample is one of many. The
 * driver's memory and mappings are recorded whole in every mode, in the small
 * rings of sampled ones too, and whoever folds them may have lost its
 * processor: of four threads that map and unmap 40 % of the events were lost.
 */
static bool is_worth_waiting(uint32_t shard, const struct seep_event *event)
{
    return (is_exact || SEEP_ADDRESS_IS_KEY(event->address) ||
            is_of_mappings(shard)) &&
           !is_restricted;
}

/* Make room, and wait for it: 20 ms at the most, for a mapping 500. */
SEEP_COLD static bool push_waiting(struct seep_thread *thread, uint32_t shard,
                                   const struct seep_event *event)
{
    const struct timespec step = {0, WAIT_STEP_NS};
    uint64_t start = seep_clock_ns(CLOCK_MONOTONIC);
    uint64_t most = is_of_mappings(shard) ? WAIT_MAPPING_NS : WAIT_MOST_NS;
    uint64_t waited = 0;
    bool pushed = false;

    if (is_stuck(shard) || seep_ring_is_short(&the_view, shard)) {
        return push_again(thread, shard, event);
    }
    while (!pushed && waited < most && is_ours()) {
        if (fold(thread, shard, FOLD_BATCH, NULL) == 0) {
            seep_syscall2(SYS_nanosleep, (long)&step, 0);
        }
        pushed = seep_ring_push(&the_view, shard, event, thread, is_ours);
        waited = seep_clock_ns(CLOCK_MONOTONIC) - start;
    }
    note_wait(waited);
    pushed = pushed || push_again(thread, shard, event);
    if (!pushed) {
        note_stuck(shard);
    }
    return pushed;
}

static bool is_release(enum seep_event_kind kind)
{
    return kind != SEEP_EVENT_ALLOC && kind != SEEP_EVENT_MAP;
}

static void count_dropped(uint32_t shard, enum seep_event_kind kind)
{
    struct seep_rec_shard *header = &the_view.shards[shard];
    bool release = is_release(kind);

    seep_word_fetch_add(
        release ? &header->dropped_frees : &header->dropped_allocs, 1);
    seep_view_count(
        &the_view,
        release ? SEEP_COUNT_DROPPED_FREES : SEEP_COUNT_DROPPED_ALLOCS, 1);
}

/*
 * Sampled events are few and folded at once, so that a block which comes and
 * goes at one address does not fill its filter cell meanwhile; exact ones, and
 * those of mappings, in batches, while the slots that they were written to are
 * in the cache. Where a batch was in vain, for another thread held its site,
 * the next push need not ask again.
 */
static bool is_batch(uint32_t shard, uint32_t backlog)
{
    uint32_t quarter = the_view.ring_slots / 4;

    if (!is_exact && !is_of_mappings(shard)) {
        return backlog != 0;
    }
    return backlog >= (quarter < FOLD_AT ? quarter : FOLD_AT) &&
           backlog % FOLD_RETRY == 0;
}

/* @return false if the event was dropped */
static bool push(struct seep_thread *thread, uint32_t shard,
                 const struct seep_event *event)
{
    bool pushed = seep_ring_push(&the_view, shard, event, thread, is_ours);

    if (seep_unlikely(!pushed)) {
        if (!is_ours()) {
            return false; /* a child, in the hook that it was forked in */
        }
        pushed = is_worth_waiting(shard, event)
                     ? push_waiting(thread, shard, event)
                     : push_again(thread, shard, event);
        if (!pushed) {
            count_dropped(shard, event->kind);
            return false;
        }
    }
    if (is_batch(shard, seep_fold_backlog(&the_view, shard))) {
        fold(thread, shard, FOLD_BATCH, NULL);
    }
    return true;
}

static uint32_t allocated(struct seep_thread *thread, unsigned sample_log2,
                          uint32_t site, uint64_t address, uint64_t size_bytes)
{
    struct seep_event event = {
        .address = address,
        .size = size_bytes,
        .site = site,
        .tick = seep_recorder_tick(),
        .kind = SEEP_EVENT_ALLOC,
        .sample_log2 = (uint8_t)sample_log2,
    };

    /* Before the event: the block's free may come from another thread as soon
     * as the program has the address. */
    if (is_filtered(address) && !seep_filter_add((uintptr_t)address)) {
        seep_view_count(&the_view, SEEP_COUNT_FILTER_SATURATED, 1);
    }
    if (!push(thread, seep_view_shard_of(&the_view, address), &event)) {
        forget(NULL, address);
    }
    return event.tick;
}

uint32_t seep_recorder_allocated(struct seep_thread *thread, uint32_t site,
                                 uint64_t address, uint64_t size_bytes)
{
    unsigned sample_log2 =
        SEEP_ADDRESS_IS_KEY(address) ? 0 : thread->sample_log2;

    return allocated(thread, sample_log2, site, address, size_bytes);
}

uint32_t seep_recorder_sampled(struct seep_thread *thread, unsigned sample_log2,
                               uint32_t site, uint64_t address,
                               uint64_t size_bytes)
{
    return allocated(thread, sample_log2, site, address, size_bytes);
}

uint32_t seep_recorder_freed(struct seep_thread *thread, uint64_t address,
                             enum seep_event_kind kind)
{
    struct seep_event event = {
        .address = address,
        .tick = seep_recorder_tick(),
        .kind = kind,
    };

    push(thread, seep_view_shard_of(&the_view, address), &event);
    return event.tick;
}

static void restore(struct seep_thread *thread, uint32_t shard,
                    uint64_t address, uint32_t tick)
{
    struct seep_event event = {
        .address = address,
        .tick = tick,
        .kind = SEEP_EVENT_RESTORE,
    };

    push(thread, shard, &event);
}

void seep_recorder_restored(struct seep_thread *thread, uint64_t address,
                            uint32_t tick)
{
    /* Whether the block was recorded only the fold knows: count it again in
     * the filter. A cell too high costs a look, one too low a free. */
    if (is_filtered(address)) {
        seep_filter_add((uintptr_t)address);
    }
    restore(thread, seep_view_shard_of(&the_view, address), address, tick);
}

uint32_t seep_recorder_range(struct seep_thread *thread,
                             enum seep_event_kind kind, uint32_t site,
                             uint64_t address, uint64_t size_bytes)
{
    struct seep_event event = {
        .address = address,
        .size = size_bytes,
        .site = site,
        .tick = seep_recorder_tick(),
        .kind = kind,
    };

    push(thread, the_view.shard_count - 1, &event);
    return event.tick;
}

static bool overlaps(uint64_t start, uint64_t size, uint64_t address,
                     uint64_t size_bytes)
{
    return start < address + size_bytes && address < start + size;
}

/* What was recorded lies at @start: of @site, and so much is behind. */
static void note_piece(struct range *range, uint64_t start, uint64_t size_bytes,
                       uint32_t site)
{
    range->site = site;
    range->bytes =
        start <= range->address ? start + size_bytes - range->address : 0;
}

/* The last mapping of this range that is in the ring still: others fold it, and
 * may be behind. */
static bool find_pending(uint32_t shard, struct range *range)
{
    struct seep_rec_event *ring = seep_view_ring(&the_view, shard);
    uint64_t head = seep_word_load(&the_view.shards[shard].head);
    uint32_t backlog = seep_fold_backlog(&the_view, shard);

    range->site = 0;
    for (uint32_t i = 0; i < backlog; i++) {
        struct seep_rec_event *slot =
            &ring[(head + i) & (the_view.ring_slots - 1)];
        /* Acquire: the event's fields; pairs with the release by which its
         * producer made it READY (record/ring.c). One that is folded or
         * overwritten meanwhile is looked for in the table next. */
        uint64_t state =
            atomic_load_explicit(&slot->state, memory_order_acquire);
        uint64_t size_kind = seep_word_load(&slot->size_kind);
        uint64_t start = seep_word_load(&slot->address);
        uint64_t bytes = size_kind & SEEP_SIZE_MASK;

        if (seep_view_phase(state) == SEEP_SLOT_READY &&
            (size_kind >> (SEEP_SIZE_BITS + 8)) == SEEP_EVENT_MAP &&
            overlaps(start, bytes, range->address, range->size_bytes)) {
            note_piece(range, start, bytes, seep_word_load(&slot->site));
        }
    }
    return range->site != 0;
}

static bool find_folded(uint32_t shard, struct range *range)
{
    struct seep_live live;

    range->site = 0;
    if (!seep_live_init(&live, &the_view, shard)) {
        return true;
    }
    for (uint32_t i = 0; i < seep_live_end(&live); i++) {
        struct seep_block block = seep_live_get(&live, i);

        if (block.address != 0 && overlaps(block.address, block.size,
                                           range->address, range->size_bytes)) {
            note_piece(range, block.address, block.size, block.site);
            return true;
        }
    }
    return false;
}

/* Without the lock: entries may move past who looks while another folds. */
static void find_range(uint32_t shard, struct range *range)
{
    range->is_known = find_pending(shard, range) || find_folded(shard, range);
}

bool seep_recorder_knows_range(struct seep_thread *thread, uint64_t address,
                               uint64_t size_bytes, enum seep_space *ret_space,
                               uint64_t *ret_bytes)
{
    const struct timespec step = {0, WAIT_STEP_NS};
    struct range range = {.address = address, .size_bytes = size_bytes};
    uint32_t shard = the_view.shard_count - 1;
    uint32_t site;

    for (int i = 0; i < RANGE_TRIES && !range.is_settled && is_ours(); i++) {
        if (i >= RANGE_TRIES / 2 && is_exact && !is_restricted) {
            seep_syscall2(SYS_nanosleep, (long)&step, 0);
        }
        fold_and_find(thread, shard, the_view.ring_slots, NULL, &range);
    }
    if (!range.is_settled) {
        find_range(shard, &range);
        range.is_known =
            range.is_known || seep_fold_backlog(&the_view, shard) != 0;
    }
    site = range.site;
    *ret_space = SEEP_SPACE_MAPPED;
    if (site != 0 && site < the_view.site_capacity) {
        *ret_space = (enum seep_space)the_view.sites[site].space;
    }
    *ret_bytes = site != 0 ? range.bytes : 0;
    return range.is_known;
}

void seep_recorder_range_restored(struct seep_thread *thread, uint64_t address,
                                  uint32_t tick)
{
    restore(thread, the_view.shard_count - 1, address, tick);
}

void seep_recorder_settle(struct seep_thread *thread)
{
    for (uint32_t i = 0; i < the_view.shard_count; i++) {
        if (seep_fold_backlog(&the_view, i) != 0) {
            fold(thread, i, the_view.ring_slots, NULL);
        }
    }
}

void seep_recorder_recover(struct seep_thread *thread)
{
    struct seep_fold work = {.view = &the_view, .thread = thread->id};
    uint32_t shard = seep_word_load(&thread->held_shard);
    uint32_t site = seep_word_load(&thread->held_site);

    seep_view_count(&the_view, SEEP_COUNT_ABANDONED, 1);
    if (seep_ring_abandon(&the_view, thread)) {
        seep_view_count(&the_view, SEEP_COUNT_TORN, 1);
    }
    seep_timeline_recover(&the_view, thread->id);
    if (site != 0 && site <= the_view.site_capacity) {
        seep_fold_unlock(&the_view.sites[site - 1].lock, thread->id);
        seep_view_count(&the_view, SEEP_COUNT_TORN, 1);
    }
    if (shard != 0 && shard <= the_view.shard_count &&
        seep_word_load(&the_view.shards[shard - 1].lock) >> 32 == thread->id) {
        seep_fold_repair_shard(&work, shard - 1);
        seep_fold_unlock(&the_view.shards[shard - 1].lock, thread->id);
    }
    /* Last: a jump out of here is recovered from by the next entry. */
    seep_word_store(&thread->held_site, 0);
    seep_word_store(&thread->held_shard, 0);
}
