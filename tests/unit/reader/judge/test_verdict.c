/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The class of a process, from sites and a balance made by hand. */
#include "verdict_process.h"

static void nothing_recorded_is_no_verdict(void **state)
{
    (void)state;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(says("nothing"));
    assert_int_equal(process.now.basis, SEEP_FORECAST_UNTOLD);
}

static void a_run_too_short_is_no_verdict_whatever_its_sites_say(void **state)
{
    (void)state;
    add(SEEP_CLASS_LEAK, 5000);
    process.input.too_short = "too short";
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(says("too short"));
    assert_false(process.verdict.has_growth);
}

/* 4000 and 3000 bytes a second, halves of 400 and 300: 7000 +- 500. */
static void leaks_add_up_and_their_errors_by_squares(void **state)
{
    struct seep_report_site *first;

    (void)state;
    first = add(SEEP_CLASS_LEAK, 4000);
    first->growth_now_bytes_per_s = 8000;
    first->has_growth_per_unit = true;
    first->growth_bytes_per_unit = (struct seep_interval){40, 30, 50};
    add(SEEP_CLASS_LEAK, 3000);
    add(SEEP_CLASS_SUSPECT, 9000);
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
    assert_true(says("leak"));
    assert_true(process.verdict.has_growth);
    assert_int_equal(process.verdict.growing_count, 2);
    assert_true(fabs(process.verdict.growth_bytes_per_s.estimate - 7000) < .1);
    assert_true(fabs(process.verdict.growth_bytes_per_s.low - 6500) < .1);
    assert_true(fabs(process.verdict.growth_bytes_per_s.high - 7500) < .1);
    assert_true(fabs(process.verdict.first_share - 4. / 7) < 1e-9);
    assert_true(process.verdict.has_growth_per_unit);
    assert_true(process.verdict.growth_bytes_per_unit.low == 30);
    assert_int_equal(process.now.basis, SEEP_FORECAST_GROWS);
    assert_true(fabs(process.now.bytes_per_s.estimate - 11000) < .1);
}

/* 4000 a second for sure, and somewhere between -9000 and 11000 besides. */
static void a_leak_that_is_not_sure_takes_none_back_that_is(void **state)
{
    (void)state;
    add(SEEP_CLASS_LEAK, 4000);
    add(SEEP_CLASS_LEAK, 1000)->growth_bytes_per_s =
        (struct seep_interval){1000, -9000, 11000};
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
    assert_int_equal(process.verdict.growing_count, 1);
    assert_true(fabs(process.verdict.growth_bytes_per_s.low - 3600) < .1);
    process.works[0].site.growth_bytes_per_s.low = -1;
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
}

/* Each may be none, and both are not: 6000 +- 4243. */
static void leaks_that_are_sure_together_are_leaks(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        add(SEEP_CLASS_LEAK, 3000)->growth_bytes_per_s =
            (struct seep_interval){3000, -100, 6100};
    }
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
    assert_int_equal(process.verdict.growing_count, 2);
}

/* A block of each object leaks at the one line, most of it at the other. */
static void what_is_not_proved_is_suspected_with_all_that_is(void **state)
{
    struct seep_report_site *first = add(SEEP_CLASS_LEAK, 2000);

    (void)state;
    first->growth_bytes_per_s = (struct seep_interval){2000, -500, 4500};
    add(SEEP_CLASS_SUSPECT, 30000);
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_string_equal(process.verdict.first_id, first->id);
    assert_int_equal(process.verdict.growing_count, 2);
    assert_true(fabs(process.verdict.growth_bytes_per_s.estimate - 32000) < .1);
    assert_true(fabs(process.verdict.first_share - 2. / 32) < 1e-9);
    assert_int_equal(process.now.basis, SEEP_FORECAST_SUSPECTED);
    first->growth_bytes_per_s = (struct seep_interval){2000, 500, 3500};
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
    assert_true(fabs(process.verdict.growth_bytes_per_s.estimate - 2000) < .1);
}

/* 2 MB over the run are little of a model, and not of what the host holds. */
static void a_floor_is_that_of_the_memory_that_grows(void **state)
{
    (void)state;
    add(SEEP_CLASS_SUSPECT, 2000);
    process.input.live_bytes[SEEP_PLACE_DEVICE] = (uint64_t)(1e4 * MIB);
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_int_equal(process.verdict.device, -1);
    process.works[0].site.space = SEEP_SPACE_DEVICE;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    add(SEEP_CLASS_LEAK, 1e5)->space = SEEP_SPACE_TENSOR;
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
    assert_int_equal(process.verdict.device, 0);
    assert_true(process.verdict.floor_bytes > 19 * MIB);
}

/* Of a device neither makes the host's growth known, nor its class unknown. */
static void what_a_device_holds_says_nothing_of_the_host(void **state)
{
    (void)state;
    process.input.private_drift = rising(10 * MIB, .2);
    add(SEEP_CLASS_MINOR, 8000)->space = SEEP_SPACE_DEVICE;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(says("private memory grows"));
    begin(state);
    add(SEEP_CLASS_INSUFFICIENT, 0)->space = SEEP_SPACE_DEVICE;
    process.works[0].site.live_bytes = (uint64_t)(60 * MIB);
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    begin(state);
    add(SEEP_CLASS_WARMING, 8000)->space = SEEP_SPACE_DEVICE;
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    assert_true(process.verdict.filling);
    assert_int_equal(process.now.basis, SEEP_FORECAST_GROWS);
    assert_true(process.now.bytes_per_s.estimate == 0);
    assert_true(process.now.devices[0].is_known);
    assert_int_equal(process.now.devices[0].basis, SEEP_FORECAST_UNTOLD);
    assert_false(process.now.devices[1].is_known);
}

/* Of the host's memory, or of more than the whole of the cache's growth. */
static void a_cache_in_pieces_comes_after_what_is_worse(void **state)
{
    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    process.input.caches[1] = (struct seep_interval){9000, 8000, 10000};
    assert_int_equal(decide(), SEEP_VERDICT_FRAGMENTATION);
    assert_true(says("PyTorch's cache"));
    assert_int_equal(process.verdict.device, 1);
    assert_true(process.verdict.growth_bytes_per_s.estimate == 9000);
    add(SEEP_CLASS_SUSPECT, 20000);
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    grow_outside();
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    add(SEEP_CLASS_LEAK, 5000);
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
}

static void a_leak_comes_before_what_grows_outside(void **state)
{
    (void)state;
    add(SEEP_CLASS_LEAK, 4000);
    grow_outside();
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
}

static void a_suppressed_leak_is_counted_and_makes_no_leak(void **state)
{
    (void)state;
    add(SEEP_CLASS_LEAK, 4000)->suppressed_by = "leak:cache";
    add(SEEP_CLASS_STEADY, 0);
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    assert_true(says("suppressed"));
    assert_int_equal(process.verdict.suppressed_count, 1);
    assert_true(process.verdict.suppressed_bytes_per_s == 4000);
    assert_int_equal(process.now.basis, SEEP_FORECAST_GROWS);
    assert_true(process.now.bytes_per_s.estimate == 0);
}

static void a_site_that_holds_no_memory_makes_no_leak(void **state)
{
    (void)state;
    add(SEEP_CLASS_LEAK, 4000)->space = SEEP_SPACE_REGISTERED;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
}

static void growth_that_the_allocator_keeps_in_pages_is_retention(void **state)
{
    struct seep_balance_outside *outside = grow_outside();

    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    outside->overhead_growth_bytes = 25 * MIB;
    process.input.lost_share = .5;
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    assert_true(says("may be live blocks"));
    process.input.lost_share = 0;
    outside->free = SEEP_BALANCE_FREE_PAGES;
    assert_int_equal(decide(), SEEP_VERDICT_RETENTION);
    assert_true(process.verdict.has_growth);
    assert_true(process.verdict.growth_bytes_per_s.estimate == 40000);
    assert_true(process.now.bytes_per_s.estimate == 40000);
    assert_int_equal(process.verdict.growing_count, 0);
}

static void growth_between_blocks_is_fragmentation(void **state)
{
    struct seep_balance_outside *outside = grow_outside();

    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    outside->overhead_growth_bytes = 25 * MIB;
    outside->free = SEEP_BALANCE_FREE_SCATTERED;
    assert_int_equal(decide(), SEEP_VERDICT_FRAGMENTATION);
    assert_true(says("scattered"));
    assert_false(says("slower"));
    assert_int_equal(process.now.basis, SEEP_FORECAST_GROWS);
    process.input.private_drift.slows = true;
    assert_int_equal(decide(), SEEP_VERDICT_FRAGMENTATION);
    assert_true(says("ever slower"));
    assert_int_equal(process.now.basis, SEEP_FORECAST_SUSPECTED);
}

static void growth_that_is_neither_is_unexplained(void **state)
{
    struct seep_balance_outside *outside = grow_outside();

    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    outside->overhead_growth_bytes = 5 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    assert_true(says("neither"));
    outside->has_overhead = false;
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    assert_true(says("is unknown"));
}

/* A hook saw the mapping: whoever made it is named. */
static void what_fills_a_mapping_is_at_whoever_mapped_it(void **state)
{
    struct seep_balance_outside *outside = grow_outside();
    struct seep_report_site *site = add(SEEP_CLASS_STEP, 0);

    (void)state;
    strcpy(site->id, "arena");
    site->space = SEEP_SPACE_MAPPED;
    site->touched_bytes = 20 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    assert_string_equal(process.verdict.first_id, "");
    outside->mapped_growth_bytes = .9 * outside->growth_bytes;
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    assert_string_equal(process.verdict.first_id, "arena");
    assert_true(says("the mapping was recorded"));
    site->touched_bytes = -1;
    decide();
    assert_string_equal(process.verdict.first_id, "");
}

/* By its own word they are in use: it is no free memory, and no mapping. */
static void blocks_that_no_hook_saw_are_told_as_such(void **state)
{
    struct seep_balance_outside *outside = grow_outside();

    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    outside->overhead_growth_bytes = 5 * MIB;
    outside->unseen_growth_bytes = .4 * outside->growth_bytes;
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    assert_false(process.verdict.unseen);
    assert_true(says("neither live blocks"));
    outside->unseen_growth_bytes = .9 * outside->growth_bytes;
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    assert_true(process.verdict.unseen);
    assert_true(says("RTLD_DEEPBIND"));
    process.input.lost_share = .5; /* then they may be those that were lost */
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    assert_false(process.verdict.unseen);
}

/* As seen from outside, block by block: that is known better. */
static void what_fills_a_block_is_at_whoever_allocated_it(void **state)
{
    struct seep_balance_outside *outside = grow_outside();
    struct seep_report_site *site = add(SEEP_CLASS_STEP, 0);
    struct seep_verdict_fill *fill = &process.input.fill;

    (void)state;
    strcpy(site->id, "buffer");
    site->space = SEEP_SPACE_HEAP;
    *fill = (struct seep_verdict_fill){
        .site = site,
        .bytes_per_s = .9 * outside->bytes_per_s.estimate,
        .used_bytes = 20 * MIB,
        .of_bytes = 64 * MIB,
    };
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    assert_string_equal(process.verdict.first_id, "buffer");
    assert_true(says("it was allocated before"));
    assert_true(process.verdict.fills_used_bytes == 20 * MIB);
    assert_true(process.verdict.fills_of_bytes == 64 * MIB);
    assert_true(process.now.left_bytes == 44 * MIB);
    assert_true(process.now.ends);
    fill->bytes_per_s = .4 * outside->bytes_per_s.estimate;
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    assert_string_equal(process.verdict.first_id, "");
    assert_true(process.verdict.fills_of_bytes == 0);
    assert_false(process.now.ends);
}

static void no_forecast_is_faster_than_private_memory(void **state)
{
    (void)state;
    add(SEEP_CLASS_LEAK, 9000)->growth_now_bytes_per_s = 9000;
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
    assert_true(fabs(process.now.pace - 1) < 1e-9);
    process.input.private_drift.fastest_bytes_per_s = 3000;
    decide();
    assert_true(process.now.bytes_per_s.estimate == 3000);
    assert_true(process.now.bytes_per_s.high == 3000);
    assert_true(process.now.bytes_per_s.low < 3000);
    assert_true(process.now.by_private);
    process.input.private_drift.bytes_per_s.low = 5000; /* of another part */
    decide();
    assert_true(process.now.bytes_per_s.low <= 3000);
    process.input.private_drift.bytes_per_s.low = 0;
    assert_true(fabs(process.now.pace - 1. / 3) < 1e-9);
    process.input.shared_drift.fastest_bytes_per_s = 1e6; /* shared memory */
    decide();
    assert_true(process.now.bytes_per_s.estimate == 9000);
    process.input.shared_drift.fastest_bytes_per_s = 0;
    /* what others write to it grows too, and is not private */
    process.input.elsewhere_bytes_per_s = 5500;
    decide();
    assert_true(process.now.bytes_per_s.estimate == 8500);
    assert_true(process.now.bytes_per_s.low >= 5500);
    assert_false(process.now.by_private);
    process.input.elsewhere_bytes_per_s = 0;
    process.input.private_drift.fastest_bytes_per_s = -1;
    decide();
    assert_int_equal(process.now.basis, SEEP_FORECAST_UNTOLD);
}

static void growth_outside_must_be_sure_material_and_going_on(void **state)
{
    struct seep_balance_outside *outside = grow_outside();
    struct seep_balance_outside whole = *outside;

    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    outside->p = .002;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    *outside = whole;
    outside->going_on = false;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    *outside = whole;
    outside->bytes_per_s.low = -1;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    *outside = whole;
    outside->known = false;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    *outside = whole;
    outside->growth_bytes = 1.9 * MIB; /* below 2 % of what is resident */
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    *outside = whole;
    outside->error_bytes = 29 * MIB; /* sampling alone could have made it */
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    *outside = whole;
    outside->tracked_bytes = 61 * MIB; /* their headers and rounding */
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
}

/* A list that is reallocated is young as a whole, a ring has only young. */
static void who_grew_is_told_by_its_live_bytes(void **state)
{
    struct seep_report_site *ring = add(SEEP_CLASS_TURNOVER, 0);
    struct seep_report_site *list = add(SEEP_CLASS_SAWTOOTH, 0);

    (void)state;
    snprintf(ring->id, sizeof(ring->id), "ring");
    snprintf(list->id, sizeof(list->id), "list");
    ring->live_bytes = list->live_bytes = (uint64_t)(40 * MIB);
    ring->window_bytes[8] = 40 * MIB;
    process.input.private_drift = rising(30 * MIB, .2);
    process.works[0].has_late_rise = true;
    process.works[1].has_late_rise = true;
    process.works[1].late_rise_bytes = 28 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_string_equal(process.verdict.first_id, "list");
    process.works[1].late_rise_bytes = 2 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
}

static void what_only_takes_the_place_of_blocks_does_not_grow(void **state)
{
    struct seep_balance_outside *outside = grow_outside();

    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    outside->overhead_growth_bytes = 25 * MIB;
    process.input.private_drift = rising(30 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_RETENTION);
    assert_true(process.now.bytes_per_s.estimate > 0);
    process.input.private_drift = still();
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    assert_false(process.now.bytes_per_s.estimate > 0);
    process.input.private_drift = rising(30 * MIB, .2);
    process.input.private_drift.grows = false;
    process.input.private_drift.bytes_per_s.low = -1;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    assert_false(process.verdict.has_growth);
}

static void growth_outside_beats_a_smaller_suspect_and_no_larger(void **state)
{
    (void)state;
    grow_outside();
    add(SEEP_CLASS_SUSPECT, 40000);
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    add(SEEP_CLASS_SUSPECT, 9000);
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
}

static void what_was_kept_is_told_also_when_it_stopped(void **state)
{
    struct seep_balance_outside *outside = &process.input.outside;

    (void)state;
    add(SEEP_CLASS_SAWTOOTH, 0);
    outside->has_overhead = true;
    outside->rise_bytes = 40 * MIB;
    outside->overhead_bytes = 30 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_RETENTION);
    assert_true(says("no longer grows"));
    assert_false(process.verdict.has_growth);
    outside->free = SEEP_BALANCE_FREE_SCATTERED;
    assert_int_equal(decide(), SEEP_VERDICT_FRAGMENTATION);
    assert_true(says("no longer grows"));
    assert_true(process.now.bytes_per_s.estimate == 0);
    outside->tracked_rise_bytes = 25 * MIB; /* blocks need it at times */
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    outside->tracked_rise_bytes = 0;
    outside->overhead_bytes = 15 * MIB; /* the lesser part */
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    outside->overhead_bytes = 30 * MIB;
    outside->rise_bytes = 4.9 * MIB; /* not worth a word */
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
}

/* 1 MiB over the run is the floor here: 1048.6 bytes a second. */
static void only_material_growth_makes_a_suspect(void **state)
{
    struct seep_report_site *site = add(SEEP_CLASS_SUSPECT, 2000);

    (void)state;
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_true(says("suspect"));
    assert_int_equal(process.now.basis, SEEP_FORECAST_SUSPECTED);
    site->growth_bytes_per_s.low = -1;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    assert_true(says("too small for a verdict"));
    site->growth_bytes_per_s = (struct seep_interval){1000, 900, 1100};
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT); /* but it grows */
    assert_true(process.verdict.too_little);
    site->growth_bytes_per_s = (struct seep_interval){1100, 900, 1300};
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    site->class = SEEP_CLASS_AGING;
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    /* 2 MiB is the floor */
    process.input.live_bytes[SEEP_PLACE_HOST] = (uint64_t)(1000 * MIB);
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(process.verdict.too_little);
    assert_true(process.verdict.floor_bytes == .002 * 1000 * MIB);
}

/* 10 MiB over the run are a tenth of what lives. */
static void a_large_suspect_is_one_however_wide_its_interval(void **state)
{
    struct seep_report_site *site = add(SEEP_CLASS_SUSPECT, 11000);

    (void)state;
    site->growth_bytes_per_s.low = -1;
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    site->growth_bytes_per_s.estimate = 10000;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    site->growth_bytes_per_s.estimate = 11000;
    site->class = SEEP_CLASS_AGING;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
}

/* Sites are in order of their lower ends; the figures begin elsewhere. */
static void the_first_that_counts_is_named(void **state)
{
    (void)state;
    strcpy(add(SEEP_CLASS_SUSPECT, 100)->id, "aaaa");
    strcpy(add(SEEP_CLASS_SUSPECT, 2000)->id, "bbbb");
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_string_equal(process.verdict.first_id, "bbbb");
    assert_true(process.verdict.first_share == 1);
}

static void a_cache_that_fills_is_bounded_and_filling(void **state)
{
    (void)state;
    add(SEEP_CLASS_WARMING, 3000);
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    assert_true(process.verdict.filling);
    assert_true(process.verdict.growth_bytes_per_s.estimate == 3000);
    assert_int_equal(process.now.basis, SEEP_FORECAST_UNTOLD);
}

static void a_small_cache_that_fills_leaves_it_steady(void **state)
{
    (void)state;
    add(SEEP_CLASS_WARMING, 300);
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
}

static void a_cache_with_a_known_bound_ends(void **state)
{
    struct seep_report_site *site = add(SEEP_CLASS_WARMING, 3000);

    (void)state;
    site->known_bound_bytes = (uint64_t)(2 * MIB);
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    assert_int_equal(process.verdict.known_count, 1);
    assert_int_equal(process.now.basis, SEEP_FORECAST_GROWS);
    add(SEEP_CLASS_WARMING, 3000);
    decide();
    assert_int_equal(process.now.basis, SEEP_FORECAST_UNTOLD);
}

static void what_filled_and_stopped_is_bounded(void **state)
{
    struct seep_report_site *site = add(SEEP_CLASS_PLATEAU, 0);

    (void)state;
    site->window_bytes[0] = 50 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY); /* all at the start */
    site->window_bytes[3] = 2 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    assert_false(process.verdict.filling);
    assert_true(says("stopped"));
    site->class = SEEP_CLASS_STEP;
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
}

static void
what_is_untold_of_a_process_that_does_not_grow_is_no_riddle(void **state)
{
    (void)state;
    add(SEEP_CLASS_INSUFFICIENT, 0)->live_bytes = (uint64_t)(51 * MIB);
    process.input.private_drift.most_bytes_per_s = .9 * MIB / RUN_S;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    process.input.private_drift.most_bytes_per_s = 1.1 * MIB / RUN_S;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
}

static void a_site_that_hardly_slows_is_no_cache_yet(void **state)
{
    (void)state;
    add(SEEP_CLASS_WARMING, 30000);
    process.works[0].growth.zs = -1;
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    process.works[0].growth.zs = .5;
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    process.works[0].site.known_bound_bytes = (uint64_t)(50 * MIB);
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
}

static void a_process_that_grows_at_no_call_site_is_not_steady(void **state)
{
    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    assert_true(process.verdict.reassures);
    process.input.private_drift = rising(1.3 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(says("private memory grows"));
    assert_false(process.verdict.reassures);
    assert_true(process.verdict.need_s >= RUN_S);
    /* Sites below the floor do not excuse a process above it. */
    add(SEEP_CLASS_MINOR, 900);
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    process.works[1].site.class = SEEP_CLASS_LEAK; /* the user's word does */
    process.works[1].site.suppressed_by = "leak:known";
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
}

/* A table was full: a leak may be in what fills, and in what is steady. */
static void
what_has_no_call_site_must_not_grow_for_a_quiet_verdict(void **state)
{
    (void)state;
    add(SEEP_CLASS_WARMING, 5000);
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    process.input.uncharged_growth_bytes = 2 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(says("without a call site"));
    assert_int_equal(process.now.basis, SEEP_FORECAST_UNTOLD);
    process.input.uncharged_growth_bytes = .5 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    process.input.uncharged_growth_bytes = 2 * MIB;
    add(SEEP_CLASS_LEAK, 5000);
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
}

static void mostly_untold_is_no_verdict(void **state)
{
    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    add(SEEP_CLASS_INSUFFICIENT, 0)->live_bytes = (uint64_t)(51 * MIB);
    process.input.private_drift.known = false;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    process.works[1].site.live_bytes = (uint64_t)(49 * MIB);
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
}

static void what_the_floor_hid_is_counted(void **state)
{
    (void)state;
    add(SEEP_CLASS_MINOR, 500);
    add(SEEP_CLASS_MINOR, 200);
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    assert_int_equal(process.verdict.minor_count, 2);
    assert_true(process.verdict.minor_bytes_per_s == 700);
}
/* oneDNN's cache with all of its 1,024 primitives, each for another. */
static void a_cache_that_is_full_and_evicts_is_bounded(void **state)
{
    struct seep_report_site *site = add(SEEP_CLASS_TURNOVER, MIB / 10);

    (void)state;
    site->live_bytes = (uint64_t)(90 * MIB);
    for (int k = 0; k < SEEP_GROWTH_WINDOWS; k++) {
        site->window_bytes[k] = 9 * MIB;
    }
    strcpy(site->id, "cache");
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(says("kept more than it freed"));
    /* as the judge of sites leaves it */
    site->has_growth = false;
    process.works[0].growth.flat = true;
    process.works[0].growth.rate = (struct seep_interval){MIB, MIB, 2 * MIB};
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    assert_string_equal(process.verdict.first_id, "cache");
    /* what churns has kept nothing for certain */
    process.works[0].growth.rate.low = -MIB;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
}

/* The same with blocks that are given back, of which no rate is known. */
static void a_cache_that_stands_above_its_start_is_bounded(void **state)
{
    struct seep_report_site *site = add(SEEP_CLASS_TURNOVER, 0);

    (void)state;
    site->live_bytes = (uint64_t)(90 * MIB);
    strcpy(site->id, "cache");
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    process.works[0].growth.stood_bytes = 60 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    assert_string_equal(process.verdict.first_id, "cache");
    assert_false(process.verdict.has_growth);
    /* what a request takes is no cache */
    process.works[0].growth.stood_bytes = 9 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
}

/* Blocks come and go, and ever more memory lies free between them. */
static void most_of_what_grows_may_be_free_memory(void **state)
{
    (void)state;
    add(SEEP_CLASS_TURNOVER, 0);
    process.input.private_drift = rising(30 * MIB, .2);
    process.input.free_growth_bytes = 14 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    process.input.free_growth_bytes = 16 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_RETENTION);
    assert_true(process.verdict.has_growth);
    assert_false(process.verdict.reassures);
    assert_true(process.now.bytes_per_s.estimate > 0);
    assert_int_equal(process.now.basis, SEEP_FORECAST_GROWS);
    /* what has slowed need not go on */
    process.input.private_drift.slows = true;
    assert_int_equal(decide(), SEEP_VERDICT_RETENTION);
    assert_int_equal(process.now.basis, SEEP_FORECAST_SUSPECTED);
    process.input.private_drift.slows = false;
    process.input.lost_share = .5; /* or it is live, and was not recorded */
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    process.input.lost_share = 0;
    /* nor where a call site has a part of it */
    process.works[0].has_late_rise = true;
    process.works[0].late_rise_bytes = 10 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup(test, begin)
    const struct CMUnitTest tests[] = {
        WITH(nothing_recorded_is_no_verdict),
        WITH(a_run_too_short_is_no_verdict_whatever_its_sites_say),
        WITH(leaks_add_up_and_their_errors_by_squares),
        WITH(a_leak_that_is_not_sure_takes_none_back_that_is),
        WITH(leaks_that_are_sure_together_are_leaks),
        WITH(what_is_not_proved_is_suspected_with_all_that_is),
        WITH(a_floor_is_that_of_the_memory_that_grows),
        WITH(what_a_device_holds_says_nothing_of_the_host),
        WITH(a_cache_in_pieces_comes_after_what_is_worse),
        WITH(a_leak_comes_before_what_grows_outside),
        WITH(a_suppressed_leak_is_counted_and_makes_no_leak),
        WITH(a_site_that_holds_no_memory_makes_no_leak),
        WITH(growth_that_the_allocator_keeps_in_pages_is_retention),
        WITH(growth_between_blocks_is_fragmentation),
        WITH(growth_that_is_neither_is_unexplained),
        WITH(what_fills_a_mapping_is_at_whoever_mapped_it),
        WITH(what_fills_a_block_is_at_whoever_allocated_it),
        WITH(no_forecast_is_faster_than_private_memory),
        WITH(blocks_that_no_hook_saw_are_told_as_such),
        WITH(growth_outside_must_be_sure_material_and_going_on),
        WITH(who_grew_is_told_by_its_live_bytes),
        WITH(what_only_takes_the_place_of_blocks_does_not_grow),
        WITH(growth_outside_beats_a_smaller_suspect_and_no_larger),
        WITH(what_was_kept_is_told_also_when_it_stopped),
        WITH(only_material_growth_makes_a_suspect),
        WITH(a_large_suspect_is_one_however_wide_its_interval),
        WITH(the_first_that_counts_is_named),
        WITH(a_small_cache_that_fills_leaves_it_steady),
        WITH(a_cache_that_fills_is_bounded_and_filling),
        WITH(a_cache_with_a_known_bound_ends),
        WITH(what_filled_and_stopped_is_bounded),
        WITH(a_cache_that_is_full_and_evicts_is_bounded),
        WITH(a_cache_that_stands_above_its_start_is_bounded),
        WITH(most_of_what_grows_may_be_free_memory),
        WITH(what_has_no_call_site_must_not_grow_for_a_quiet_verdict),
        WITH(mostly_untold_is_no_verdict),
        WITH(a_process_that_grows_at_no_call_site_is_not_steady),
        WITH(a_site_that_hardly_slows_is_no_cache_yet),
        WITH(what_is_untold_of_a_process_that_does_not_grow_is_no_riddle),
        WITH(what_the_floor_hid_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
