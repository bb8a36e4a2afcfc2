/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The facade that hooks call; see recorder.h. */
#include "record/recorder.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/syscall.h"
#include "format/fold.h"
#include "format/live.h"
#include "record/codes.h"
#include "record/devices.h"
#include "record/filter.h"
#include "record/ring.h"
#include "record/timeline.h"

#define FOLD_BATCH 64U
#define SHARDS_MOST 128U
#define WAIT_STEP_NS 50000L
#define WAIT_MOST_NS UINT64_C(20000000)

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

bool seep_recorder_is_exact(void)
{
    return is_exact;
}

void seep_recorder_restrict(void)
{
    is_restricted = true;
    seep_timeline_restrict();
}

void seep_recorder_set_identity(bool (*still_ours)(void))
{
    is_ours = still_ours;
}

void seep_recorder_start(void *mapping)
{
    seep_view_init(&the_view, mapping);
    is_exact = the_view.header->exact != 0;
    seep_timeline_start();
    seep_devices_start();
    seep_sites_forget();
    seep_codes_forget();
    seep_filter_fill(is_exact);
    /* Release: pairs with the acquire in seep_recorder_view(). */
    atomic_store_explicit(&is_on, 1, memory_order_release);
}

void seep_recorder_drop(void)
{
    atomic_store_explicit(&is_on, 0, memory_order_relaxed);
    seep_filter_fill(false);
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

/* Fold a batch of @shard, if nobody else is at it. */
static uint32_t fold(struct seep_thread *thread, uint32_t shard, uint32_t limit,
                     uint32_t *ret_blocked_site)
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
    atomic_store_explicit(&thread->held_shard, shard + 1, memory_order_relaxed);
    if (!seep_fold_try_lock(&the_view.shards[shard].lock, thread->id)) {
        atomic_store_explicit(&thread->held_shard, 0, memory_order_relaxed);
        return 0;
    }
    done = seep_fold_shard(&work, shard, limit);
    if (!is_ours()) {
        return done; /* a child: the lock is its parent's */
    }
    seep_fold_unlock(&the_view.shards[shard].lock, thread->id);
    atomic_store_explicit(&thread->held_shard, 0, memory_order_relaxed);
    if (ret_blocked_site != NULL) {
        *ret_blocked_site = work.blocked_site;
    }
    thread->random = work.random;
    seep_view_count(&the_view, SEEP_COUNT_FOLDS, 1);
    seep_view_count(&the_view, SEEP_COUNT_EVENTS, done);
    return done;
}

/* Is the thread @id of this process gone for good? */
static bool is_gone(uint32_t id)
{
    return id != 0 &&
           seep_syscall3(SYS_tgkill, the_view.header->pid, id, 0) == -ESRCH;
}

/* Take over @lock if its owner is gone; or is this thread, which holds nothing
 * now: then a child that a handler forked in a hook took it in our name. */
static bool take_over(_Atomic uint64_t *lock, struct seep_thread *thread)
{
    uint64_t seen = atomic_load_explicit(lock, memory_order_relaxed);
    uint64_t mine = (uint64_t)thread->id << 32 | (uint32_t)seen;

    if ((seen & 1) == 0 || ((uint32_t)(seen >> 32) != thread->id &&
                            !is_gone((uint32_t)(seen >> 32)))) {
        return false;
    }
    /* Acquire: pairs with the last release in seep_fold_unlock(). */
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
        atomic_exchange_explicit(&last_tick, tick, memory_order_relaxed) ==
            tick) {
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
                                 const struct seep_ring_event *event)
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
    uint64_t seen = atomic_load_explicit(longest, memory_order_relaxed);

    seep_view_count(&the_view, SEEP_COUNT_WAITS, 1);
    seep_view_count(&the_view, SEEP_COUNT_WAIT_NS, waited_ns);
    while (waited_ns > seen &&
           !atomic_compare_exchange_weak_explicit(longest, &seen, waited_ns,
                                                  memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

/* Where .head of a shard stood when waiting for it was last in vain, + 1:
 * while it has not moved there is no sense in waiting again. */
static _Atomic uint64_t stuck_at[SHARDS_MOST];

static bool is_stuck(uint32_t shard)
{
    uint64_t head = atomic_load_explicit(&the_view.shards[shard].head,
                                         memory_order_relaxed);

    return atomic_load_explicit(&stuck_at[shard % SHARDS_MOST],
                                memory_order_relaxed) == head + 1;
}

static void note_stuck(uint32_t shard)
{
    atomic_store_explicit(&stuck_at[shard % SHARDS_MOST],
                          atomic_load_explicit(&the_view.shards[shard].head,
                                               memory_order_relaxed) +
                              1,
                          memory_order_relaxed);
}

/* Exact mode: make room, and wait for it 20 ms at the most. */
SEEP_COLD static bool push_waiting(struct seep_thread *thread, uint32_t shard,
                                   const struct seep_ring_event *event)
{
    const struct timespec step = {0, WAIT_STEP_NS};
    uint64_t start = seep_clock_ns(CLOCK_MONOTONIC);
    uint64_t waited = 0;
    bool pushed = false;

    if (is_stuck(shard)) {
        return push_again(thread, shard, event);
    }
    while (!pushed && waited < WAIT_MOST_NS && is_ours()) {
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

    atomic_fetch_add_explicit(release ? &header->dropped_frees
                                      : &header->dropped_allocs,
                              1, memory_order_relaxed);
    seep_view_count(
        &the_view,
        release ? SEEP_COUNT_DROPPED_FREES : SEEP_COUNT_DROPPED_ALLOCS, 1);
}

/*
 * Sampled events are few and folded at once, so that a block which comes and
 * goes at one address does not fill its filter cell meanwhile; exact ones in
 * batches, when a quarter of the ring has come together.
 *
 * @return false if the event was dropped
 */
static bool push(struct seep_thread *thread, uint32_t shard,
                 const struct seep_ring_event *event)
{
    bool pushed = seep_ring_push(&the_view, shard, event, thread, is_ours);

    if (seep_unlikely(!pushed)) {
        if (!is_ours()) {
            return false; /* a child, in the hook that it was forked in */
        }
        pushed = is_exact && !is_restricted ? push_waiting(thread, shard, event)
                                            : push_again(thread, shard, event);
        if (!pushed) {
            count_dropped(shard, event->kind);
            return false;
        }
    }
    if (seep_fold_backlog(&the_view, shard) >=
        (is_exact ? the_view.ring_slots / 4 : 1)) {
        fold(thread, shard, FOLD_BATCH, NULL);
    }
    return true;
}

uint32_t seep_recorder_allocated(struct seep_thread *thread, uint32_t site,
                                 uint64_t address, uint64_t size_bytes)
{
    struct seep_ring_event event = {
        .address = address,
        .size = size_bytes,
        .site = site,
        .tick = seep_recorder_tick(),
        .kind = SEEP_EVENT_ALLOC,
        .sample_log2 = SEEP_ADDRESS_IS_KEY(address) ? 0 : thread->sample_log2,
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

uint32_t seep_recorder_freed(struct seep_thread *thread, uint64_t address,
                             enum seep_event_kind kind)
{
    struct seep_ring_event event = {
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
    struct seep_ring_event event = {
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
    struct seep_ring_event event = {
        .address = address,
        .size = size_bytes,
        .site = site,
        .tick = seep_recorder_tick(),
        .kind = kind,
    };

    push(thread, the_view.shard_count - 1, &event);
    return event.tick;
}

bool seep_recorder_knows_range(struct seep_thread *thread, uint64_t address,
                               uint64_t size_bytes)
{
    uint32_t shard = the_view.shard_count - 1;
    struct seep_live live;

    fold(thread, shard, the_view.ring_slots, NULL);
    if (seep_fold_backlog(&the_view, shard) != 0 ||
        !seep_live_init(&live, &the_view, shard)) {
        return true;
    }
    for (uint32_t i = 0; i <= live.mask; i++) {
        struct seep_block block = seep_live_get(&live, i);

        if (block.address != 0 && block.address < address + size_bytes &&
            address < block.address + block.size) {
            return true;
        }
    }
    return false;
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
    uint32_t shard =
        atomic_load_explicit(&thread->held_shard, memory_order_relaxed);
    uint32_t site =
        atomic_load_explicit(&thread->held_site, memory_order_relaxed);

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
        atomic_load_explicit(&the_view.shards[shard - 1].lock,
                             memory_order_relaxed) >>
                32 ==
            thread->id) {
        seep_fold_repair_shard(&work, shard - 1);
        seep_fold_unlock(&the_view.shards[shard - 1].lock, thread->id);
    }
    /* Last: a jump out of here is recovered from by the next entry. */
    atomic_store_explicit(&thread->held_site, 0, memory_order_relaxed);
    atomic_store_explicit(&thread->held_shard, 0, memory_order_relaxed);
}
