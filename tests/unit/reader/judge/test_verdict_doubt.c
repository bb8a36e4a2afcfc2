/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What forbids to say that nothing leaks, and what could hide all the same. */
#include "verdict_process.h"

/* The tests below: nothing that reassures while private memory grows. */

/* Two MiB of a floor of one, each quiet class in turn. */
static void no_class_reassures_while_private_memory_grows(void **state)
{
    static const enum seep_class quiet[] = {
        SEEP_CLASS_STEADY,       SEEP_CLASS_SAWTOOTH, SEEP_CLASS_TURNOVER,
        SEEP_CLASS_PLATEAU,      SEEP_CLASS_STEP,     SEEP_CLASS_WARMING,
        SEEP_CLASS_INSUFFICIENT, SEEP_CLASS_MINOR,    SEEP_CLASS_BACKING,
    };

    for (size_t i = 0; i < sizeof(quiet) / sizeof(*quiet); i++) {
        struct seep_report_site *site;

        begin(state);
        site = add(quiet[i], quiet[i] == SEEP_CLASS_WARMING ? 300 : 0);
        strcpy(site->id, "import");
        site->window_bytes[2] = 2 * MIB;
        process.input.outside.has_overhead = true;
        process.input.outside.rise_bytes = 40 * MIB;
        process.input.outside.overhead_bytes = 30 * MIB;
        process.input.private_drift = rising(100 * MIB, .2);
        assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
        assert_false(process.verdict.reassures);
        assert_true(process.verdict.private_grows);
        assert_true(process.verdict.has_growth);
        assert_string_equal(process.verdict.first_id, "import");
        assert_true(process.verdict.first_share <= .02);
        assert_true(process.now.bytes_per_s.low > 0);
        assert_int_equal(process.now.basis, SEEP_FORECAST_SUSPECTED);
        process.input.private_drift = still();
        decide();
        assert_false(process.verdict.private_grows);
    }
}

/* A container that doubles and holds less than 2 MiB is minor: that says
 * nothing of a process that grows by more. */
static void what_is_minor_reassures_of_no_more_than_itself(void **state)
{
    struct seep_report_site *site = add(SEEP_CLASS_MINOR, 2000);

    (void)state;
    strcpy(site->id, "container");
    site->in_steps = true;
    site->live_bytes = (uint64_t)(2 * MIB - 1);
    site->window_bytes[8] = MIB;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    assert_true(process.verdict.reassures);
    assert_int_equal(process.verdict.minor_count, 1);
    process.input.private_drift = rising(4 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_string_equal(process.verdict.first_id, "container");
    assert_false(process.verdict.reassures);
    process.input.private_drift = rising(100 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_false(process.verdict.reassures);
    assert_true(process.verdict.private_grows);
    process.input.private_drift.known = false; /* nobody has looked */
    process.input.private_drift.grows = false;
    decide();
    assert_false(process.verdict.reassures);
}

/* Of less than the floor of 1 MiB, in rows or in private memory. */
static void what_is_seen_to_grow_a_little_is_not_no_leak(void **state)
{
    static const enum seep_class little[] = {SEEP_CLASS_MINOR,
                                             SEEP_CLASS_SUSPECT};

    for (size_t i = 0; i < sizeof(little) / sizeof(*little); i++) {
        struct seep_report_site *site;

        begin(state);
        process.input.duration_s = 100;
        site = add(little[i], .7 * MIB / 100);
        strcpy(site->id, "little");
        assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
        assert_true(process.verdict.too_little);
        assert_true(says("too little so far"));
        assert_false(process.verdict.reassures);
        assert_string_equal(process.verdict.first_id, "little");
        assert_true(process.verdict.growth_bytes_per_s.estimate ==
                    site->growth_bytes_per_s.estimate);
        assert_true(process.verdict.hidden_bytes_per_s >=
                    site->growth_bytes_per_s.high);
        site->growth_bytes_per_s.low = 0; /* not surely */
        assert_int_equal(decide(), SEEP_VERDICT_STEADY);
        assert_true(process.verdict.reassures);
        site->growth_bytes_per_s.low = 100;
        process.input.duration_s = 30; /* a fifth of the floor */
        assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    }
}

static void private_memory_that_grows_a_little_is_not_no_leak(void **state)
{
    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    process.input.duration_s = 100;
    process.input.private_drift = still();
    process.input.private_drift.from_s = 20;
    process.input.private_drift.bytes_per_s =
        (struct seep_interval){10000, 5000, 15000};
    process.input.outside.has_overhead = true;
    process.input.outside.growth_bytes = 2000 * 80; /* may be ours */
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    process.input.outside.growth_bytes = 0;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(process.verdict.too_little);
    assert_true(process.verdict.growth_bytes_per_s.estimate == 10000);
    assert_true(process.verdict.need_s >= 100);
    process.input.private_drift.bytes_per_s.low = 3000; /* 234 KiB of 1 MiB */
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    assert_true(process.verdict.reassures);
}

/* What has stopped is what the class is about; what grows stands beside it. */
static void what_has_stopped_does_not_hide_what_grows_a_little(void **state)
{
    (void)state;
    process.input.duration_s = 100;
    add(SEEP_CLASS_STEP, 0)->window_bytes[1] = 20 * MIB;
    strcpy(add(SEEP_CLASS_MINOR, .7 * MIB / 100)->id, "little");
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    assert_false(process.verdict.reassures);
    assert_string_equal(process.verdict.open_id, "little");
    process.works[1].site.growth_bytes_per_s.low = 0;
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    assert_true(process.verdict.reassures);
}

/* Whatever it is called, the row that kept most of it is named. */
static void the_row_that_grew_most_is_suspected_of_it(void **state)
{
    struct seep_report_site *import = add(SEEP_CLASS_STEP, 0);
    struct seep_report_site *list = add(SEEP_CLASS_STEADY, 0);

    (void)state;
    strcpy(import->id, "import");
    import->window_bytes[1] = MIB;
    strcpy(list->id, "list");
    list->live_bytes = (uint64_t)(40 * MIB);
    list->window_bytes[7] = 30 * MIB;
    process.input.private_drift = rising(100 * MIB, .5);
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_string_equal(process.verdict.first_id, "list");
    assert_true(fabs(process.verdict.first_share - .3) < 1e-9);
    assert_true(process.verdict.growth_bytes_per_s.estimate ==
                process.input.private_drift.bytes_per_s.estimate);
    process.input.sample_bytes = 10 * MIB; /* three of its samples */
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    process.input.sample_bytes = 0;
    list->window_bytes[7] = 0;
    list->window_bytes[9] = 30 * MIB; /* on its way only */
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    list->window_bytes[9] = 0;
    list->window_bytes[3] = 30 * MIB; /* before it began to grow */
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
}

/* The doubt comes first, also where blocks are seen to stop. */
static void one_import_hides_no_doubt(void **state)
{
    (void)state;
    add(SEEP_CLASS_STEP, 0)->window_bytes[1] = 2 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    assert_true(process.verdict.reassures);
    process.input.least_device_bytes[0] = 900 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_int_equal(process.verdict.device, 0);
    process.input.least_device_bytes[0] = 0;
    process.input.unreachable = true;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(says("before it ended"));
    process.input.unreachable = false;
    process.input.shared_drift = rising(900 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    assert_true(says("mapped from files"));
    assert_int_equal(process.now.basis, SEEP_FORECAST_UNTOLD);
    assert_false(process.verdict.reassures);
    process.input.shared_drift = (struct seep_drift){.known = false};
    process.input.open_files_drift = rising(900 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    assert_true(says("a file without a name"));
    assert_true(process.verdict.open_files);
    assert_int_equal(process.now.basis, SEEP_FORECAST_GROWS);
    assert_false(process.verdict.reassures);
}

static void what_fills_must_fill_ever_slower_where_memory_grows(void **state)
{
    struct seep_report_site *site = add(SEEP_CLASS_WARMING, 30000);

    (void)state;
    process.input.private_drift = rising(30 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    process.input.private_drift.slows = true;
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    assert_true(process.verdict.filling);
    assert_false(process.verdict.reassures);
    process.input.private_drift.slows = false;
    site->known_bound_bytes = (uint64_t)(50 * MIB);
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    site->growth_bytes_per_s = (struct seep_interval){3000, 2900, 3100};
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT); /* a tenth of it */
}

/* What grows outside of live blocks does not excuse that they grow, too. */
static void retention_does_not_hide_a_leak_beside_it(void **state)
{
    struct seep_balance_outside *outside = grow_outside();

    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    outside->overhead_growth_bytes = 25 * MIB;
    outside->free = SEEP_BALANCE_FREE_PAGES;
    process.input.private_drift = rising(35 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_RETENTION);
    assert_false(process.verdict.reassures);
    process.input.private_drift = rising(90 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(process.verdict.private_grows);
}

static void a_leak_that_may_be_none_is_a_suspect(void **state)
{
    struct seep_report_site *site = add(SEEP_CLASS_LEAK, 10000);

    (void)state;
    site->growth_bytes_per_s = (struct seep_interval){10000, -1900, 21900};
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_int_equal(process.now.basis, SEEP_FORECAST_SUSPECTED);
    site->growth_bytes_per_s.low = 100;
    site->growth_bytes_per_s.high = 19900;
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
    assert_true(process.now.bytes_per_s.low > 0);
}

/* Each has an error of nearly its rate, and works at another pace now. */
static void the_forecast_of_a_leak_has_an_end(void **state)
{
    struct seep_report_site *site;

    (void)state;
    site = add(SEEP_CLASS_LEAK, 10000);
    site->growth_bytes_per_s = (struct seep_interval){10000, 1000, 19000};
    site->growth_now_bytes_per_s = 1;
    site = add(SEEP_CLASS_LEAK, 1000);
    site->growth_bytes_per_s = (struct seep_interval){1000, 10, 1990};
    site->growth_now_bytes_per_s = 1000;
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
    assert_true(process.now.bytes_per_s.estimate > 0);
    assert_true(process.now.bytes_per_s.low > 0);
}

static void a_pause_that_may_be_chance_is_no_stop(void **state)
{
    struct seep_report_site *site = add(SEEP_CLASS_PLATEAU, 0);

    (void)state;
    site->window_bytes[3] = 20 * MIB;
    site->stopped_since_s = 900;
    site->stopped_ln_p = -1;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(says("paused"));
    /* 100 s are 1 in e, so 461 s are 1 in 100. */
    assert_true(fabs(process.verdict.need_s - 360.5) < .1);
    site->stopped_ln_p = -4;
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    site->in_steps = true;
    site->step_next_s = RUN_S + 700; /* of the run */
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(says("steps"));
    assert_true(process.verdict.need_s >= 700);
}

/* Private memory, where the call site that stopped did not test its pause. */
static void a_process_that_rose_lately_has_not_stopped(void **state)
{
    struct seep_report_site *site = add(SEEP_CLASS_STEP, 0);

    (void)state;
    strcpy(site->id, "tenant");
    site->window_bytes[3] = 3 * MIB;
    process.input.private_drift.may_go_on = true;
    process.input.private_drift.rise_bytes = 3 * MIB;
    process.input.private_drift.need_s = 170;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(says("too early to say whether it has stopped"));
    assert_true(process.verdict.need_s == 170);
    assert_string_equal(process.verdict.first_id, "tenant");
    site->stopped_since_s = 400;
    site->stopped_ln_p = -9;
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    site->class = SEEP_CLASS_STEADY;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY); /* 5 % are worth a word */
    process.input.private_drift.rise_bytes = 6 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
}

/* "no call site grows" above a row of +4.4 +-3.6 MiB. */
static void a_row_that_surely_grew_is_not_denied(void **state)
{
    struct seep_report_site *site = add(SEEP_CLASS_INSUFFICIENT, 4400);

    (void)state;
    site->growth_bytes_per_s = (struct seep_interval){4400, 800, 8000};
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    site->growth_bytes_per_s = (struct seep_interval){440, 80, 800};
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    assert_false(says("no call site grows"));
    site->growth_bytes_per_s.low = -1;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    assert_true(says("no call site grows"));
    add(SEEP_CLASS_LEAK, 9000)->suppressed_by = "leak:cache";
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    assert_true(says("all growth is suppressed"));
    site->growth_bytes_per_s.low = 1;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    assert_true(says("what is not suppressed grows too little"));
}

/* Twenty samples of 512 KiB, or what the balance would have shown. */
static void what_could_hide_is_the_least_that_would_have_shown(void **state)
{
    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    process.input.private_drift.error_bytes_per_s = 1e9;
    process.input.sample_bytes = MIB / 2;
    decide();
    assert_true(fabs(process.verdict.hidden_bytes_per_s - 10 * MIB / RUN_S) <
                1);
    process.input.private_drift.error_bytes_per_s = 100;
    process.input.free_bytes = 3 * MIB;
    decide(); /* 4 MiB over 800 s, and 1.84 errors */
    assert_true(fabs(process.verdict.hidden_bytes_per_s -
                     (4 * MIB / (.8 * RUN_S) + 183.7)) < 1);
    process.input.private_drift.most_bytes_per_s = 7000;
    decide(); /* so much was not excluded */
    assert_true(process.verdict.hidden_bytes_per_s == 7000);
    process.input.private_drift.known = false;
    decide(); /* what no hook sees could be any amount */
    assert_true(process.verdict.hidden_bytes_per_s == 0);
    assert_false(process.verdict.reassures);
}

/* "+1000 ±1500" stands in its row: a leak of 1049 might not have shown. */
static void what_a_row_may_grow_by_is_not_denied(void **state)
{
    struct seep_report_site *site = add(SEEP_CLASS_MINOR, 1000);

    (void)state;
    process.input.private_drift.error_bytes_per_s = 1e9;
    site->growth_bytes_per_s = (struct seep_interval){1000, -500, 2500};
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    assert_true(process.verdict.hidden_bytes_per_s == 2500);
    process.input.private_drift.error_bytes_per_s = 100;
    decide(); /* the process grew by no more */
    assert_true(process.verdict.hidden_bytes_per_s < 2500);
    process.input.private_drift.error_bytes_per_s = 1e9;
    site->suppressed_by = "leak:cache";
    decide();
    assert_true(fabs(process.verdict.hidden_bytes_per_s - 1.5 * MIB / RUN_S) <
                1); /* of a leak of the floor half are measured to be less */
}

/* Of call sites that were not tested enough nothing is known; the process grew
 * by no more than its balance says. */
static void what_could_hide_where_doubt_is_left_is_all_that_grew(void **state)
{
    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    process.input.private_drift = rising(100 * MIB, .2);
    process.input.private_drift.most_bytes_per_s = 7000; /* from the start */
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(process.verdict.hidden_bytes_per_s ==
                process.input.private_drift.bytes_per_s.high);
    process.input.too_short = "too short";
    process.input.private_drift = still();
    process.input.private_drift.most_bytes_per_s = 7000;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(process.verdict.hidden_bytes_per_s == 7000);
    process.input.unreachable = true;
    decide();
    assert_true(process.verdict.hidden_bytes_per_s == 0);
}

/* Pseudo-random in [0, 1), the same every time. */
static double uniform(void)
{
    static uint32_t word = 1;

    word = word * 1664525 + 1013904223;
    return (double)(word >> 8) / (double)(1U << 24);
}

static bool by_chance(double share)
{
    return uniform() < share;
}

static void add_any(void)
{
    struct seep_report_site *site =
        add((enum seep_class)(uniform() * SEEP_CLASS_COUNT),
            by_chance(.3) ? 0 : 20000 * uniform());

    site->growth_bytes_per_s.low -= 20000 * uniform() * by_chance(.5);
    site->live_bytes = (uint64_t)(40 * MIB * uniform());
    site->window_bytes[(int)(10 * uniform())] = 20 * MIB * uniform();
    site->suppressed_by = by_chance(.1) ? "rule" : NULL;
    site->known_bound_bytes = by_chance(.1) ? (uint64_t)(50 * MIB) : 0;
    site->stopped_since_s = by_chance(.3) ? RUN_S * uniform() : 0;
    site->stopped_ln_p = -10 * uniform();
    site->in_steps = by_chance(.1);
    site->in_bursts = by_chance(.1);
    site->space = by_chance(.1) ? SEEP_SPACE_DEVICE : SEEP_SPACE_HEAP;
}

static void make_any(void)
{
    struct seep_verdict_input *input = &process.input;
    int count = 1 + (int)((SITES_MAX - 1) * uniform());

    for (int i = 0; i < count; i++) {
        add_any();
    }
    if (by_chance(.5)) {
        input->private_drift = rising(200 * MIB * uniform(), .9 * uniform());
        input->private_drift.slows = by_chance(.3);
    }
    input->private_drift.may_go_on = by_chance(.2);
    input->private_drift.rise_bytes = 20 * MIB * uniform();
    if (by_chance(.2)) {
        grow_outside()->overhead_growth_bytes = 40 * MIB * uniform();
    }
    if (by_chance(.2)) {
        input->shared_drift = rising(90 * MIB, .2);
    }
    input->outside.has_overhead = by_chance(.5);
    input->outside.rise_bytes = 60 * MIB * uniform();
    input->outside.overhead_bytes = 60 * MIB * uniform();
    input->sample_bytes = by_chance(.5) ? MIB / 2 : 0;
    input->unreachable = by_chance(.1);
}

static bool a_row_surely_grew(void)
{
    for (size_t i = 0; i < process.input.count; i++) {
        const struct seep_report_site *site = &process.works[i].site;

        if (site->suppressed_by == NULL && site->known_bound_bytes == 0 &&
            site->class != SEEP_CLASS_BACKING && site->has_growth &&
            site->growth_bytes_per_s.low > 0) {
            return true;
        }
    }
    return false;
}

/* Whatever comes together: what is said here is not denied there. */
static void no_verdict_contradicts_itself(void **state)
{
    const struct seep_report_verdict *verdict = &process.verdict;
    size_t reassured = 0;

    for (int i = 0; i < 50000; i++) {
        bool quiet;

        begin(state);
        make_any();
        decide();
        quiet = verdict->class == SEEP_VERDICT_STEADY ||
                ((verdict->class == SEEP_VERDICT_RETENTION ||
                  verdict->class == SEEP_VERDICT_FRAGMENTATION) &&
                 !verdict->has_growth) ||
                (verdict->class == SEEP_VERDICT_BOUNDED && !verdict->filling);
        assert_false(quiet && verdict->private_grows);
        assert_false(quiet && verdict->shared_grows);
        assert_false(quiet && process.input.unreachable);
        assert_false(says("no call site grows") && a_row_surely_grew());
        assert_false(says("all growth is") && a_row_surely_grew());
        assert_false(verdict->reassures && !quiet);
        assert_false(verdict->reassures && verdict->has_growth);
        assert_false(verdict->reassures && verdict->need_s > 0);
        assert_true(verdict->hidden_bytes_per_s > 0 || !verdict->reassures);
        if (verdict->has_growth && verdict->device < 0) {
            assert_true(verdict->hidden_bytes_per_s == 0 ||
                        verdict->hidden_bytes_per_s >=
                            verdict->growth_bytes_per_s.high);
        }
        if (verdict->class == SEEP_VERDICT_LEAK && verdict->has_growth) {
            assert_true(verdict->growth_bytes_per_s.low > 0);
            assert_true(process.now.bytes_per_s.low >= 0);
        }
        if (verdict->class == SEEP_VERDICT_INSUFFICIENT) {
            assert_true(verdict->need_s > 0);
        }
        reassured += verdict->reassures;
    }
    assert_true(reassured > 500);
}

/* A full disk takes no more events: what is left of them looks quiet. */
static void what_is_mostly_lost_rules_no_leak_out(void **state)
{
    (void)state;
    process.input.lost_share = SEEP_VERDICT_LOST_MOST;
    add(SEEP_CLASS_STEADY, 0);
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    process.input.lost_share += .01;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(says("not recorded"));
    add(SEEP_CLASS_WARMING, 8000);
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
}

/* Frees that are lost make a leak of what is none, unless memory grows too. */
static void what_is_mostly_lost_proves_no_leak(void **state)
{
    (void)state;
    process.input.lost_share = .5;
    add(SEEP_CLASS_LEAK, 1e5);
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_true(says("may have been freed"));
    process.input.private_drift = rising(100 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
    process.input.private_drift = still();
    process.input.lost_share = .01;
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup(test, begin)
    const struct CMUnitTest tests[] = {
        WITH(no_class_reassures_while_private_memory_grows),
        WITH(what_is_minor_reassures_of_no_more_than_itself),
        WITH(what_is_seen_to_grow_a_little_is_not_no_leak),
        WITH(private_memory_that_grows_a_little_is_not_no_leak),
        WITH(what_has_stopped_does_not_hide_what_grows_a_little),
        WITH(the_row_that_grew_most_is_suspected_of_it),
        WITH(one_import_hides_no_doubt),
        WITH(what_fills_must_fill_ever_slower_where_memory_grows),
        WITH(what_is_mostly_lost_rules_no_leak_out),
        WITH(what_is_mostly_lost_proves_no_leak),
        WITH(retention_does_not_hide_a_leak_beside_it),
        WITH(a_leak_that_may_be_none_is_a_suspect),
        WITH(the_forecast_of_a_leak_has_an_end),
        WITH(a_pause_that_may_be_chance_is_no_stop),
        WITH(a_process_that_rose_lately_has_not_stopped),
        WITH(a_row_that_surely_grew_is_not_denied),
        WITH(no_verdict_contradicts_itself),
        WITH(what_could_hide_is_the_least_that_would_have_shown),
        WITH(what_a_row_may_grow_by_is_not_denied),
        WITH(what_could_hide_where_doubt_is_left_is_all_that_grew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
