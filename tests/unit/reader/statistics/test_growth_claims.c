/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * "It has stopped", "it fills", "it is given back" are claims that a leak must
 * not be told by. Each case here was once called by one of them, or the other
 * way round; and what is clean is still said to be so.
 *
 * Runs of 100 s, each block by hand, drawn from one seed.
 */
#include "judge_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXACT(test) \
    cmocka_unit_test_setup_teardown(test, judge_set_up_exact, judge_tear_down)
#define SAMPLED(test) \
    cmocka_unit_test_setup_teardown(test, judge_set_up_sampled, judge_tear_down)

#define LEAK 0x10 /* where the site under test calls from */

/* Knuth's MMIX generator, in (0, 1). */
static double drawn(uint64_t *random)
{
    *random =
        *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*random >> 11) + 0.5) * 0x1p-53;
}

/** One event of a run: they go in by time. */
struct event {
    double second;
    uint64_t size; /* of a birth; of a death 0 */
    uint32_t site;
    uint32_t block;
};

#define EVENTS 60000

struct plan {
    struct event events[EVENTS];
    uint64_t addresses[EVENTS];
    uint32_t count;
    uint32_t blocks;
    uint32_t work; /* the site of all other work */
    uint64_t random;
};

static struct plan plan;

static void begin(struct judge_run *f, uint64_t seed)
{
    plan.work = judge_site(f, 0x9000);
    plan.count = 0;
    plan.blocks = 0;
    plan.random = seed;
    for (int i = 0; i < 8; i++) {
        (void)drawn(&plan.random);
    }
}

static void add(uint32_t site, uint64_t size, double second, double life)
{
    uint32_t block = plan.blocks++;

    assert_true(plan.count + 2 <= EVENTS);
    plan.events[plan.count++] = (struct event){second, size, site, block};
    if (second + life < JUDGE_RUN_S) {
        plan.events[plan.count++] =
            (struct event){second + life, 0, site, block};
    }
}

static int compare(const void *a, const void *b)
{
    const struct event *left = a;
    const struct event *right = b;

    if (left->second != right->second) {
        return left->second < right->second ? -1 : 1;
    }
    return (left->size == 0) - (right->size == 0);
}

static const struct seep_report_site *judged(struct judge_run *f)
{
    const struct seep_report *report;

    qsort(plan.events, plan.count, sizeof(plan.events[0]), compare);
    for (uint32_t i = 0; i < plan.count; i++) {
        const struct event *event = &plan.events[i];

        if (i > 0 && event->second > plan.events[i - 1].second) {
            builder_fold(&f->builder); /* in order, over all shards */
        }
        if (event->size > 0) {
            plan.addresses[event->block] =
                judge_born(f, event->site, event->size, event->second);
        } else {
            judge_died(f, plan.addresses[event->block], event->second);
        }
    }
    report = judge_report(f, JUDGE_RUN_S);
    for (size_t i = 0; i < report->site_count; i++) {
        if (report->sites[i].frames[0]->offset == LEAK) {
            return &report->sites[i];
        }
    }
    fail();
    return NULL;
}

#define NEVER 1e9

static double exponential(double mean)
{
    return -mean * log(drawn(&plan.random));
}

/** So many blocks of work a second at other sites, given back at once. */
static void work(double begin_s, double end_s, double pace)
{
    for (double second = begin_s; second < end_s; second += 1 / pace) {
        add(plan.work, 400000, second, 0.01);
    }
}

static void churn(uint32_t site, double begin_s, double end_s, double pace,
                  double life)
{
    for (double second = begin_s; second < end_s; second += 1 / pace) {
        add(site, 4096, second, exponential(life));
    }
}

static bool reassures(enum seep_class class)
{
    return class == SEEP_CLASS_PLATEAU || class == SEEP_CLASS_STEP ||
           class == SEEP_CLASS_STEADY || class == SEEP_CLASS_SAWTOOTH ||
           class == SEEP_CLASS_TURNOVER || class == SEEP_CLASS_WARMING ||
           class == SEEP_CLASS_AGING;
}

static void assert_not_reassured(const struct seep_report_site *site)
{
    if (reassures(site->class)) {
        fail_msg("%s: %s", seep_class_name(site->class), site->class_reason);
    }
    assert_true(site->stopped_since_s < 0);
}

/* n blocks, as even as a leak can be, and nothing is ever freed. */
static void even_leak(struct judge_run *f, uint32_t count, uint64_t size)
{
    uint32_t site = judge_site(f, LEAK);

    begin(f, count);
    work(0, JUDGE_RUN_S, 10);
    for (uint32_t i = 0; i < count; i++) {
        add(site, size, (i + 0.2 + 0.6 * drawn(&plan.random)) * 100 / count,
            NEVER);
    }
}

static void an_even_leak_of_any_count(void **state, uint64_t size)
{
    static const uint32_t counts[] = {3, 5, 8, 12, 16, 20, 29, 40, 120, 400};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        const struct seep_report_site *seen;

        even_leak(*state, counts[i], size);
        seen = judged(*state);
        assert_not_reassured(seen);
        if (counts[i] >= 20) {
            assert_true(seen->class == SEEP_CLASS_LEAK ||
                        seen->class == SEEP_CLASS_MINOR);
        }
        judge_tear_down(state);
        (void)(size < 1000 ? judge_set_up_sampled(state)
                           : judge_set_up_exact(state));
    }
}

static void the_purest_leak_is_never_reassured(void **state)
{
    an_even_leak_of_any_count(state, 1 << 20);
}

static void nor_is_it_when_it_is_sampled(void **state)
{
    an_even_leak_of_any_count(state, 500);
}

static void a_leak_that_begins_late_over_churn_is_no_sawtooth(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, LEAK);

    begin(f, 1);
    work(0, JUDGE_RUN_S, 10);
    churn(site, 0, JUDGE_RUN_S, 60, 2);
    for (int i = 0; i < 400; i++) {
        add(site, 4096, 65 + 35 * drawn(&plan.random), NEVER);
    }
    assert_not_reassured(judged(f));
}

/* Nothing is done in the last tenth, and what is in flight is given back. */
/* 64 KiB four times a second for the last 40 s, after work that was more. */
static void the_rate_of_what_began_late_is_that_since_then(void **state)
{
    struct judge_run *f = *state;
    uint32_t leak = judge_site(f, LEAK);
    const struct seep_report_site *site;
    double true_rate = 4 << 16;

    begin(f, 23);
    work(0, 60, 20);
    work(60, JUDGE_RUN_S, 1);
    for (int i = 0; i < 160; i++) {
        add(leak, 1 << 16, 60 + 0.25 * i, 1000);
    }
    site = judged(f);
    assert_not_reassured(site);
    assert_true(site->has_growth);
    assert_true(site->growth_bytes_per_s.low <= 1.1 * true_rate);
    assert_true(site->growth_bytes_per_s.high >= 0.9 * true_rate);
    assert_true(site->growth_now_bytes_per_s >= 0.8 * true_rate);
}

static void a_drained_tail_is_no_relief(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, LEAK);
    const struct seep_report_site *seen;

    begin(f, 2);
    work(0, 90, 10);
    churn(site, 0, 88, 80, 1.5);
    for (int i = 0; i < 2000; i++) {
        add(site, 4096, 90 * drawn(&plan.random), NEVER);
    }
    seen = judged(f);

    judge_assert_class(seen, "leak");
    assert_true(seen->growth_bytes_per_s.low < 2000 * 4096 / 100. &&
                seen->growth_bytes_per_s.high > 2000 * 4096 / 100.);
}

/* Lists that grow by @factor when they are full: one after the other is
 * reallocated, and no block gets old. */
static void lists(struct judge_run *f, int count, double factor)
{
    uint32_t site = judge_site(f, LEAK);

    begin(f, (uint64_t)(count * factor * 100));
    work(0, JUDGE_RUN_S, 10);
    for (int i = 0; i < count; i++) {
        double entries = 1e5 * exp(0.3 * (drawn(&plan.random) - 0.5));
        double room = 100 * pow(factor, drawn(&plan.random));
        double since = 0.1;

        while (since < JUDGE_RUN_S) {
            double until = room / entries * JUDGE_RUN_S;

            add(site, (uint64_t)(16 * room), since,
                until > since ? until - since : 0.001);
            since = until > since ? until : since + 0.001;
            room *= factor;
        }
    }
}

static void assert_lists_are_told(void **state, double factor)
{
    static const int counts[] = {10, 40, 100};

    for (size_t i = 0; i < 3; i++) {
        lists(*state, counts[i], factor);
        assert_not_reassured(judged(*state));
        judge_tear_down(state);
        judge_set_up_exact(state);
    }
}

static void lists_that_grow_by_an_eighth_are_not_steady(void **state)
{
    assert_lists_are_told(state, 1.125);
}

static void lists_that_grow_by_a_half_are_no_step(void **state)
{
    assert_lists_are_told(state, 1.5);
}

static void lists_that_double_are_no_step(void **state)
{
    assert_lists_are_told(state, 2);
}

/* Work in a few bursts: three of four buckets see none of it. */
static void a_leak_of_bursts_of_work_has_not_stopped(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, LEAK);

    begin(f, 3);
    for (int k = 0; k < 32; k++) {
        double at = 3.1 * k + 1.5 * drawn(&plan.random);
        int blocks = (int)(4 + 40 * drawn(&plan.random));

        for (int i = 0; i < 5 * blocks; i++) {
            add(plan.work, 400000, at + 0.004 * i, 0.002);
        }
        for (int i = 0; i < blocks; i++) {
            add(site, 40960, at + 0.02 * i, NEVER);
        }
    }
    assert_not_reassured(judged(f));
}

#define SLOTS 200

/* A full cache that gives up any of its blocks for the next one, five a second:
 * they live for 40 s in the mean. */
static void full_cache(uint32_t site)
{
    double born[SLOTS] = {0};

    for (double second = 0.1; second < JUDGE_RUN_S; second += 0.2) {
        int slot = (int)(SLOTS * drawn(&plan.random));

        add(site, 4096, born[slot], second - born[slot]);
        born[slot] = second;
    }
    for (int slot = 0; slot < SLOTS; slot++) {
        add(site, 4096, born[slot], NEVER);
    }
}

/* Live bytes rise in a line from half of the run on, by a third of the cache.
 */
static void a_leak_in_a_full_cache_is_not_its_turnover(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, LEAK);

    begin(f, 29);
    work(0, JUDGE_RUN_S, 10);
    full_cache(site);
    for (int i = 0; i < 100; i++) {
        add(site, 4096, i + drawn(&plan.random), NEVER);
    }
    assert_not_reassured(judged(f));
}

static void a_full_cache_is_turnover(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, LEAK);

    begin(f, 29);
    work(0, JUDGE_RUN_S, 10);
    full_cache(site);
    assert_true(reassures(judged(f)->class));
}

/* Far less a second than while it filled, and yet 120 blocks. */
static void a_leak_behind_a_cache_that_filled_has_not_stopped(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, LEAK);
    const struct seep_report_site *seen;

    begin(f, 30);
    work(0, JUDGE_RUN_S, 10);
    for (int i = 0; i < 1200; i++) {
        add(site, 4096, fmin(90, exponential(10)), NEVER);
    }
    for (int i = 0; i < 120; i++) {
        add(site, 4096, (i + drawn(&plan.random)) / 1.2, NEVER);
    }
    seen = judged(f);
    assert_true(seep_class_grows(seen->class));
    assert_true(seen->stopped_since_s < 0);
}

static void a_timer_that_leaks_under_a_rising_load_is_no_cache(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, LEAK);

    begin(f, 4);
    for (int i = 0; i < JUDGE_RUN_S; i++) {
        work(i, i + 1, 4 + 0.12 * i);
    }
    for (int i = 0; i < 400; i++) {
        add(site, 40960, 0.25 * (i + drawn(&plan.random)), NEVER);
    }
    assert_not_reassured(judged(f));
}

/* Full at 88 of 100 s; the oldest goes when one comes. */
/** A request: four blocks that are given back at once, and one that stays. */
static void request(uint32_t site, double second)
{
    add(plan.work, 20000, second, 0.001);
    for (int i = 0; i < 4; i++) {
        add(site, 4096, second, 0.001);
    }
    add(site, 4096, second, NEVER);
}

/* Starved of a processor, it makes up for that in the end. The run ends in a
 * bucket that has hardly begun: what was born in the one before counted as if
 * most of it could still be given back. */
static void a_leak_that_makes_up_for_stalls_has_not_stopped(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, LEAK);
    double second = 0;

    begin(f, 12);
    while (second < JUDGE_RUN_S - 4.2) {
        second += exponential(0.1);
        request(site, second);
    }
    for (int i = 0; i < 120; i++) {
        request(site, JUDGE_RUN_S - 4.2 + i / 30.0);
    }
    judge_assert_class(judged(f), "leak");
}

/* What a line loaded at the start is no measure of what it keeps since. */
static void a_leak_on_the_line_that_loads_the_weights_is_a_leak(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, LEAK);

    begin(f, 13);
    work(0, JUDGE_RUN_S, 10);
    for (int i = 0; i < 40; i++) {
        add(site, 4 << 20, 0.04 * i, NEVER);
    }
    for (int i = 0; i < 300; i++) {
        add(site, 40960, JUDGE_RUN_S * drawn(&plan.random), NEVER);
    }
    judge_assert_class(judged(f), "leak");
}

/* Some of these come so evenly that they are a leak, and some too few to tell;
 * beside ten times as much of the start all of them were turnover or step. */
static void nor_are_a_few_blocks_beside_the_weights_relief(void **state)
{
    for (unsigned i = 0; i < 12; i++) {
        struct judge_run *f = *state;
        uint32_t site = judge_site(f, LEAK);

        begin(f, 30 + i);
        work(0, JUDGE_RUN_S, 10);
        for (int k = 0; k < 20; k++) {
            add(site, 5 << 20, 0.04 * k, NEVER);
        }
        for (int k = 0; k < 10; k++) {
            add(site, 1 << 20, JUDGE_RUN_S * drawn(&plan.random), NEVER);
        }
        assert_not_reassured(judged(f));
        judge_tear_down(state);
        (void)judge_set_up_exact(state);
    }
}

static void a_ring_that_fills_late_is_no_leak(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, LEAK);

    begin(f, 5);
    work(0, JUDGE_RUN_S, 10);
    for (int i = 0; i < 1000; i++) {
        add(site, 8192, 0.1 * i, 88);
    }
    assert_int_not_equal(judged(f)->class, SEEP_CLASS_LEAK);
}

/* Tenths of one tenant's hours: 6, 0, 6, 0, 6, 0, 6, 0, 3, 3. */
static void a_leak_of_one_tenant_has_not_grown_once(void **state)
{
    static const int tenths[] = {6, 0, 6, 0, 6, 0, 6, 0, 3, 3};
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, LEAK);

    begin(f, 6);
    work(0, JUDGE_RUN_S, 10);
    for (int i = 0; i < 10; i++) {
        for (int k = 0; k < 10 * tenths[i]; k++) {
            add(site, 100000, 10 * (i + drawn(&plan.random)), NEVER);
        }
    }
    assert_not_reassured(judged(f));
}

/* The old block lives so much longer than its successor is there. */
static void a_container_doubles(struct judge_run *f, double overlap_s)
{
    uint32_t site = judge_site(f, LEAK);
    const struct seep_report_site *seen;
    double since = 0.5;
    uint64_t room = 1 << 20;

    begin(f, 7);
    work(0, JUDGE_RUN_S, 10);
    for (int i = 0; i < 7; i++) { /* the last at 54 s, 64 MiB */
        double until = 1.7 * (double)(1 << i);

        add(site, room, since, i < 6 ? until + overlap_s - since : NEVER);
        since = until;
        room *= 2;
    }
    seen = judged(f);

    assert_not_reassured(seen);
    judge_assert_class(seen, "suspect");
    assert_true(seen->in_steps);
    assert_true(seen->step_next_s > 95 && seen->step_next_s < 125);
    assert_true(seen->step_next_bytes > 110e6 && seen->step_next_bytes < 150e6);
}

static void a_container_that_doubles_is_foretold(void **state)
{
    a_container_doubles(*state, 0);
}

static void so_it_is_where_the_old_one_goes_a_little_later(void **state)
{
    a_container_doubles(*state, 1);
}

/* What is clean stays so. */

static void growth_that_stopped_says_since_when(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, LEAK);
    const struct seep_report_site *seen;

    begin(f, 8);
    work(0, JUDGE_RUN_S, 10);
    for (int i = 0; i < 200; i++) {
        add(site, 40960, 45 * drawn(&plan.random), NEVER);
    }
    seen = judged(f);

    judge_assert_class(seen, "plateau");
    assert_true(seen->stopped_ln_p < -10);
    assert_true(fabs(seen->stopped_since_s - 45) < 12);
    assert_non_null(strstr(seen->class_reason, "not chance"));
}

static void what_is_kept_since_the_start_is_a_step(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, LEAK);

    begin(f, 9);
    work(0, JUDGE_RUN_S, 10);
    for (int i = 0; i < 50; i++) {
        add(site, 1 << 20, 0.04 * i, NEVER);
    }
    judge_assert_class(judged(f), "step");
}

static void a_cache_that_fills_is_told_by_its_falling_rate(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, LEAK);
    const struct seep_report_site *seen;

    begin(f, 10);
    work(0, JUDGE_RUN_S, 10);
    for (int i = 0; i < 300; i++) {
        add(site, 40960, pow(101, drawn(&plan.random)) - 1, NEVER);
    }
    seen = judged(f);

    judge_assert_class(seen, "warming");
    assert_non_null(strstr(seen->class_reason, "slowing down"));
}

static void what_is_given_back_is_steady(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, LEAK);

    begin(f, 11);
    work(0, JUDGE_RUN_S, 10);
    churn(site, 0, JUDGE_RUN_S, 80, 1);
    assert_true(reassures(judged(f)->class));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EXACT(the_purest_leak_is_never_reassured),
        SAMPLED(nor_is_it_when_it_is_sampled),
        EXACT(a_leak_that_begins_late_over_churn_is_no_sawtooth),
        EXACT(the_rate_of_what_began_late_is_that_since_then),
        EXACT(a_drained_tail_is_no_relief),
        EXACT(lists_that_grow_by_an_eighth_are_not_steady),
        EXACT(lists_that_grow_by_a_half_are_no_step),
        EXACT(lists_that_double_are_no_step),
        EXACT(a_leak_of_bursts_of_work_has_not_stopped),
        EXACT(a_leak_in_a_full_cache_is_not_its_turnover),
        EXACT(a_full_cache_is_turnover),
        EXACT(a_leak_behind_a_cache_that_filled_has_not_stopped),
        EXACT(a_timer_that_leaks_under_a_rising_load_is_no_cache),
        EXACT(a_leak_that_makes_up_for_stalls_has_not_stopped),
        EXACT(a_leak_on_the_line_that_loads_the_weights_is_a_leak),
        EXACT(nor_are_a_few_blocks_beside_the_weights_relief),
        EXACT(a_ring_that_fills_late_is_no_leak),
        EXACT(a_leak_of_one_tenant_has_not_grown_once),
        EXACT(a_container_that_doubles_is_foretold),
        EXACT(so_it_is_where_the_old_one_goes_a_little_later),
        EXACT(growth_that_stopped_says_since_when),
        EXACT(what_is_kept_since_the_start_is_a_step),
        EXACT(a_cache_that_fills_is_told_by_its_falling_rate),
        EXACT(what_is_given_back_is_steady),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
