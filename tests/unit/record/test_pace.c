/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When the mean of a recording doubles, by made-up costs and real clocks. */
#include <stdlib.h>
#include <time.h>

#include "seep_test.h"

#include "base/thread.h"
#include "base/word.h"
#include "empty_recording.h"
#include "record/recorder.h"
#include "record/sampler.h"

/* A look is at every sixteenth event: it stands for 8 ms here. */
#define EVENTS_A_LOOK 16U
#define LOOK_MS 8.0
#define LOOKS_WITHIN_CREDIT 12U /* 96 ms of 100 */
#define PAST_CREDIT_MS 5.5      /* one more, too much by 1.5 ms */
#define WORK_MS 600U            /* half a percent of it is 3 ms */

static struct seep_view view;
static double cycles_a_ms;

static void begin(unsigned first, unsigned settled)
{
    struct seep_rec_header *header = view.header;

    header->first_sample_log2 = (uint16_t)first;
    header->settled_sample_log2 = (uint16_t)settled;
    header->budget = 0;
    seep_word_store(&header->tensor_doublings, 0);
    atomic_store_explicit(&header->sample_log2, first, memory_order_relaxed);
    seep_pace_drop();
    seep_pace_start(&view);
}

static double measure_cycles(void)
{
    uint64_t from_ns = seep_clock_ns(CLOCK_MONOTONIC);
    uint64_t from = seep_clock_cycles();
    uint64_t ns;

    do { /* so long that to read two clocks takes nothing of it */
        ns = seep_clock_ns(CLOCK_MONOTONIC) - from_ns;
    } while (ns < UINT64_C(20000000));
    return (double)(seep_clock_cycles() - from) / ((double)ns / 1e6);
}

static int set_up(void **state)
{
    (void)state;
    if (seep_clock_cycles() == 0) {
        skip();
    }
    if (empty_recording_make(&view) != 0) {
        return -1;
    }
    /* A second ago, by both clocks: the rate is known. */
    if (cycles_a_ms == 0) {
        cycles_a_ms = measure_cycles();
    }
    view.header->start_cycles =
        seep_clock_cycles() - (uint64_t)(cycles_a_ms * 1000);
    view.header->start_monotonic_ns =
        seep_clock_monotonic_ns() - UINT64_C(1000000000);
    begin(14, 19);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    empty_recording_free(&view);
    return 0;
}

static unsigned level(void)
{
    return atomic_load_explicit(&view.header->sample_log2,
                                memory_order_relaxed);
}

static void spend_looks_of(unsigned looks, double look_ms)
{
    double cycles =
        look_ms * cycles_a_ms / EVENTS_A_LOOK / SEEP_PACE_TIMED_EVERY;

    for (unsigned i = 0; i < looks * EVENTS_A_LOOK; i++) {
        seep_pace_spent(&view, (uint64_t)cycles, false);
    }
}

static void spend_looks(unsigned looks)
{
    spend_looks_of(looks, LOOK_MS);
}

static void use_processor_ms(unsigned ms)
{
    uint64_t until =
        seep_clock_ns(CLOCK_PROCESS_CPUTIME_ID) + ms * UINT64_C(1000000);

    while (seep_clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until) {
    }
}

static void
a_tenth_of_a_second_changes_nothing_and_more_doubles_the_mean(void **state)
{
    (void)state;
    /* The second that is behind it by the clock is none of the processor's. */
    spend_looks(LOOKS_WITHIN_CREDIT);
    assert_int_equal(level(), 14);
    spend_looks(1);
    assert_int_equal(level(), 15);
    assert_int_equal(seep_word_load(&view.counters[SEEP_COUNT_THINNINGS]), 1);
}

/* As much, and for tensors. */
static void spend_looks_for_tensors(unsigned looks)
{
    double cycles =
        LOOK_MS * cycles_a_ms / EVENTS_A_LOOK / SEEP_PACE_TIMED_EVERY;

    for (unsigned i = 0; i < looks * EVENTS_A_LOOK; i++) {
        seep_pace_for_tensor((uint64_t)cycles, false);
        seep_pace_spent(&view, (uint64_t)cycles, false);
    }
}

static void
what_tensors_cost_makes_tensors_sparser_and_not_the_rest(void **state)
{
    (void)state;
    assert_int_equal(seep_pace_tensor_log2(&view), 14);
    spend_looks_for_tensors(LOOKS_WITHIN_CREDIT + 1);
    assert_int_equal(level(), 14);
    assert_int_equal(seep_pace_tensor_log2(&view), 15);
    spend_looks_for_tensors(20 * LOOKS_WITHIN_CREDIT);
    assert_int_equal(seep_word_load(&view.header->tensor_doublings),
                     SEEP_PACE_TENSOR_DOUBLINGS);
    assert_true(level() > 14); /* it was not enough */
}

static void where_a_mean_was_asked_for_tensors_keep_it(void **state)
{
    (void)state;
    begin(14, 0);
    spend_looks_for_tensors(4 * LOOKS_WITHIN_CREDIT);
    assert_int_equal(seep_pace_tensor_log2(&view), 14);
    begin(0, 0); /* exact */
    spend_looks_for_tensors(4 * LOOKS_WITHIN_CREDIT);
    assert_int_equal(seep_pace_tensor_log2(&view), 0);
}

/* Whoever writes into the file must not shift a mean out of its word. */
static void doublings_that_nobody_made_count_as_the_most(void **state)
{
    (void)state;
    seep_word_store(&view.header->tensor_doublings, UINT32_MAX);
    assert_int_equal(seep_pace_tensor_log2(&view),
                     14 + SEEP_PACE_TENSOR_DOUBLINGS);
}

static void it_is_recorded_when_the_mean_last_rose(void **state)
{
    (void)state;
    spend_looks(LOOKS_WITHIN_CREDIT);
    assert_int_equal(seep_word_load(&view.header->rose_tick), 0);
    spend_looks(1);
    /* The recording began a second ago, or more where the machine is busy. */
    assert_in_range((uint64_t)seep_word_load(&view.header->rose_tick)
                        << SEEP_TICK_LOG2_NS,
                    UINT64_C(900000000), UINT64_C(60000000000));
}

static void after_a_doubling_half_of_that_is_left(void **state)
{
    (void)state;
    spend_looks(LOOKS_WITHIN_CREDIT + 1);
    assert_int_equal(level(), 15);
    spend_looks(5);
    assert_int_equal(level(), 15);
    spend_looks(3);
    assert_int_equal(level(), 16);
}

static void half_a_percent_of_the_processor_is_free(void **state)
{
    (void)state;
    spend_looks(LOOKS_WITHIN_CREDIT);
    use_processor_ms(WORK_MS);
    spend_looks_of(1, PAST_CREDIT_MS);
    assert_int_equal(level(), 14); /* 96 + 5.5 less 3 */
}

/* It is the rest that costs: that the settled mean does not rise is no reason
 * to thin tensors instead. */
static void tensors_do_not_pay_for_blocks(void **state)
{
    (void)state;
    begin(19, 19);
    seep_pace_for_tensor(1, false);
    spend_looks(4 * LOOKS_WITHIN_CREDIT);
    assert_int_equal(level(), 19);
    assert_int_equal(seep_pace_tensor_log2(&view), 19);
    assert_int_equal(seep_word_load(&view.counters[SEEP_COUNT_THINNINGS]), 0);
}

/* From a file that lies about its start. */
static void a_tick_is_never_beyond_the_last(void **state)
{
    (void)state;
    view.header->start_monotonic_ns =
        seep_clock_monotonic_ns() + UINT64_C(3600000000000);
    seep_word_store(&view.header->frames_used, view.frame_capacity);
    seep_pace_site_came(&view);
    assert_int_equal(level(), 15);
    assert_int_equal(seep_word_load(&view.header->rose_tick), UINT32_MAX / 2);
}

static void without_a_counter_nothing_is_judged(void **state)
{
    (void)state;
    seep_clock_forbidden = true;
    spend_looks(4 * LOOKS_WITHIN_CREDIT);
    seep_clock_forbidden = false;
    assert_int_equal(level(), 14);
    spend_looks(1); /* all that was not judged is */
    assert_int_equal(level(), 15);
}

static void time_without_work_is_not_saved_up(void **state)
{
    (void)state;
    use_processor_ms(WORK_MS);
    spend_looks_of(1, 0.1); /* takes of the 3 ms what it costs: all is gone */
    spend_looks(LOOKS_WITHIN_CREDIT);
    spend_looks_of(1, PAST_CREDIT_MS);
    assert_int_equal(level(), 15);
}

static void it_ends_at_the_settled_mean(void **state)
{
    (void)state;
    spend_looks(200);
    assert_int_equal(level(), 19);
}

static void a_mean_that_was_asked_for_stays(void **state)
{
    (void)state;
    begin(14, 0);
    spend_looks(200);
    assert_int_equal(level(), 14);
    begin(0, 0);
    spend_looks(200);
    assert_int_equal(level(), 0);
}

static void a_budget_is_kept_by_a_mean_beyond_the_settled_one(void **state)
{
    (void)state;
    begin(14, 19);
    view.header->budget = 1000;
    spend_looks(200);
    assert_int_equal(level(), SEEP_PACE_BUDGET_LOG2);
    begin(16, 0); /* that was asked for */
    view.header->budget = 1000;
    spend_looks(200);
    assert_int_equal(level(), SEEP_PACE_BUDGET_LOG2);
    begin(0, 0);
    view.header->budget = 1000;
    spend_looks(200);
    assert_int_equal(level(), 0);
}

/* Five percent are 15 ms measured of 600, of which 9.5 are spent. */
static void a_larger_budget_pays_for_more(void **state)
{
    (void)state;
    view.header->budget = 5000;
    spend_looks(LOOKS_WITHIN_CREDIT);
    use_processor_ms(WORK_MS);
    spend_looks_of(1, PAST_CREDIT_MS + 4);
    assert_int_equal(level(), 14);
}

static void tables_alone_do_not_use_up_a_budget(void **state)
{
    (void)state;
    begin(19, 19);
    view.header->budget = 1000;
    atomic_store_explicit(&view.header->site_count, view.site_capacity,
                          memory_order_relaxed);
    seep_pace_site_came(&view);
    assert_int_equal(level(), 19);
}

static void
an_event_that_took_long_once_stands_for_no_more_than_another(void **state)
{
    (void)state;
    for (unsigned i = 0; i < EVENTS_A_LOOK; i++) {
        seep_pace_spent(&view, UINT64_C(1) << 40, false);
    }
    assert_int_equal(level(), 14);
}

static void what_mappings_cost_is_counted_and_doubles_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 200 * EVENTS_A_LOOK; i++) {
        seep_pace_counted(&view, UINT64_C(1) << 20, false);
    }
    assert_int_equal(level(), 14);
    assert_int_equal(seep_word_load(&view.counters[SEEP_COUNT_TIMED_EVENTS]),
                     200 * EVENTS_A_LOOK);
}

static void the_first_events_are_timed_each_and_count_once(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SEEP_PACE_FIRST_EVENTS; i++) {
        assert_true(seep_pace_is_first());
        seep_pace_spent(&view, 1000, true);
    }
    assert_false(seep_pace_is_first());
    assert_int_equal(seep_word_load(&view.counters[SEEP_COUNT_FIRST_EVENTS]),
                     SEEP_PACE_FIRST_EVENTS);
    assert_int_equal(seep_word_load(&view.counters[SEEP_COUNT_FIRST_CYCLES]),
                     SEEP_PACE_FIRST_EVENTS * 1000);
    assert_int_equal(seep_word_load(&view.counters[SEEP_COUNT_TIMED_EVENTS]),
                     0);
    seep_pace_drop();
    assert_true(seep_pace_is_first());
}

static void set_sites(uint64_t sixteenths)
{
    atomic_store_explicit(&view.header->site_count,
                          (uint32_t)(view.site_capacity / 16 * sixteenths),
                          memory_order_relaxed);
}

static void tables_that_fill_double_the_mean_step_by_step(void **state)
{
    (void)state;
    for (unsigned doublings = 0; doublings < 5; doublings++) {
        set_sites(8 + doublings);
        seep_pace_site_came(&view);
        assert_int_equal(level(), 14 + doublings);
        atomic_fetch_add_explicit(&view.header->site_count, 1,
                                  memory_order_relaxed);
        seep_pace_site_came(&view);
        assert_int_equal(level(), 14 + doublings + 1);
    }
    set_sites(16);
    seep_pace_site_came(&view);
    assert_int_equal(level(), 19);
}

static void frames_and_stacks_are_tables_too(void **state)
{
    (void)state;
    seep_word_store(&view.header->frames_used, view.frame_capacity);
    seep_pace_site_came(&view);
    assert_int_equal(level(), 15);
    seep_word_store(&view.header->frames_used, 0);
    atomic_store_explicit(&view.header->stack_count, view.stack_capacity,
                          memory_order_relaxed);
    seep_pace_site_came(&view);
    assert_int_equal(level(), 16);
}

static void enough_live_blocks_double_the_mean_once_a_pass(void **state)
{
    struct seep_rec_shard *shard = &view.shards[3];
    uint64_t most = shard->live_slots / 2 < SEEP_PACE_LIVE_MOST
                        ? shard->live_slots / 2
                        : SEEP_PACE_LIVE_MOST;

    (void)state;
    atomic_store_explicit(&shard->thin_level, 14, memory_order_relaxed);
    seep_word_store(&shard->live_count, most);
    seep_pace_folded(&view, 3);
    assert_int_equal(level(), 14);
    seep_word_store(&shard->live_count, most + 1);
    seep_pace_folded(&view, 3);
    assert_int_equal(level(), 15);
    seep_pace_folded(&view, 3); /* the shard is not thinned to that yet */
    assert_int_equal(level(), 15);
    atomic_store_explicit(&shard->thin_level, 15, memory_order_relaxed);
    seep_word_store(&shard->key_count, 1); /* those of a driver are not thin */
    seep_pace_folded(&view, 3);
    assert_int_equal(level(), 15);
}

/* It holds for the rest of the process. */
static void who_can_measure_nothing_is_as_sparse_as_allowed(void **state)
{
    (void)state;
    seep_pace_restrict(&view);
    assert_int_equal(level(), 19);
    begin(15, 0);
    seep_pace_restrict(&view);
    assert_int_equal(level(), 15);
}

/* After it, too. The second behind it, by the counter, pays for 5 ms. */
static void who_may_not_ask_for_its_processor_time_goes_by_time(void **state)
{
    (void)state;
    begin(19, 19);
    view.header->budget = 1000;
    spend_looks(LOOKS_WITHIN_CREDIT);
    spend_looks_of(1, PAST_CREDIT_MS);
    assert_int_equal(level(), 19); /* 96 + 5.5 less 5 */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_tenth_of_a_second_changes_nothing_and_more_doubles_the_mean),
        TEST(what_tensors_cost_makes_tensors_sparser_and_not_the_rest),
        TEST(where_a_mean_was_asked_for_tensors_keep_it),
        TEST(doublings_that_nobody_made_count_as_the_most),
        TEST(it_is_recorded_when_the_mean_last_rose),
        TEST(after_a_doubling_half_of_that_is_left),
        TEST(half_a_percent_of_the_processor_is_free),
        TEST(tensors_do_not_pay_for_blocks),
        TEST(a_tick_is_never_beyond_the_last),
        TEST(without_a_counter_nothing_is_judged),
        TEST(time_without_work_is_not_saved_up),
        TEST(it_ends_at_the_settled_mean),
        TEST(a_mean_that_was_asked_for_stays),
        TEST(a_budget_is_kept_by_a_mean_beyond_the_settled_one),
        TEST(a_larger_budget_pays_for_more),
        TEST(tables_alone_do_not_use_up_a_budget),
        TEST(an_event_that_took_long_once_stands_for_no_more_than_another),
        TEST(what_mappings_cost_is_counted_and_doubles_nothing),
        TEST(the_first_events_are_timed_each_and_count_once),
        TEST(tables_that_fill_double_the_mean_step_by_step),
        TEST(frames_and_stacks_are_tables_too),
        TEST(enough_live_blocks_double_the_mean_once_a_pass),
        TEST(who_can_measure_nothing_is_as_sparse_as_allowed),
        TEST(who_may_not_ask_for_its_processor_time_goes_by_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
