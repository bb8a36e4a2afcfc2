/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Series, counters and clocks that no program makes. A recording that is a
 * leak otherwise has one kind of figure spoilt everywhere, by every value that
 * has bitten someone; the report must open, give each site a class and a
 * reason, and hold no number that is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/layout.h"
#include "reader/report/report.h"
#include "recording_builder.h"

#define RUN_S 64
#define SECONDS(s) ((uint32_t)((s)*BUILDER_TICKS_PER_S))
#define HOUR_TICKS (3600 * BUILDER_TICKS_PER_S)
#define STEPS 1000U

struct fixture {
    char path[BUILDER_PATH_BYTES];
    struct recording_builder builder;
    struct seep_report *report;
    uint32_t sites[3]; /* leaks, churns, evicts */
};

static uint32_t site_at(struct fixture *f, uint32_t module, uint64_t offset)
{
    uint64_t frame = builder_frame(module, offset);

    return builder_site(&f->builder, builder_stack(&f->builder, &frame, 1),
                        SEEP_SPACE_HEAP);
}

/* @gap ticks pass in the middle of the run, in which nothing happens. */
static void fill(struct fixture *f, uint32_t gap)
{
    uint32_t module = builder_module(&f->builder, "/opt/app/worker", 0xab);
    uint64_t next = 0x10000;

    for (uint32_t i = 0; i < 3; i++) {
        f->sites[i] = site_at(f, module, 0x1000 + i);
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t tick =
            step * SECONDS(RUN_S) / STEPS + (step >= STEPS / 2 ? gap : 0);

        builder_alloc(&f->builder, next, 16384, f->sites[0], tick);
        builder_alloc(&f->builder, next + 0x4000, 8000, f->sites[1], tick);
        builder_free(&f->builder, next + 0x4000, tick + 1);
        builder_alloc(&f->builder, next + 0x8000, 4096, f->sites[2], tick);
        if (step >= STEPS / 3) {
            uint64_t old = next - STEPS / 3 * UINT64_C(0x10000);
            builder_free(&f->builder, old + 0x8000, tick);
        }
        if (step % 10 == 0) {
            builder_moment(&f->builder, step / 10, tick + 1,
                           (UINT64_C(100) << 20) + step * UINT64_C(32768),
                           UINT64_C(10) * (step + 1));
        }
        next += 0x10000;
    }
    builder_fold(&f->builder);
    builder_exit(&f->builder, SECONDS(RUN_S) + gap);
}

static void rebuild(struct fixture *f, uint32_t gap)
{
    seep_report_close(f->report);
    f->report = NULL;
    if (f->builder.bytes != NULL) {
        builder_fini(&f->builder);
    }
    builder_init(&f->builder, SEEP_LAYOUT_LEAST_BYTES, true);
    fill(f, gap);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    builder_temporary(f->path);
    rebuild(f, 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    seep_report_close(f->report);
    builder_fini(&f->builder);
    unlink(f->path);
    free(f);
    return 0;
}

static void assert_interval(const struct seep_interval *interval)
{
    assert_true(isfinite(interval->estimate));
    assert_true(isfinite(interval->low));
    assert_true(isfinite(interval->high));
    assert_true(interval->low <= interval->estimate);
    assert_true(interval->estimate <= interval->high);
}

static void assert_site(const struct seep_report_site *site)
{
    assert_in_range(site->class, 0, SEEP_CLASS_COUNT - 1);
    assert_non_null(site->class_reason);
    assert_true(strlen(site->class_reason) > 0);
    assert_true(isfinite(site->live_bytes_error));
    assert_true(isfinite(site->live_count));
    assert_true(isfinite(site->first_s) && isfinite(site->last_s));
    assert_true(isfinite(site->growth_now_bytes_per_s));
    assert_true(isfinite(site->kept.since_s) && isfinite(site->kept.share));
    assert_true(isfinite(site->kept.oldest_death_s));
    assert_true(site->kept.died_share >= 0 && site->kept.died_share <= 1);
    if (site->has_growth) {
        assert_interval(&site->growth_bytes_per_s);
        assert_true(site->confidence >= 0 && site->confidence < 1);
    }
    if (site->has_growth_per_unit) {
        assert_interval(&site->growth_bytes_per_unit);
    }
    for (size_t i = 0; i < SEEP_GROWTH_WINDOWS; i++) {
        assert_true(isfinite(site->window_bytes[i]));
    }
}

static void assert_extent(const struct seep_report_extent *extent)
{
    assert_true(isfinite(extent->first_bytes));
    assert_true(isfinite(extent->last_bytes));
    assert_true(isfinite(extent->slope_bytes_per_s));
    assert_true(isfinite(extent->slope_error));
}

static const struct seep_report *assert_sound(struct fixture *f)
{
    static const struct seep_report_options options = {.symbols = false};
    const struct seep_report_verdict *verdict;

    builder_write(&f->builder, f->path);
    assert_int_equal(seep_report_open(f->path, &options, NULL, &f->report), 0);
    for (size_t i = 0; i < f->report->site_count; i++) {
        assert_site(&f->report->sites[i]);
    }
    verdict = &f->report->verdict;
    assert_non_null(verdict->reason);
    assert_true(isfinite(f->report->duration_s));
    assert_true(isfinite(f->report->units_per_s));
    if (verdict->has_growth) {
        assert_interval(&verdict->growth_bytes_per_s);
    }
    assert_true(!isnan(verdict->forecast.seconds.estimate));
    assert_true(!isnan(verdict->forecast.seconds.low));
    assert_true(!isnan(verdict->forecast.seconds.high));
    assert_extent(&f->report->memory.rss);
    assert_extent(&f->report->memory.anonymous);
    assert_extent(&f->report->memory.tracked);
    assert_extent(&f->report->memory.unexplained);
    return f->report;
}

static enum seep_class class_of(struct fixture *f, uint64_t allocated_each)
{
    const struct seep_report *report = f->report;

    for (size_t i = 0; i < report->site_count; i++) {
        if (report->sites[i].largest_bytes == allocated_each) {
            return report->sites[i].class;
        }
    }
    return SEEP_CLASS_COUNT;
}

static void the_recording_is_a_leak_when_nothing_is_spoilt(void **state)
{
    struct fixture *f = *state;

    assert_sound(f);
    assert_int_equal(class_of(f, 16384), SEEP_CLASS_LEAK);
    assert_int_not_equal(class_of(f, 8000), SEEP_CLASS_LEAK);
    assert_int_not_equal(class_of(f, 4096), SEEP_CLASS_LEAK);
}

static const uint64_t values[] = {
    0,
    1,
    UINT64_C(1) << 31,
    UINT32_MAX,
    UINT64_C(1) << 48,
    INT64_MAX,
    UINT64_C(1) << 63,
    UINT64_MAX - 1,
    UINT64_MAX,
};
#define VALUES (sizeof(values) / sizeof(values[0]))

#define SET(object, value) \
    atomic_store_explicit(&(object), (value), memory_order_relaxed)

/* Field @field of every bucket of every series, or of those in the middle. */
static void spoil_buckets(struct fixture *f, int field, uint64_t value,
                          uint32_t first, uint32_t step)
{
    const struct seep_view *view = &f->builder.view;

    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t k = first; k < SEEP_BUCKET_COUNT; k += step) {
            struct seep_rec_bucket *bucket = &view->series[i].buckets[k];
            _Atomic uint64_t *const fields[] = {
                &bucket->allocated_bytes,  &bucket->freed_bytes,
                &bucket->low_bytes,        &bucket->born_count_q16,
                &bucket->born_freed_bytes, &bucket->born_freed_count_q16,
                &bucket->died_bytes,       &bucket->died_count_q16,
            };

            SET(*fields[field], value);
        }
    }
}

static void a_bucket_may_hold_anything(void **state)
{
    struct fixture *f = *state;

    for (int field = 0; field < 8; field++) {
        for (size_t i = 0; i < VALUES; i++) {
            rebuild(f, 0);
            spoil_buckets(f, field, values[i], 0, 1);
            assert_sound(f);
            rebuild(f, 0);
            spoil_buckets(f, field, values[i], 60, 128);
            assert_sound(f);
        }
    }
}

/* Sums that pass 2^63 are of a damaged file: no leak may come of them. */
static void counters_that_overflow_are_no_leak(void **state)
{
    struct fixture *f = *state;

    spoil_buckets(f, 0, UINT64_C(1) << 63, 0, 1);
    assert_sound(f);
    assert_int_not_equal(class_of(f, 8000), SEEP_CLASS_LEAK);
    rebuild(f, 0);
    spoil_buckets(f, 1, UINT64_C(1) << 63, 1, 2); /* live is negative */
    assert_sound(f);
    assert_int_not_equal(class_of(f, 8000), SEEP_CLASS_LEAK);
}

static void a_series_of_zeros_is_no_leak(void **state)
{
    struct fixture *f = *state;

    for (int field = 0; field < 8; field++) {
        spoil_buckets(f, field, 0, 0, 1);
    }
    assert_sound(f);
    assert_int_equal(class_of(f, 16384), SEEP_CLASS_INSUFFICIENT);
}

static void spoil_series(struct fixture *f, int field, uint64_t value)
{
    for (uint32_t i = 0; i < 3; i++) {
        struct seep_rec_series *series = &f->builder.view.series[i];

        switch (field) {
        case 0:
            SET(series->width_log2, (uint32_t)value);
            break;
        case 1:
            SET(series->last, (uint32_t)value);
            break;
        case 2:
            SET(series->first_tick, (uint32_t)value);
            break;
        default:
            SET(series->base_bytes, value);
            break;
        }
    }
}

static void a_series_may_say_anything_of_itself(void **state)
{
    struct fixture *f = *state;

    for (int field = 0; field < 4; field++) {
        for (size_t i = 0; i < VALUES; i++) {
            rebuild(f, 0);
            spoil_series(f, field, values[i]);
            assert_sound(f);
        }
    }
}

static void spoil_site(struct seep_rec_site *site, int field, uint64_t value)
{
    _Atomic uint64_t *const fields[] = {
        &site->allocated_bytes, &site->freed_bytes, &site->allocated_count_q16,
        &site->freed_count_q16, &site->peak_bytes,  &site->event_count,
    };

    if (field < 6) {
        SET(*fields[field], value);
    } else {
        SET(*(field == 6 ? &site->first_tick : &site->last_tick),
            (uint32_t)value);
    }
}

static void a_site_may_say_anything_of_itself(void **state)
{
    struct fixture *f = *state;

    for (int field = 0; field < 8; field++) {
        for (size_t i = 0; i < VALUES; i++) {
            rebuild(f, 0);
            for (uint32_t k = 0; k < 3; k++) {
                spoil_site(&f->builder.view.sites[f->sites[k]], field,
                           values[i]);
            }
            assert_sound(f);
        }
    }
}

/* The moments of the process, and with them the clock of work. */
static void spoil_moment(struct seep_rec_moment *moment, int field,
                         uint64_t value)
{
    _Atomic uint64_t *const fields[] = {
        &moment->tick,           &moment->rss_bytes,
        &moment->shared_bytes,   &moment->cgroup_bytes,
        &moment->progress_units, &moment->allocator_allocated_bytes,
        &moment->swap_bytes,
    };

    SET(*fields[field], value);
}

static void a_moment_may_hold_anything(void **state)
{
    struct fixture *f = *state;

    for (int field = 0; field < 7; field++) {
        for (size_t i = 0; i < VALUES; i++) {
            rebuild(f, 0);
            for (uint32_t k = 0; k < SEEP_BUCKET_COUNT; k++) {
                spoil_moment(&f->builder.view.timeline[k], field, values[i]);
            }
            assert_sound(f);
            rebuild(f, 0);
            for (uint32_t k = 0; k < SEEP_BUCKET_COUNT; k += 2) {
                spoil_moment(&f->builder.view.timeline[k], field, values[i]);
            }
            assert_sound(f);
        }
    }
}

/* What all shards say was allocated is the clock where no units were told. */
static void bytes_that_are_work_may_be_anything(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < VALUES; i++) {
        const struct seep_view *view = &f->builder.view;

        rebuild(f, 0);
        SET(view->header->progress_units, 0);
        for (uint32_t k = 0; k < view->shard_count; k++) {
            for (uint32_t j = 0; j < SEEP_BUCKET_COUNT; j++) {
                SET(view->shards[k].flow[j].allocated_bytes, values[i]);
            }
        }
        assert_sound(f);
    }
}

static void units_may_be_anything(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < VALUES; i++) {
        rebuild(f, 0);
        SET(f->builder.view.header->progress_units, values[i]);
        assert_sound(f);
    }
}

static void a_clock_that_stands_still_is_no_leak(void **state)
{
    struct fixture *f = *state;
    struct seep_view *view = &f->builder.view;

    for (uint32_t i = 0; i < 3; i++) {
        spoil_site(&view->sites[f->sites[i]], 6, 0);
        spoil_site(&view->sites[f->sites[i]], 7, 0);
    }
    memset(view->timeline, 0, SEEP_BUCKET_COUNT * sizeof(*view->timeline));
    SET(view->header->exit_tick, 0);
    assert_sound(f);
    assert_int_equal(class_of(f, 16384), SEEP_CLASS_INSUFFICIENT);
}

static void spoil_live(struct fixture *f, int field, uint64_t value)
{
    const struct seep_view *view = &f->builder.view;

    for (uint32_t i = 0; i < view->live_capacity; i++) {
        if (atomic_load_explicit(&view->live[i].address,
                                 memory_order_relaxed) == 0) {
            continue;
        }
        if (field == 0) {
            SET(view->live[i].birth_tick, (uint32_t)value);
        } else if (field == 1) {
            SET(view->live[i].size_level, value);
        } else {
            SET(view->live[i].address, value);
        }
    }
}

static void a_survivor_may_be_anything(void **state)
{
    struct fixture *f = *state;

    for (int field = 0; field < 3; field++) {
        for (size_t i = 0; i < VALUES; i++) {
            rebuild(f, 0);
            spoil_live(f, field, values[i]);
            assert_sound(f);
        }
    }
}

static void a_series_without_survivors_is_no_leak(void **state)
{
    struct fixture *f = *state;

    spoil_live(f, 2, 0);
    assert_sound(f);
    assert_int_equal(class_of(f, 16384), SEEP_CLASS_INSUFFICIENT);
}

static void survivors_without_a_series_are_too_little(void **state)
{
    struct fixture *f = *state;

    for (uint32_t i = 0; i < 3; i++) {
        SET(f->builder.view.sites[f->sites[i]].series, 0);
    }
    assert_sound(f);
    assert_int_equal(class_of(f, 16384), SEEP_CLASS_INSUFFICIENT);
}

/* A laptop that slept, a container that was frozen: hours without an event. */
static void a_gap_of_hours_is_no_damage(void **state)
{
    struct fixture *f = *state;

    rebuild(f, 10 * HOUR_TICKS);
    assert_sound(f);
    assert_int_not_equal(class_of(f, 8000), SEEP_CLASS_LEAK);
    rebuild(f, UINT32_MAX - SECONDS(RUN_S) - 10); /* the end of all ticks */
    assert_sound(f);
    assert_int_not_equal(class_of(f, 8000), SEEP_CLASS_LEAK);
}

static void the_end_may_be_said_to_be_anywhere(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < VALUES; i++) {
        rebuild(f, 0);
        SET(f->builder.view.header->exit_tick, (uint32_t)values[i]);
        assert_sound(f);
    }
}

#define HOSTILE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE(the_recording_is_a_leak_when_nothing_is_spoilt),
        HOSTILE(a_bucket_may_hold_anything),
        HOSTILE(counters_that_overflow_are_no_leak),
        HOSTILE(a_series_of_zeros_is_no_leak),
        HOSTILE(a_series_may_say_anything_of_itself),
        HOSTILE(a_site_may_say_anything_of_itself),
        HOSTILE(a_moment_may_hold_anything),
        HOSTILE(bytes_that_are_work_may_be_anything),
        HOSTILE(units_may_be_anything),
        HOSTILE(a_clock_that_stands_still_is_no_leak),
        HOSTILE(a_survivor_may_be_anything),
        HOSTILE(a_series_without_survivors_is_no_leak),
        HOSTILE(survivors_without_a_series_are_too_little),
        HOSTILE(a_gap_of_hours_is_no_damage),
        HOSTILE(the_end_may_be_said_to_be_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
