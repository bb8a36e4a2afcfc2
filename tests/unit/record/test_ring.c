/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ring under threads, built with the sanitizers too: every event once,
 * each producer's in its order, none ahead of one that ended before it began.
 *
 * What these tests cannot catch: orders that this machine's memory model never
 * shows; and a kill in the middle (tests/integration/test_kill.py).
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "seep_test.h"

#include "format/account.h"
#include "format/fold.h"
#include "format/layout.h"
#include "record/ring.h"

#define THREADS 4U
#define SHARD 3U

static struct seep_view view;
static _Atomic uint64_t turn;
static _Atomic uint32_t running;
static uint32_t events;

static bool always(void)
{
    return true;
}

/* Ours when the claim is made, a child's when it would be published. */
static bool only_first(void)
{
    static bool asked;

    asked = !asked;
    return asked;
}

static int set_up(void **state)
{
    struct seep_rec_header header = {0};
    void *bytes;

    (void)state;
    if (seep_layout_make(SEEP_LAYOUT_LEAST_BYTES, true, false, &header) != 0) {
        return -1;
    }
    bytes = aligned_alloc(4096, header.file_bytes);
    if (bytes == NULL) {
        return -1;
    }
    memset(bytes, 0, header.file_bytes);
    memcpy(bytes, (void *)&header, sizeof(header));
    seep_layout_start(bytes);
    seep_view_init(&view, bytes);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(view.header);
    return 0;
}

static bool push(struct seep_thread *thread, enum seep_event_kind kind,
                 uint64_t address, uint32_t site)
{
    struct seep_event event = {
        .address = address, .size = 1, .site = site, .kind = kind};

    return seep_ring_push(&view, SHARD, &event, thread, always);
}

static void fold_some(uint32_t thread)
{
    struct seep_fold fold = {.view = &view, .thread = thread, .random = 1};

    if (seep_fold_try_lock(&view.shards[SHARD].lock, thread)) {
        seep_fold_shard(&fold, SHARD, 64);
        seep_fold_unlock(&view.shards[SHARD].lock, thread);
    }
}

static void push_until(struct seep_thread *thread, enum seep_event_kind kind,
                       uint64_t address, uint32_t site)
{
    while (!push(thread, kind, address, site)) {
        fold_some(thread->id);
        sched_yield();
    }
}

static void a_full_ring_refuses_and_keeps_what_it_has(void **state)
{
    struct seep_thread thread = {.id = 7};
    uint32_t pushed = 0;

    (void)state;
    while (push(&thread, SEEP_EVENT_ALLOC, 0x1000 + 16 * (uint64_t)pushed, 1)) {
        pushed++;
    }

    assert_int_equal(pushed, view.ring_slots);
    assert_int_equal(seep_fold_backlog(&view, SHARD), view.ring_slots);
    fold_some(7);
    assert_true(push(&thread, SEEP_EVENT_ALLOC, 0x10, 1));
}

/* Each thread's blocks are freed by the next one, handed over in turn: if a
 * free overtook its allocation it would be foreign, and the block stay. */
static void *hand_over(void *argument)
{
    uint32_t number = (uint32_t)(uintptr_t)argument;
    struct seep_thread thread = {.id = number + 1};

    for (uint64_t i = 0; i < events; i++) {
        /* Acquire: pairs with the release below, as a program hands a block
         * from thread to thread. */
        while (atomic_load_explicit(&turn, memory_order_acquire) % THREADS !=
               number) {
            sched_yield();
        }
        push_until(&thread, SEEP_EVENT_FREE, 0x1000, 0);
        push_until(&thread, SEEP_EVENT_ALLOC, 0x1000, number + 1);
        if (i % 16 == 0) {
            fold_some(number + 1);
        }
        atomic_fetch_add_explicit(&turn, 1, memory_order_release);
    }
    return NULL;
}

static void run_threads(void *(*body)(void *))
{
    pthread_t threads[THREADS];

    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, body, (void *)(uintptr_t)i), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    while (seep_fold_backlog(&view, SHARD) > 0) {
        fold_some(99);
    }
}

static uint64_t counter(enum seep_counter which)
{
    return atomic_load_explicit(&view.counters[which], memory_order_relaxed);
}

static void a_free_never_overtakes_its_allocation(void **state)
{
    uint64_t live = 0;

    (void)state;
    atomic_store_explicit(&turn, 0, memory_order_relaxed);
    run_threads(hand_over);

    for (uint32_t i = 1; i <= THREADS; i++) {
        live += seep_account_live_bytes(&view.sites[i]);
    }
    assert_int_equal(live, 1);
    assert_int_equal(counter(SEEP_COUNT_FOREIGN_FREES), 1); /* the first */
    assert_int_equal(counter(SEEP_COUNT_LOST_FREES_CLOSED), 0);
}

static void *storm(void *argument)
{
    uint32_t number = (uint32_t)(uintptr_t)argument;
    struct seep_thread thread = {.id = number + 1};

    for (uint64_t i = 0; i < events; i++) {
        uint64_t address = 0x100000 + ((uint64_t)number << 20) + i % 64 * 16;

        push_until(&thread, SEEP_EVENT_ALLOC, address, number + 1);
        push_until(&thread, SEEP_EVENT_FREE, address, 0);
        if (i % 8 == 0) {
            fold_some(number + 1);
        }
    }
    atomic_fetch_sub_explicit(&running, 1, memory_order_relaxed);
    return NULL;
}

static void every_event_is_folded_once(void **state)
{
    (void)state;
    run_threads(storm);

    for (uint32_t i = 1; i <= THREADS; i++) {
        const struct seep_rec_site *site = &view.sites[i];

        assert_int_equal(seep_account_live_bytes(site), 0);
        assert_int_equal(
            atomic_load_explicit(&site->allocated_bytes, memory_order_relaxed),
            events);
    }
    assert_int_equal(counter(SEEP_COUNT_FOREIGN_FREES), 0);
}

/* A signal handler forked in the middle of a push: the child must not publish
 * into its parent's recording, and the parent's own push is not disturbed. */
static void a_child_publishes_nothing(void **state)
{
    struct seep_thread thread = {.id = 7};
    struct seep_event event = {
        .address = 0x10, .size = 1, .site = 1, .kind = SEEP_EVENT_ALLOC};

    (void)state;
    seep_ring_push(&view, SHARD, &event, &thread, only_first);
    fold_some(7);

    assert_int_equal(seep_account_live_bytes(&view.sites[1]), 0);
    assert_int_equal(seep_ring_blocker(&view, SHARD), 7);
}

/* Abandoned between claim and publication, by a jump: found by its note. */
static void an_abandoned_claim_is_voided_and_the_ring_goes_on(void **state)
{
    struct seep_thread gone = {.id = 7};
    struct seep_thread thread = {.id = 8};
    struct seep_event event = {
        .address = 0x10, .size = 1, .site = 1, .kind = SEEP_EVENT_ALLOC};

    (void)state;
    seep_ring_push(&view, SHARD, &event, &gone, only_first);
    atomic_store_explicit(&gone.claim,
                          (uint64_t)0 << SEEP_SLOT_POSITION_SHIFT | (SHARD + 1),
                          memory_order_relaxed);
    assert_true(push(&thread, SEEP_EVENT_ALLOC, 0x20, 2));
    fold_some(8);
    assert_int_equal(seep_account_live_bytes(&view.sites[2]), 0);

    assert_true(seep_ring_abandon(&view, &gone));
    fold_some(8);
    assert_int_equal(seep_account_live_bytes(&view.sites[1]), 0);
    assert_int_equal(seep_account_live_bytes(&view.sites[2]), 1);
    assert_false(seep_ring_abandon(&view, &gone));
}

/* The same for a thread that is gone with its note. */
static void a_dead_owners_claim_is_voided_by_others(void **state)
{
    struct seep_thread gone = {.id = 7};
    struct seep_event event = {
        .address = 0x10, .size = 1, .site = 1, .kind = SEEP_EVENT_ALLOC};

    (void)state;
    seep_ring_push(&view, SHARD, &event, &gone, only_first);
    seep_ring_void(&view, SHARD, 6);
    assert_int_equal(seep_ring_blocker(&view, SHARD), 7);
    seep_ring_void(&view, SHARD, 7);
    fold_some(8);

    assert_int_equal(seep_ring_blocker(&view, SHARD), 0);
    assert_int_equal(seep_fold_backlog(&view, SHARD), 0);
}

/* Another thread takes each slot first, and has it folded at once. */
static bool after_another(void)
{
    struct seep_thread other = {.id = 8};

    assert_true(push(&other, SEEP_EVENT_ALLOC, 0x20, 2));
    fold_some(8);
    return true;
}

static void who_always_comes_second_gives_up(void **state)
{
    struct seep_thread thread = {.id = 7};
    struct seep_event event = {
        .address = 0x10, .size = 1, .site = 1, .kind = SEEP_EVENT_ALLOC};

    (void)state;
    assert_false(seep_ring_push(&view, SHARD, &event, &thread, after_another));
    assert_int_equal(thread.claim, 0);
    assert_int_equal(atomic_load_explicit(&view.sites[2].allocated_bytes,
                                          memory_order_relaxed),
                     4 * view.ring_slots);
    assert_int_equal(view.sites[1].allocated_bytes, 0);
    assert_true(push(&thread, SEEP_EVENT_ALLOC, 0x10, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_full_ring_refuses_and_keeps_what_it_has),
        TEST(a_free_never_overtakes_its_allocation),
        TEST(every_event_is_folded_once),
        TEST(a_child_publishes_nothing),
        TEST(an_abandoned_claim_is_voided_and_the_ring_goes_on),
        TEST(a_dead_owners_claim_is_voided_by_others),
        TEST(who_always_comes_second_gives_up),
    };

    events = seep_test_times(10000, 30000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
