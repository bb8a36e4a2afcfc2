/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The recorder between filter, rings and fold, on a recording in memory. */
#include <stdlib.h>
#include <string.h>

#include "seep_test.h"

#include "base/clock.h"
#include "format/account.h"
#include "format/fold.h"
#include "format/layout.h"
#include "record/filter.h"
#include "record/recorder.h"
#include "record/sampler.h"

#define SITE 3U
#define MAPS 4U

static struct seep_rec_header *recording;
static struct seep_thread thread;

static bool always(void)
{
    return true;
}

static int set_up_mode(bool exact)
{
    struct seep_rec_header header = {0};

    if (seep_layout_make(SEEP_LAYOUT_LEAST_BYTES, exact, false, &header) != 0) {
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
    return set_up_mode(false);
}

static int set_up_exact(void **state)
{
    (void)state;
    return set_up_mode(true);
}

static int tear_down(void **state)
{
    (void)state;
    seep_recorder_drop();
    free(recording);
    return 0;
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
        cmocka_unit_test_setup_teardown(
            what_an_abandoned_hook_held_is_given_back, set_up_exact, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
