/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The recorder between filter, rings and fold, on a recording in memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "seep_test.h"

#include "base/thread.h"
#include "format/account.h"
#include "format/fold.h"
#include "format/layout.h"
#include "format/live.h"
#include "record/recorder.h"
#include "record/ring.h"
#include "record/sampler.h"

#define SITE 3U
#define MAPS 4U
#define FILES 5U

static struct seep_rec_header *recording;
static struct seep_thread thread;

static bool always(void)
{
    return true;
}

static bool never(void)
{
    return false;
}

/* A handler forks when this was asked so often: then it is a child that asks.
 */
static unsigned asks_left;

static bool until_forked(void)
{
    if (asks_left == 0) {
        return false;
    }
    asks_left--;
    return true;
}

static int set_up_sized(uint64_t bytes, bool exact)
{
    struct seep_rec_header header = {0};

    if (seep_layout_make(bytes, exact, false, &header) != 0) {
        return -1;
    }
    recording = calloc(1, header.file_bytes);
    if (recording == NULL) {
        return -1;
    }
    header.start_monotonic_ns = seep_clock_monotonic_ns();
    header.pid = 1;
    atomic_store_explicit(&header.sample_log2, exact ? 0 : 12,
                          memory_order_relaxed);
    memcpy((void *)recording, (void *)&header, sizeof(header));
    seep_layout_start(recording);
    memset((void *)&thread, 0, sizeof(thread));
    thread.id = 1;
    seep_sampler_seed(&thread, 1);
    seep_sampler_draw(&thread, exact ? 0 : 12);
    seep_recorder_set_identity(always);
    seep_recorder_start(recording);
    return 0;
}

static int set_up_sampled(void **state)
{
    (void)state;
    return set_up_sized(SEEP_LAYOUT_LEAST_BYTES, false);
}

static int set_up_exact(void **state)
{
    (void)state;
    return set_up_sized(SEEP_LAYOUT_LEAST_BYTES, true);
}

/* With rings of far more than a batch. */
static int set_up_large(void **state)
{
    (void)state;
    return set_up_sized(UINT64_C(16) << 20, true);
}

static int tear_down(void **state)
{
    (void)state;
    seep_recorder_drop();
    free(recording);
    return 0;
}

static uint64_t counter(enum seep_counter which)
{
    return atomic_load_explicit(&seep_recorder_view()->counters[which],
                                memory_order_relaxed);
}

static uint64_t live(uint32_t site)
{
    return seep_account_live_bytes(&seep_recorder_view()->sites[site]);
}

static void a_sampled_block_is_seen_by_its_free(void **state)
{
    (void)state;
    seep_recorder_allocated(&thread, SITE, 0x12340, 100);
    assert_true(seep_filter_maybe(0x12340));
    assert_true(live(SITE) >= 4096);
    seep_recorder_freed(&thread, 0x12340, SEEP_EVENT_FREE);
    assert_false(seep_filter_maybe(0x12340));
    assert_int_equal(live(SITE), 0);
}

/* A mapping was never added to the filter: taking it out would take a heap
 * block's cell, and that block's free would never be seen. */
static void unmapping_forgets_no_block(void **state)
{
    (void)state;
    seep_recorder_allocated(&thread, SITE, 0x12340, 100);
    for (int i = 0; i < 20; i++) {
        seep_recorder_range(&thread, SEEP_EVENT_MAP, MAPS, 0x12340, 4096);
        seep_recorder_range(&thread, SEEP_EVENT_UNMAP, 0, 0x12340, 4096);
    }

    assert_true(seep_filter_maybe(0x12340));
    assert_int_equal(live(MAPS), 0);
}

/* Comes and goes at one address, all of it sampled: the cell must not fill. */
static void a_busy_address_does_not_fill_its_cell(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        seep_recorder_allocated(&thread, SITE, 0x12340, 1 << 20);
        seep_recorder_freed(&thread, 0x12340, SEEP_EVENT_FREE);
    }

    assert_false(seep_filter_maybe(0x12340));
    assert_int_equal(
        atomic_load_explicit(
            &seep_recorder_view()->counters[SEEP_COUNT_FILTER_SATURATED],
            memory_order_relaxed),
        0);
}

static void a_failed_realloc_puts_its_block_back(void **state)
{
    uint32_t tick;

    (void)state;
    seep_recorder_allocated(&thread, SITE, 0x12340, 100);
    tick = seep_recorder_freed(&thread, 0x12340, SEEP_EVENT_REALLOC_OUT);
    seep_recorder_restored(&thread, 0x12340, tick);

    assert_true(seep_filter_maybe(0x12340));
    seep_recorder_freed(&thread, 0x12340, SEEP_EVENT_FREE);
    assert_int_equal(live(SITE), 0);
}

/* What a driver gave stands for itself, and nobody asks the filter for it: a
 * cell that it took would be the heap's no more. */
static void a_key_is_exact_and_in_no_filter(void **state)
{
    const uint64_t key = UINT64_C(1) << 56 | 0x12340;
    uint32_t tick;

    (void)state;
    for (int i = 0; i < 20; i++) {
        seep_recorder_allocated(&thread, SITE, key, 100);
        assert_int_equal(live(SITE), 100);
        assert_false(seep_filter_maybe(key));
        tick = seep_recorder_freed(&thread, key, SEEP_EVENT_REALLOC_OUT);
        seep_recorder_restored(&thread, key, tick);
        assert_int_equal(live(SITE), 100);
        assert_false(seep_filter_maybe(key));
        seep_recorder_freed(&thread, key, SEEP_EVENT_REALLOC_OUT);
        assert_int_equal(live(SITE), 0);
    }
}

/* Left in a fold by a jump out of a handler: the thread's next hook gives
 * back the shard and the site, or nobody would ever fold them again. */
static void what_an_abandoned_hook_held_is_given_back(void **state)
{
    const struct seep_view *view = seep_recorder_view();
    _Atomic uint64_t *shard = &view->shards[5].lock;
    _Atomic uint64_t *site = &view->sites[SITE].lock;

    (void)state;
    assert_true(seep_fold_try_lock(shard, thread.id));
    assert_true(seep_fold_try_lock(site, thread.id));
    atomic_store_explicit(&thread.held_shard, 6, memory_order_relaxed);
    atomic_store_explicit(&thread.held_site, SITE + 1, memory_order_relaxed);
    seep_recorder_recover(&thread);

    assert_true(seep_fold_try_lock(shard, 2));
    assert_true(seep_fold_try_lock(site, 2));
    assert_int_equal(atomic_load_explicit(&view->counters[SEEP_COUNT_ABANDONED],
                                          memory_order_relaxed),
                     1);
}

/* In a child that came out of its parent's hook by a jump, and whose own
 * recording has smaller tables. */
static void what_was_held_of_larger_tables_is_nothing(void **state)
{
    (void)state;
    atomic_store_explicit(&thread.held_shard, UINT32_MAX, memory_order_relaxed);
    atomic_store_explicit(&thread.held_site, UINT32_MAX, memory_order_relaxed);
    atomic_store_explicit(&thread.claim, UINT64_MAX, memory_order_relaxed);
    seep_recorder_recover(&thread);

    assert_int_equal(counter(SEEP_COUNT_ABANDONED), 1);
    assert_int_equal(counter(SEEP_COUNT_TORN), 0);
    assert_int_equal(thread.held_shard, 0);
    assert_int_equal(thread.held_site, 0);
    assert_int_equal(thread.claim, 0);
}

#define PAGE UINT64_C(0x12000)
#define BLOCK_BYTES 8U
#define BATCH 240U  /* when they are folded, */
#define FOLDED 160U /* and so many of them */
#define RETRY 16U

/* So many blocks of one page, the next ones of @next. */
static void allocate(uint64_t *next, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        seep_recorder_allocated(&thread, SITE, *next, BLOCK_BYTES);
        *next += BLOCK_BYTES;
    }
}

/* Batches of the shard of that page that were begun. */
static uint32_t batches(void)
{
    const struct seep_view *view = seep_recorder_view();
    uint32_t shard = seep_view_shard_of(view, PAGE);

    return (uint32_t)atomic_load_explicit(&view->shards[shard].lock,
                                          memory_order_relaxed) /
           2;
}

static void exact_blocks_are_folded_as_a_batch_comes_together(void **state)
{
    uint64_t next = PAGE;

    (void)state;
    assert_true(seep_recorder_view()->ring_slots > 4 * BATCH);
    allocate(&next, BATCH - 1);
    assert_int_equal(live(SITE), 0);
    allocate(&next, 1);
    assert_int_equal(live(SITE), FOLDED * BLOCK_BYTES);
    assert_int_equal(batches(), 1);
}

static void in_the_shortest_ring_a_batch_is_a_quarter_of_it(void **state)
{
    uint64_t next = PAGE;
    uint32_t quarter = seep_recorder_view()->ring_slots / 4;

    (void)state;
    assert_true(quarter < BATCH);
    allocate(&next, quarter);
    assert_int_equal(live(SITE), quarter * BLOCK_BYTES);
}

/* Else threads that wait for one that is not running ask at every push, and
 * take the lines from each other that it needs when it is. */
static void a_batch_in_vain_is_not_begun_again_at_every_push(void **state)
{
    _Atomic uint64_t *site = &seep_recorder_view()->sites[SITE].lock;
    uint64_t next = PAGE;

    (void)state;
    assert_true(seep_fold_try_lock(site, 2));
    allocate(&next, BATCH + RETRY - 1);
    assert_int_equal(batches(), 1);
    allocate(&next, 1);
    assert_int_equal(batches(), 2);
    assert_int_equal(live(SITE), 0);

    seep_fold_unlock(site, 2);
    allocate(&next, RETRY);
    assert_int_equal(batches(), 3);
    assert_int_equal(live(SITE), FOLDED * BLOCK_BYTES);
}

/* Who is in the way of a full ring is asked for once a tick: who asks again is
 * an hour later. */
static void be_an_hour_later(void)
{
    static uint64_t hours;

    recording->start_monotonic_ns -= ++hours * UINT64_C(3600000000000);
}

/* So many samples of one page, which is a ring full of them and more. */
static void sample(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        seep_recorder_allocated(&thread, SITE, PAGE + (uint64_t)i * 16, 100);
    }
}

static uint64_t dropped(void)
{
    const struct seep_view *view = seep_recorder_view();
    uint32_t shard = seep_view_shard_of(view, PAGE);

    return atomic_load_explicit(&view->shards[shard].dropped_allocs,
                                memory_order_relaxed);
}

static _Atomic uint64_t *page_lock(void)
{
    const struct seep_view *view = seep_recorder_view();

    return &view->shards[seep_view_shard_of(view, PAGE)].lock;
}

/* A handler forked in a hook, and the child went on with it: it has its
 * parent's thread id, and these locks are held for good. */
static void locks_that_a_child_took_in_our_name_are_taken_back(void **state)
{
    const struct seep_view *view = seep_recorder_view();

    (void)state;
    be_an_hour_later();
    assert_true(seep_fold_try_lock(page_lock(), thread.id));
    assert_true(seep_fold_try_lock(&view->sites[SITE].lock, thread.id));
    sample(view->ring_slots);
    assert_int_equal(live(SITE), 0);
    sample(1);

    assert_int_equal(dropped(), 0);
    assert_int_equal(counter(SEEP_COUNT_TORN), 2);
    assert_int_equal(seep_fold_backlog(view, seep_view_shard_of(view, PAGE)),
                     0);
    assert_true(live(SITE) > 0);
}

static void a_slot_that_a_child_took_in_our_name_is_given_up(void **state)
{
    const struct seep_view *view = seep_recorder_view();
    struct seep_event event = {
        .address = PAGE, .size = 100, .site = SITE, .kind = SEEP_EVENT_ALLOC};

    (void)state;
    be_an_hour_later();
    asks_left = 1; /* the claim's: it is never made ready */
    seep_ring_push(view, seep_view_shard_of(view, PAGE), &event, &thread,
                   until_forked);
    sample(view->ring_slots - 1);
    assert_int_equal(live(SITE), 0);
    sample(1);

    assert_int_equal(dropped(), 0);
    assert_int_equal(counter(SEEP_COUNT_TORN), 1);
    assert_true(live(SITE) > 0);
}

/* What its parent holds is not its own, though it has the parent's thread id:
 * wherever in a push it was forked. */
static void a_child_takes_nothing_over(void **state)
{
    const struct seep_view *view = seep_recorder_view();
    uint64_t held;

    (void)state;
    assert_true(seep_fold_try_lock(page_lock(), thread.id));
    held = *page_lock();
    sample(view->ring_slots);
    seep_recorder_set_identity(until_forked);
    for (unsigned asks = 0; asks < 3; asks++) {
        be_an_hour_later();
        asks_left = asks;
        sample(1);
        assert_true(*page_lock() == held);
        assert_int_equal(counter(SEEP_COUNT_TORN), 0);
    }
    asks_left = 3; /* one more: it was the parent that took it over */
    sample(1);
    assert_int_equal(counter(SEEP_COUNT_TORN), 1);
}

#define KEYS (UINT64_C(1) << 56)

static _Atomic uint64_t *folded_elsewhere;
static unsigned asked_before;
/* The clock of one who waits, not 0: each look at it takes a tenth of a
 * millisecond, however late this machine wakes those who sleep. */
static int64_t waited_ns;

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    if (waited_ns == 0) {
        return (int)syscall(SYS_clock_gettime, clock, ret_time);
    }
    waited_ns += 100000;
    *ret_time = (struct timespec){.tv_nsec = waited_ns};
    return 0;
}

/* Another thread folds, lost its processor, and is back when we have waited a
 * while. */
static bool end_the_fold_at_last(void)
{
    if (++asked_before == 40) {
        seep_fold_unlock(folded_elsewhere, 1);
    }
    return true;
}

/* Sampled rings are small, and several threads can be in the driver at once. */
static void a_key_waits_for_a_full_ring_and_a_sample_does_not(void **state)
{
    const struct seep_view *view = seep_recorder_view();
    uint32_t shard = seep_view_shard_of(view, KEYS);
    _Atomic uint64_t *dropped = &view->shards[shard].dropped_allocs;
    uint64_t key = KEYS;
    uint64_t address = PAGE;

    (void)state;
    thread.id = 9; /* process 1 has a thread 1, which is not gone */
    folded_elsewhere = &view->shards[shard].lock;
    asked_before = 0;
    assert_true(seep_fold_try_lock(folded_elsewhere, 1));
    for (uint32_t i = 0; i < view->ring_slots; i++) {
        seep_recorder_allocated(&thread, SITE, key += 16, 100);
    }
    assert_int_equal(atomic_load(dropped), 0);
    seep_recorder_set_identity(end_the_fold_at_last);

    while (seep_view_shard_of(view, address) != shard) {
        address += 4096;
    }
    seep_recorder_allocated(&thread, SITE, address, 100);
    assert_int_equal(atomic_load(dropped), 1);
    waited_ns = 1;
    seep_recorder_allocated(&thread, SITE, key + 16, 100);
    waited_ns = 0;
    assert_int_equal(atomic_load(dropped), 1);
    assert_int_equal(live(SITE), (view->ring_slots + 1) * 100);
}

/* Forked while its parent waited: that ring will never be its own. */
static void a_child_does_not_wait_for_its_parents_ring(void **state)
{
    const struct seep_view *view = seep_recorder_view();
    uint64_t key = KEYS;

    (void)state;
    thread.id = 9;
    assert_true(seep_fold_try_lock(
        &view->shards[seep_view_shard_of(view, KEYS)].lock, 1));
    for (uint32_t i = 0; i < view->ring_slots; i++) {
        seep_recorder_allocated(&thread, SITE, key += 16, 100);
    }
    seep_recorder_set_identity(until_forked);
    asks_left = 20;
    waited_ns = 1;
    seep_recorder_allocated(&thread, SITE, key + 16, 100);
    assert_int_equal(asks_left, 0);
    assert_in_range(waited_ns, 100000, 5000000); /* of 20 ms */
    waited_ns = 0;
}

#define OTHER 9U /* a thread */

static struct {
    struct seep_view view;
    struct seep_live live;
    struct seep_block block;
    unsigned asked_count;
} moving;

/* Another thread has taken the entry out, to put it elsewhere: it does so and
 * gives its lock back when we have asked a few times. */
static bool put_back_at_last(void)
{
    uint32_t shard = moving.view.shard_count - 1;

    if (++moving.asked_count == 6) {
        assert_true(seep_live_insert(&moving.live, &moving.block));
        seep_fold_unlock(&moving.view.shards[shard].lock, OTHER);
    }
    return true;
}

static void a_mapping_is_known_while_another_thread_folds(void **state)
{
    enum seep_space space = SEEP_SPACE_MAPPED;
    uint64_t bytes = 0;
    uint32_t index;

    (void)state;
    seep_view_init(&moving.view, recording);
    moving.view.sites[FILES].space = SEEP_SPACE_FILE;
    seep_recorder_range(&thread, SEEP_EVENT_MAP, FILES, 4096, 4096);
    assert_true(seep_recorder_knows_range(&thread, 4096, 4096, &space, &bytes));
    assert_int_equal(space, SEEP_SPACE_FILE);
    assert_int_equal(bytes, 4096);

    assert_true(seep_live_init(&moving.live, &moving.view,
                               moving.view.shard_count - 1));
    assert_true(seep_fold_try_lock(
        &moving.view.shards[moving.view.shard_count - 1].lock, OTHER));
    index = seep_live_find(&moving.live, 4096);
    moving.block = seep_live_get(&moving.live, index);
    seep_live_remove(&moving.live, index);
    seep_recorder_set_identity(put_back_at_last);

    assert_true(seep_recorder_knows_range(&thread, 4096, 4096, &space, &bytes));
    assert_int_equal(space, SEEP_SPACE_FILE);
    assert_true(moving.asked_count >= 6);
}

static void a_child_is_answered_and_folds_nothing(void **state)
{
    enum seep_space space = SEEP_SPACE_MAPPED;
    uint64_t bytes = 0;
    const struct seep_view *view = seep_recorder_view();
    uint32_t shard = view->shard_count - 1;
    uint64_t before;

    (void)state;
    view->sites[FILES].space = SEEP_SPACE_FILE;
    seep_recorder_range(&thread, SEEP_EVENT_MAP, FILES, 4096, 4096);
    assert_true(seep_recorder_knows_range(&thread, 4096, 4096, &space, &bytes));
    before = view->shards[shard].lock;
    seep_recorder_set_identity(never);

    space = SEEP_SPACE_MAPPED;
    assert_true(seep_recorder_knows_range(&thread, 4096, 4096, &space, &bytes));
    assert_int_equal(space, SEEP_SPACE_FILE);
    assert_false(
        seep_recorder_knows_range(&thread, 1 << 20, 4096, &space, &bytes));
    assert_true(view->shards[shard].lock == before);
}

static void what_a_damaged_table_has_may_be_any_mapping(void **state)
{
    enum seep_space space = SEEP_SPACE_FILE;
    uint64_t bytes = 0;
    const struct seep_view *view = seep_recorder_view();

    (void)state;
    assert_false(
        seep_recorder_knows_range(&thread, 4096, 4096, &space, &bytes));
    view->shards[view->shard_count - 1].live_slots = 0;
    assert_true(seep_recorder_knows_range(&thread, 4096, 4096, &space, &bytes));
    assert_int_equal(space, SEEP_SPACE_MAPPED);
}

static void a_mapping_of_no_site_is_memory(void **state)
{
    const struct seep_view *view = seep_recorder_view();
    struct seep_block block = {
        .address = 4096, .size = 4096, .site = view->site_capacity};
    enum seep_space space = SEEP_SPACE_FILE;
    uint64_t bytes = 1;
    struct seep_live table;

    (void)state;
    assert_true(seep_live_init(&table, view, view->shard_count - 1));
    assert_true(seep_live_insert(&table, &block));
    assert_true(seep_recorder_knows_range(&thread, 4096, 4096, &space, &bytes));
    assert_int_equal(space, SEEP_SPACE_MAPPED);
}

/* Those below hold for the rest of the process. */

static uint32_t mean_log2(void)
{
    return atomic_load_explicit(&recording->sample_log2, memory_order_relaxed);
}

/* The recording is another process's, or the constructor was not run yet. */
static void who_restricts_itself_changes_its_own_recording_only(void **state)
{
    (void)state;
    recording->settled_sample_log2 = 19;
    seep_recorder_set_identity(NULL);
    seep_recorder_restrict();
    assert_int_equal(mean_log2(), 12);
    seep_recorder_set_identity(never);
    seep_recorder_restrict();
    assert_int_equal(mean_log2(), 12);
    seep_recorder_set_identity(always);
    seep_recorder_restrict();
    assert_int_equal(mean_log2(), 19);
}

/* To ask the kernel who is gone may be the end of the process. */
static void who_is_restricted_takes_nothing_over(void **state)
{
    (void)state;
    seep_recorder_restrict();
    be_an_hour_later();
    assert_true(seep_fold_try_lock(page_lock(), thread.id));
    sample(seep_recorder_view()->ring_slots + 1);
    assert_int_equal(dropped(), 1);
    assert_int_equal(counter(SEEP_COUNT_TORN), 0);
}

static void who_is_restricted_waits_for_nobody(void **state)
{
    const struct seep_view *view = seep_recorder_view();
    uint32_t shard = seep_view_shard_of(view, KEYS);
    uint64_t key = KEYS;

    (void)state;
    thread.id = 9; /* process 1 has a thread 1, which is not gone */
    seep_recorder_restrict();
    assert_true(seep_fold_try_lock(&view->shards[shard].lock, 1));
    for (uint32_t i = 0; i <= view->ring_slots; i++) {
        seep_recorder_allocated(&thread, SITE, key += 16, 100);
    }
    assert_int_equal(atomic_load(&view->shards[shard].dropped_allocs), 1);
}

static void who_is_restricted_still_knows_what_is_pending(void **state)
{
    enum seep_space space = SEEP_SPACE_MAPPED;
    uint64_t bytes = 0;
    const struct seep_view *view = seep_recorder_view();

    (void)state;
    seep_recorder_restrict();
    view->sites[FILES].space = SEEP_SPACE_FILE;
    assert_true(
        seep_fold_try_lock(&view->shards[view->shard_count - 1].lock, OTHER));
    assert_false(
        seep_recorder_knows_range(&thread, 4096, 4096, &space, &bytes));
    seep_recorder_range(&thread, SEEP_EVENT_MAP, FILES, 4096, 4096);
    assert_true(seep_recorder_knows_range(&thread, 4096, 4096, &space, &bytes));
    assert_int_equal(space, SEEP_SPACE_FILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define SAMPLED(test) \
    cmocka_unit_test_setup_teardown(test, set_up_sampled, tear_down)
        SAMPLED(a_sampled_block_is_seen_by_its_free),
        SAMPLED(unmapping_forgets_no_block),
        SAMPLED(a_busy_address_does_not_fill_its_cell),
        SAMPLED(a_failed_realloc_puts_its_block_back),
        SAMPLED(a_key_is_exact_and_in_no_filter),
        SAMPLED(a_key_waits_for_a_full_ring_and_a_sample_does_not),
        SAMPLED(locks_that_a_child_took_in_our_name_are_taken_back),
        SAMPLED(a_slot_that_a_child_took_in_our_name_is_given_up),
        SAMPLED(a_child_takes_nothing_over),
        SAMPLED(a_child_does_not_wait_for_its_parents_ring),
        SAMPLED(a_child_is_answered_and_folds_nothing),
        SAMPLED(what_a_damaged_table_has_may_be_any_mapping),
        SAMPLED(a_mapping_of_no_site_is_memory),
        SAMPLED(what_was_held_of_larger_tables_is_nothing),
        cmocka_unit_test_setup_teardown(
            what_an_abandoned_hook_held_is_given_back, set_up_exact, tear_down),
        cmocka_unit_test_setup_teardown(
            exact_blocks_are_folded_as_a_batch_comes_together, set_up_large,
            tear_down),
        cmocka_unit_test_setup_teardown(
            in_the_shortest_ring_a_batch_is_a_quarter_of_it, set_up_exact,
            tear_down),
        cmocka_unit_test_setup_teardown(
            a_batch_in_vain_is_not_begun_again_at_every_push, set_up_large,
            tear_down),
        cmocka_unit_test_setup_teardown(
            a_mapping_is_known_while_another_thread_folds, set_up_large,
            tear_down),
        SAMPLED(who_restricts_itself_changes_its_own_recording_only),
        SAMPLED(who_is_restricted_takes_nothing_over),
        SAMPLED(who_is_restricted_waits_for_nobody),
        cmocka_unit_test_setup_teardown(
            who_is_restricted_still_knows_what_is_pending, set_up_large,
            tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
