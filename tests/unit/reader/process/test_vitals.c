/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Vitals of recordings made by hand, against what the report says of the same:
 * two ways to the same figures.
 */
#include "seep_test.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/thread.h"
#include "device_run.h"
#include "format/layout.h"
#include "reader/process/vitals.h"
#include "reader/recording/series.h"
#include "recording_damage.h"

#define TICKS(seconds) ((uint32_t)((seconds)*953.674))
#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define RUN_S 100

struct fixture {
    struct recording_builder builder;
    char path[BUILDER_PATH_BYTES];
    struct seep_vitals vitals;
    struct seep_report *report;
};

static int begin(struct fixture *f, bool exact)
{
    memset(f, 0, sizeof(*f));
    builder_init(&f->builder, SEEP_LAYOUT_LEAST_BYTES, exact);
    builder_temporary(f->path);
    return 0;
}

static void end(struct fixture *f)
{
    seep_report_close(f->report);
    builder_fini(&f->builder);
    unlink(f->path);
}

static void look(struct fixture *f)
{
    builder_write(&f->builder, f->path);
    assert_int_equal(seep_vitals_open(f->path, false, NULL, &f->vitals), 0);
}

static void report(struct fixture *f)
{
    assert_int_equal(seep_report_open(f->path, NULL, NULL, &f->report), 0);
}

static uint32_t site(struct fixture *f, uint64_t offset, enum seep_space space)
{
    uint64_t frame = builder_frame(0, offset);

    return builder_site(&f->builder, builder_stack(&f->builder, &frame, 1),
                        space);
}

/* What lives in each space, as the report has it: to the byte. */
static void assert_same_spaces(struct fixture *f)
{
    uint64_t live[SEEP_SPACE_COUNT] = {0};

    for (size_t i = 0; i < f->report->space_count; i++) {
        live[f->report->spaces[i].space] = f->report->spaces[i].live_bytes;
    }
    for (unsigned i = 0; i < SEEP_SPACE_COUNT; i++) {
        assert_int_equal(f->vitals.live_bytes[i], live[i]);
    }
}

static void the_same_lives_as_in_the_report(void **state)
{
    struct fixture f;

    (void)state;
    memset(&f, 0, sizeof(f));
    builder_init_sample(&f.builder);
    builder_temporary(f.path);
    look(&f);
    report(&f);

    assert_same_spaces(&f);
    assert_int_equal(f.vitals.pid, 4242);
    assert_string_equal(f.vitals.executable, "/usr/bin/worker");
    assert_int_equal(f.vitals.state, SEEP_STATE_EXITED);
    assert_true(fabs(f.vitals.duration_s - f.report->duration_s) < 0.01);
    end(&f);
}

/* Nothing is folded but what the rings could not hold. */
static void what_is_pending_counts(void **state)
{
    struct fixture f;
    uint32_t heap;
    uint32_t mapped;
    uint64_t seed = 7;

    (void)state;
    begin(&f, true);
    heap = site(&f, 0x10, SEEP_SPACE_HEAP);
    mapped = site(&f, 0x20, SEEP_SPACE_MAPPED);
    for (uint32_t i = 1; i < 6000; i++) {
        uint64_t address = 0x100000 + (uint64_t)(i % 1500) * 0x1230;
        uint32_t tick = i * 10;

        seed = seep_hash_mix(seed + i);
        if (i % 1500 != i) {
            builder_push(&f.builder,
                         seed % 5 == 0 ? SEEP_EVENT_REALLOC_OUT
                                       : SEEP_EVENT_FREE,
                         address, 0, 0, tick);
            if (seed % 15 == 0) {
                builder_push(&f.builder, SEEP_EVENT_RESTORE, address, 0, 0,
                             tick);
                continue;
            }
        }
        builder_alloc(&f.builder, address, 100 + seed % 5000, heap, tick);
        if (i % 20 == 0) {
            uint64_t range = (UINT64_C(1) << 40) + i * (uint64_t)65536;

            builder_push(&f.builder, SEEP_EVENT_MAP, range, 65536, mapped,
                         tick);
            builder_push(&f.builder, SEEP_EVENT_UNMAP, range + 4096 * (i % 3),
                         8192, 0, tick);
        }
    }
    look(&f);
    report(&f);

    assert_true(f.report->pending_events > 1000);
    assert_same_spaces(&f);
    end(&f);
}

/* @bytes each tenth of a second, kept; and four times that, given back. */
static void leak(struct fixture *f, int seconds, uint64_t bytes)
{
    uint32_t keeps = site(f, 0x10, SEEP_SPACE_HEAP);
    uint32_t churns = site(f, 0x20, SEEP_SPACE_HEAP);

    for (uint32_t i = 0; i < 10 * (uint32_t)seconds; i++) {
        uint64_t address = 0x10000 + i * UINT64_C(0x10000);
        uint32_t tick = TICKS(i / 10.);

        builder_alloc(&f->builder, address, bytes, keeps, tick);
        builder_alloc(&f->builder, address + 0x8000, 4 * bytes, churns, tick);
        builder_free(&f->builder, address + 0x8000, tick + 3);
        if (i % 10 == 0) {
            builder_moment(&f->builder, i / 10, tick + 1, 100 * MIB + i * bytes,
                           i);
        }
    }
    builder_exit(&f->builder, TICKS(seconds));
}

static void growth_is_that_of_the_report(void **state)
{
    struct fixture f;
    const struct seep_interval *rate;
    const struct seep_interval *verdict;

    (void)state;
    begin(&f, true);
    leak(&f, RUN_S, 8000);
    look(&f);
    report(&f);

    rate = &f.vitals.host_growth.bytes_per_s;
    verdict = &f.report->verdict.growth_bytes_per_s;
    assert_true(f.vitals.host_growth.known);
    assert_true(rate->low <= 80000 && rate->high >= 80000);
    assert_true(f.vitals.private_growth.known);
    assert_true(f.vitals.private_growth.bytes_per_s.low > 60000);
    assert_true(f.vitals.private_growth.bytes_per_s.high < 100000);
    assert_true(rate->high - rate->low < 16000);
    assert_true(f.report->verdict.has_growth);
    assert_true(rate->low <= verdict->high && rate->high >= verdict->low);
    assert_true(
        fabs(rate->estimate - f.report->memory.tracked.slope_bytes_per_s) <
        rate->high - rate->low + f.report->memory.tracked.slope_error);
    end(&f);
}

/* Weights that load while it starts are no slope of what lives after. */
static void the_slope_of_a_space_leaves_out_the_start(void **state)
{
    struct fixture f;
    const struct seep_interval *rate = &f.vitals.host_growth.bytes_per_s;
    const struct seep_report_space *heap = NULL;
    uint32_t keeps;
    uint32_t weights;

    (void)state;
    begin(&f, true);
    keeps = site(&f, 0x10, SEEP_SPACE_HEAP);
    weights = site(&f, 0x20, SEEP_SPACE_HEAP);
    for (uint32_t i = 0; i < 10 * RUN_S; i++) {
        uint64_t address = 0x10000 + i * UINT64_C(0x10000);

        builder_alloc(&f.builder, address, 8000, keeps, TICKS(i / 10.));
        if (i == RUN_S) { /* a tenth of the run */
            builder_alloc(&f.builder, UINT64_C(1) << 40, 100 * MIB, weights,
                          TICKS(i / 10.));
        }
    }
    builder_exit(&f.builder, TICKS(RUN_S));
    look(&f);
    report(&f);
    for (size_t i = 0; i < f.report->space_count; i++) {
        if (f.report->spaces[i].space == SEEP_SPACE_HEAP) {
            heap = &f.report->spaces[i];
        }
    }

    assert_non_null(heap);
    assert_true(f.vitals.host_growth.known);
    assert_true(fabs(heap->slope_bytes_per_s - 80000) < 2000);
    assert_true(fabs(heap->slope_bytes_per_s - rate->estimate) < 1);
    end(&f);
}

static void half_a_minute_is_needed_for_growth(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, true);
    leak(&f, 29, 8000);
    look(&f);
    assert_false(f.vitals.host_growth.known);
    assert_false(f.vitals.private_growth.known);
    assert_true(f.vitals.host_bytes > 2 * MIB);
    end(&f);
}

static void sampling_widens_the_interval(void **state)
{
    struct fixture f;
    double width[2];

    (void)state;
    for (int sampled = 0; sampled < 2; sampled++) {
        begin(&f, sampled == 0);
        if (sampled != 0) {
            atomic_store_explicit(&f.builder.view.header->sample_log2, 12,
                                  memory_order_relaxed);
        }
        leak(&f, RUN_S, 8000);
        look(&f);
        width[sampled] = f.vitals.host_growth.bytes_per_s.high -
                         f.vitals.host_growth.bytes_per_s.low;
        end(&f);
    }
    assert_true(width[1] > width[0] + 2 * 3 * 4096 / 80. * 0.99);
}

static void tensors_and_segments_are_no_memory_of_the_host(void **state)
{
    struct device_run *run = *state;
    struct seep_vitals vitals;

    device_run_work(run);
    device_run_tensors(run, MIB);
    device_run_segments(run, DEVICE_RUN_TORCH, 20 * MIB, 20, DEVICE_RUN_S);
    device_run_ask(run, 0, 512 * MIB, 0);
    device_run_report(run);
    assert_int_equal(seep_vitals_open(run->path, false, NULL, &vitals), 0);

    assert_true(vitals.live_bytes[SEEP_SPACE_TENSOR] > 900 * MIB);
    assert_true(vitals.live_bytes[SEEP_SPACE_DEVICE] > 900 * MIB);
    assert_true(vitals.host_bytes < MIB);
    assert_true(vitals.host_growth.known);
    assert_true(fabs(vitals.host_growth.bytes_per_s.estimate) < 10000);
    assert_true(vitals.devices[0].growth.known);
    assert_true(device_run_is_near(
        vitals.devices[0].growth.bytes_per_s.estimate, 10. * (double)MIB, .02));
    assert_false(vitals.devices[1].reported);
}

static void a_device_has_left_what_the_report_says(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *told;
    struct seep_vitals vitals;

    device_run_work(run);
    device_run_grow(run, "/opt/app/kernels.so", 1, MIB, 0, DEVICE_RUN_S);
    device_run_ask(run, 1, 512 * MIB, 0);
    told = device_run_report(run);
    assert_int_equal(seep_vitals_open(run->path, false, NULL, &vitals), 0);

    assert_true(vitals.devices[1].reported);
    assert_int_equal(vitals.devices[1].total_bytes, DEVICE_RUN_TOTAL_BYTES);
    assert_int_equal(vitals.devices[1].live_bytes, 1000 * MIB);
    assert_int_equal(told->device_count, 1);
    assert_true(fabs((double)vitals.devices[1].free_bytes -
                     (double)told->devices[0].free_bytes) <= 2. * MIB);
}

/* All in one bucket, as the first second of a run is after an hour. */
static void what_calls_took_and_gave_back_since_is_counted(void **state)
{
    const uint64_t block = UINT64_C(1) << 56;
    struct fixture f;
    struct seep_rec_device *moment;
    uint64_t frame = builder_frame(0, 0x30);
    uint32_t of_device;

    (void)state;
    begin(&f, false);
    of_device = builder_site_of_device(
        &f.builder, builder_stack(&f.builder, &frame, 1), SEEP_SPACE_DEVICE, 0);
    builder_alloc(&f.builder, block, GIB, of_device, 100);
    builder_alloc(&f.builder, block + 4096, GIB, of_device, 101);
    builder_device(&f.builder, 0, 0, 102, 8 * GIB, 5 * GIB);
    moment = &f.builder.view.devices[0];
    atomic_store_explicit(&moment->held_bytes, 2 * GIB, memory_order_relaxed);
    builder_alloc(&f.builder, block + 8192, GIB, of_device, 103);
    builder_fold(&f.builder);
    look(&f);
    assert_int_equal(f.vitals.devices[0].free_bytes, 4 * GIB);

    for (uint64_t i = 0; i < 3; i++) {
        builder_free(&f.builder, block + i * 4096, 104);
    }
    builder_fold(&f.builder);
    look(&f);
    assert_int_equal(f.vitals.devices[0].free_bytes, 7 * GIB);
    end(&f);
}

static void what_was_lost_makes_no_memory_free(void **state)
{
    struct fixture f;
    struct seep_rec_device *moment;

    (void)state;
    begin(&f, false);
    builder_device(&f.builder, 0, 0, 102, 8 * GIB, 5 * GIB);
    moment = &f.builder.view.devices[0];
    atomic_store_explicit(&moment->held_bytes, 2 * GIB, memory_order_relaxed);
    atomic_store_explicit(&f.builder.view.counters[SEEP_COUNT_DROPPED_ALLOCS],
                          1, memory_order_relaxed);
    look(&f);
    assert_int_equal(f.vitals.devices[0].free_bytes, 5 * GIB);
    assert_int_equal(f.vitals.lost_events, 1);
    end(&f);
}

/* A recording that began @seconds ago on this machine. */
static void begin_here(struct fixture *f, uint64_t seconds)
{
    struct seep_rec_header *header = f->builder.view.header;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    char text[64] = "";

    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
    memset(header->boot_id, 0, sizeof(header->boot_id));
    memcpy(header->boot_id, text, strlen(text));
    header->start_monotonic_ns =
        seep_clock_ns(CLOCK_MONOTONIC) - seconds * UINT64_C(1000000000);
    builder_seal(&f->builder);
}

static void age_is_since_the_last_that_was_written(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, false);
    begin_here(&f, 60);
    builder_moment(&f.builder, 3, TICKS(20), MIB, 0);
    look(&f);
    assert_true(fabs(f.vitals.age_s - 40) < 2);
    builder_alloc(&f.builder, 0x1000, 64, site(&f, 0x10, SEEP_SPACE_HEAP),
                  TICKS(50)); /* pending */
    look(&f);
    assert_true(fabs(f.vitals.age_s - 10) < 2);
    end(&f);
}

static void a_time_ahead_of_the_clock_is_not_fresh(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, false);
    begin_here(&f, 60);
    builder_moment(&f.builder, 3, TICKS(20), MIB, 0);
    builder_moment(&f.builder, 4, 0xfffffff0, MIB, 0);
    look(&f);
    assert_true(fabs(f.vitals.age_s - 40) < 2);
    end(&f);
}

static void of_another_boot_the_wall_clock_tells_the_age(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, false);
    f.builder.view.header->start_realtime_ns =
        seep_clock_ns(CLOCK_REALTIME) - 60 * UINT64_C(1000000000);
    builder_seal(&f.builder);
    builder_moment(&f.builder, 3, TICKS(20), MIB, 0);
    look(&f);
    assert_true(fabs(f.vitals.age_s - 40) < 2);
    assert_int_equal(f.vitals.state, SEEP_STATE_UNKNOWN);
    end(&f);
}

static void the_room_of_another_machine_is_what_was_recorded(void **state)
{
    struct fixture f;
    struct seep_rec_moment *moment;

    (void)state;
    begin(&f, false);
    look(&f);
    assert_int_equal(f.vitals.room.kind, SEEP_ROOM_UNKNOWN);
    builder_moment(&f.builder, 3, TICKS(20), MIB, 0);
    moment = &f.builder.view.timeline[3];
    atomic_store_explicit(&moment->cgroup_bytes, 3 * GIB, memory_order_relaxed);
    atomic_store_explicit(&moment->cgroup_limit_bytes, 4 * GIB,
                          memory_order_relaxed);
    look(&f);
    assert_int_equal(f.vitals.room.kind, SEEP_ROOM_CGROUP);
    assert_int_equal(f.vitals.room.left_bytes, GIB);
    assert_true(f.vitals.room.recorded);
    end(&f);
}

static void of_who_has_ended_no_more_is_read_than_that(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, true);
    leak(&f, RUN_S, 8000);
    builder_write(&f.builder, f.path);
    assert_int_equal(seep_vitals_open(f.path, true, NULL, &f.vitals), 0);
    assert_int_equal(f.vitals.state, SEEP_STATE_EXITED);
    assert_int_equal(f.vitals.host_bytes, 0);
    assert_false(seep_vitals_is_alive(f.vitals.state));
    end(&f);
}

static void what_is_cut_short_is_refused(void **state)
{
    struct fixture f;
    struct stat status;
    struct seep_refusal refusal;
    struct seep_vitals untouched;

    (void)state;
    memset(&f, 0, sizeof(f));
    builder_init_sample(&f.builder);
    builder_temporary(f.path);
    builder_write(&f.builder, f.path);
    assert_int_equal(stat(f.path, &status), 0);
    memset(&untouched, 0x5a, sizeof(untouched));
    memset(&f.vitals, 0x5a, sizeof(f.vitals));
    for (off_t size = status.st_size - 1; size >= 0; size -= 40099) {
        assert_int_equal(truncate(f.path, size), 0);
        memset(&refusal, 0, sizeof(refusal));
        assert_true(seep_vitals_open(f.path, false, &refusal, &f.vitals) < 0);
        assert_true(*refusal.reason != '\0');
        assert_memory_equal(&f.vitals, &untouched, sizeof(untouched));
    }
    end(&f);
}

static bool is_finite(const struct seep_vitals_growth *growth)
{
    return isfinite(growth->bytes_per_s.estimate) &&
           isfinite(growth->bytes_per_s.low) &&
           isfinite(growth->bytes_per_s.high);
}

static void assert_sound(const struct seep_vitals *vitals)
{
    assert_true(is_finite(&vitals->host_growth));
    assert_true(is_finite(&vitals->private_growth));
    assert_true(isfinite(vitals->age_s) && vitals->age_s >= 0);
    assert_true(memchr(vitals->executable, 0, sizeof(vitals->executable)) !=
                NULL);
    for (unsigned i = 0; i < SEEP_DEVICES_MAX; i++) {
        const struct seep_vitals_device *device = &vitals->devices[i];

        assert_true(is_finite(&device->growth));
        assert_true(device->free_bytes <= device->total_bytes);
        assert_true(device->reported_age_s >= 0);
    }
}

/* One field or a few words, by every value that has bitten someone. */
static void damage_changes_figures_and_nothing_else(void **state)
{
    static const uint64_t values[] = {
        0, 1, 63, 0x7fffffff, 0xffffffff, UINT64_MAX, UINT64_C(1) << 63};
    struct recording_damage damage;
    struct seep_vitals vitals;
    uint64_t seed = 11;

    (void)state;
    recording_damage_init(&damage);
    for (unsigned i = 0; i < 1500; i++) {
        recording_damage_reset(&damage);
        seed = seep_hash_mix(seed + i);
        if (i % 2 == 0) {
            recording_damage_field(&damage,
                                   (int)(i / 2 % RECORDING_DAMAGE_FIELDS),
                                   values[seed % 7]);
        } else {
            for (unsigned j = 0; j < 1 + i % 4; j++) {
                recording_damage_word(&damage, seep_hash_mix(seed + j),
                                      values[(seed >> 8 * j) % 7]);
            }
        }
        builder_seal(&damage.builder);
        assert_int_equal(pwrite(damage.fd, damage.builder.bytes,
                                damage.builder.size_bytes, 0),
                         damage.builder.size_bytes);
        if (seep_vitals_read(damage.fd, damage.builder.size_bytes, false, NULL,
                             &vitals) == 0) {
            assert_sound(&vitals);
        }
    }
    recording_damage_fini(&damage);
}

static void a_sum_of_more_than_a_word_has_is_the_most_of_it(void **state)
{
    struct recording_damage damage;
    struct seep_vitals vitals;
    const struct seep_view *view;

    (void)state;
    recording_damage_init(&damage);
    recording_damage_reset(&damage);
    view = &damage.builder.view;
    for (uint32_t i = 0; i < view->site_capacity; i++) {
        if (seep_sites_is_used(&view->sites[i], i)) {
            seep_word_store(&view->sites[i].allocated_bytes, INT64_MAX);
            seep_word_store(&view->sites[i].freed_bytes, 0);
        }
    }
    builder_seal(&damage.builder);
    assert_int_equal(
        pwrite(damage.fd, damage.builder.bytes, damage.builder.size_bytes, 0),
        damage.builder.size_bytes);
    assert_int_equal(seep_vitals_read(damage.fd, damage.builder.size_bytes,
                                      false, NULL, &vitals),
                     0);
    assert_true(vitals.host_bytes == UINT64_MAX);
    recording_damage_fini(&damage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_of_more_than_a_word_has_is_the_most_of_it),
        cmocka_unit_test(the_same_lives_as_in_the_report),
        cmocka_unit_test(what_is_pending_counts),
        cmocka_unit_test(growth_is_that_of_the_report),
        cmocka_unit_test(the_slope_of_a_space_leaves_out_the_start),
        cmocka_unit_test(half_a_minute_is_needed_for_growth),
        cmocka_unit_test(sampling_widens_the_interval),
        cmocka_unit_test_setup_teardown(
            tensors_and_segments_are_no_memory_of_the_host, device_run_set_up,
            device_run_tear_down),
        cmocka_unit_test_setup_teardown(a_device_has_left_what_the_report_says,
                                        device_run_set_up,
                                        device_run_tear_down),
        cmocka_unit_test(what_calls_took_and_gave_back_since_is_counted),
        cmocka_unit_test(what_was_lost_makes_no_memory_free),
        cmocka_unit_test(age_is_since_the_last_that_was_written),
        cmocka_unit_test(a_time_ahead_of_the_clock_is_not_fresh),
        cmocka_unit_test(of_another_boot_the_wall_clock_tells_the_age),
        cmocka_unit_test(the_room_of_another_machine_is_what_was_recorded),
        cmocka_unit_test(of_who_has_ended_no_more_is_read_than_that),
        cmocka_unit_test(what_is_cut_short_is_refused),
        cmocka_unit_test(damage_changes_figures_and_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
