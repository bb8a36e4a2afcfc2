/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parts of runs whose every block is known: is each row what it was then? */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "seep_test.h"

#include "reader/report/span.h"
#include "recording_builder.h"

#define TICKS(s) ((uint32_t)((s)*953.67431640625))
#define RUN_S 100

struct fixture {
    char path[BUILDER_PATH_BYTES];
    struct recording_builder builder;
    struct seep_report *report;
    struct seep_span *span;
    uint32_t modules[2];
    uint64_t next_address;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    builder_temporary(f->path);
    builder_init(&f->builder, UINT64_C(2) << 20, true);
    f->modules[0] = builder_module(&f->builder, "/opt/app/worker", 0xab);
    f->modules[1] = builder_module(&f->builder, "/opt/app/liba.so", 0xcd);
    f->next_address = 0x100000;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    seep_span_close(f->span);
    seep_report_close(f->report);
    builder_fini(&f->builder);
    unlink(f->path);
    free(f);
    return 0;
}

static uint32_t site_in(struct fixture *f, uint32_t module, uint64_t offset,
                        enum seep_space space)
{
    uint64_t frame = builder_frame(f->modules[module], offset);

    return builder_site(&f->builder, builder_stack(&f->builder, &frame, 1),
                        space);
}

/* A block that lives from @born_s to @died_s; below 0: to the end. */
static void live(struct fixture *f, uint32_t site, uint64_t bytes,
                 double born_s, double died_s)
{
    uint64_t address = f->next_address;

    f->next_address += (bytes + 0xffff) / 0x1000 * 0x1000;
    builder_alloc(&f->builder, address, bytes, site, TICKS(born_s));
    builder_fold(&f->builder);
    if (died_s >= 0) {
        builder_free(&f->builder, address, TICKS(died_s));
        builder_fold(&f->builder);
    }
}

static void open_by(struct fixture *f, enum seep_grouping by)
{
    struct seep_report_options options = {.symbols = false, .by = by};

    builder_exit(&f->builder, TICKS(RUN_S));
    builder_write(&f->builder, f->path);
    seep_report_close(f->report);
    f->report = NULL;
    assert_int_equal(seep_report_open(f->path, &options, NULL, &f->report), 0);
}

static const struct seep_span *span_of(struct fixture *f,
                                       const struct seep_span_wish *wish)
{
    seep_span_close(f->span);
    f->span = NULL;
    assert_int_equal(seep_span_open(f->report, wish, &f->span), 0);
    return f->span;
}

static const struct seep_span *between(struct fixture *f, double from_s,
                                       double to_s)
{
    return span_of(f, &(struct seep_span_wish){
                          .since = {SEEP_SPAN_TIME, from_s, NULL},
                          .until = {SEEP_SPAN_TIME, to_s, NULL},
                      });
}

static const struct seep_span *at(struct fixture *f, double at_s)
{
    return span_of(f, &(struct seep_span_wish){
                          .at = {SEEP_SPAN_TIME, at_s, NULL},
                      });
}

/* The row that allocated @bytes in all. */
static const struct seep_span_row *row_of(const struct fixture *f,
                                          uint64_t bytes)
{
    for (size_t i = 0; i < f->report->site_count; i++) {
        if (f->report->sites[i].allocated_bytes == bytes) {
            return &f->span->rows[i];
        }
    }
    fail_msg("no row allocated %llu bytes", (unsigned long long)bytes);
    return NULL;
}

/* 100 blocks of 1000 bytes from 10 s to 20 s, all freed from 48 s to 58 s;
 * and 20 of 7000 from 0 s to 95 s that stay. */
static void play_phases(struct fixture *f)
{
    uint32_t phase = site_in(f, 0, 0x10, SEEP_SPACE_HEAP);
    uint32_t keeper = site_in(f, 1, 0x20, SEEP_SPACE_HEAP);

    for (int i = 0; i < 100; i++) {
        live(f, phase, 1000, 10 + i / 10., 48 + i / 10.);
    }
    for (int i = 0; i < 20; i++) {
        live(f, keeper, 7000, i * 5., -1);
    }
}

static void the_whole_run_is_what_the_report_says(void **state)
{
    struct fixture *f = *state;
    const struct seep_span *span;
    double live_bytes = 0;

    play_phases(f);
    open_by(f, SEEP_BY_STACK);
    span = span_of(f, &(struct seep_span_wish){0});

    assert_true(span->is_whole);
    assert_true(span->to_s == f->report->duration_s);
    for (size_t i = 0; i < f->report->site_count; i++) {
        const struct seep_report_site *site = &f->report->sites[i];
        const struct seep_span_row *row = &span->rows[i];

        assert_true(row->knows_live);
        assert_true(row->live_bytes == (double)site->live_bytes);
        assert_true(row->live_count == site->live_count);
        assert_true(row->allocated_bytes == (double)site->allocated_bytes);
        assert_true(row->freed_bytes == (double)site->freed_bytes);
        assert_true(row->growth_bytes == (double)site->live_bytes);
        live_bytes += row->live_bytes;
    }
    assert_true(span->total.live_bytes == live_bytes);
    assert_true(span->total.live_bytes ==
                (double)f->report->spaces[0].live_bytes);
    assert_true(span->total.unknown_count == 0);
}

static void what_stood_then_is_told_of_each_row(void **state)
{
    struct fixture *f = *state;
    const struct seep_span *span;

    play_phases(f);
    open_by(f, SEEP_BY_STACK);
    span = at(f, 30.3);

    assert_true(span->is_moment);
    assert_true(span->asked_to_s == 30.3);
    assert_true(fabs(span->to_s - 30.3) <= f->report->bucket_s / 2);
    assert_true(row_of(f, 100000)->live_bytes == 100000);
    assert_true(row_of(f, 100000)->live_count == 100);
    assert_false(row_of(f, 100000)->live_count_is_estimate);
    assert_true(row_of(f, 140000)->live_bytes == 7 * 7000);
    assert_true(row_of(f, 140000)->live_count == 7);
    at(f, 70);
    assert_true(row_of(f, 100000)->live_bytes == 0);
    at(f, 5);
    assert_true(row_of(f, 100000)->live_bytes == 0);
    assert_true(row_of(f, 100000)->knows_live);
}

static void what_happened_in_a_part_is_told_of_each_row(void **state)
{
    struct fixture *f = *state;
    const struct seep_span *span;
    const struct seep_span_row *row;

    play_phases(f);
    open_by(f, SEEP_BY_STACK);
    span = between(f, 8, 25);
    row = row_of(f, 100000);

    assert_true(span->from_s <= 8 && span->from_s > 8 - f->report->bucket_s);
    assert_true(span->to_s >= 25 && span->to_s < 25 + f->report->bucket_s);
    assert_true(row->allocated_bytes == 100000);
    assert_true(row->freed_bytes == 0);
    assert_true(row->growth_bytes == 100000);
    assert_true(fabs(seep_span_rate(span, row) -
                     100000 / (span->to_s - span->from_s)) < 1e-6);
    between(f, 40, 70);
    row = row_of(f, 100000);
    assert_true(row->before_bytes == 100000);
    assert_true(row->live_bytes == 0);
    assert_true(row->freed_bytes == 100000);
    assert_true(row->freed_count == 100);
    assert_true(row->growth_bytes == -100000);
}

/* Whatever the borders are. */
static void what_stands_is_what_stood_and_what_came_less_what_went(void **state)
{
    struct fixture *f = *state;

    play_phases(f);
    open_by(f, SEEP_BY_STACK);
    for (double from_s = 0; from_s < RUN_S - 10; from_s += 3.7) {
        const struct seep_span *span = between(f, from_s, from_s + 9);

        for (size_t i = 0; i < f->report->site_count; i++) {
            const struct seep_span_row *row = &span->rows[i];

            assert_true(row->before_bytes + row->allocated_bytes -
                            row->freed_bytes ==
                        row->live_bytes);
            assert_true(row->before_count + row->allocated_count -
                            row->freed_count ==
                        row->live_count);
        }
    }
}

static void the_peak_is_when_all_rows_together_held_most(void **state)
{
    struct fixture *f = *state;
    const struct seep_span *span;

    play_phases(f);
    open_by(f, SEEP_BY_STACK);
    span = span_of(f, &(struct seep_span_wish){.at.when = SEEP_SPAN_PEAK});

    assert_true(span->peak.at_s >= 45 && span->peak.at_s <= 48.1);
    assert_true(span->peak.bytes == 100000 + 10 * 7000);
    assert_true(span->to_s == span->peak.at_s);
    assert_true(span->total.live_bytes == span->peak.bytes);
    assert_true(span->peak.most_bytes >= span->peak.bytes);
    assert_true(span->peak.most_bytes <= span->peak.bytes + 2 * 7000);
}

/* Tensors lie in memory of the device, which counts already. */
static void the_peak_is_of_spaces_that_are_memory_of_their_own(void **state)
{
    struct fixture *f = *state;
    const struct seep_span *span;

    play_phases(f);
    live(f, site_in(f, 0, 0x50, SEEP_SPACE_TENSOR), 1000000, 80, 90);
    open_by(f, SEEP_BY_STACK);
    span = span_of(f, &(struct seep_span_wish){.at.when = SEEP_SPAN_PEAK});

    assert_true(span->peak.bytes == 100000 + 10 * 7000);
}

/* A stack that allocated once has no series in the recording. */
static void a_buffer_that_came_and_went_once_is_seen(void **state)
{
    struct fixture *f = *state;
    const struct seep_span *span;

    play_phases(f);
    live(f, site_in(f, 0, 0x30, SEEP_SPACE_HEAP), 5000000, 70, 75);
    open_by(f, SEEP_BY_STACK);
    span = span_of(f, &(struct seep_span_wish){.at.when = SEEP_SPAN_PEAK});

    assert_true(span->peak.at_s >= 70 && span->peak.at_s <= 75);
    assert_true(row_of(f, 5000000)->live_bytes == 5000000);
    assert_true(row_of(f, 5000000)->live_count == 1);
    at(f, 90);
    assert_true(row_of(f, 5000000)->live_bytes == 0);
    assert_true(row_of(f, 5000000)->knows_live);
}

static void it_is_also_seen_in_a_row_of_several_stacks(void **state)
{
    struct fixture *f = *state;
    const struct seep_span *span;

    play_phases(f);
    live(f, site_in(f, 0, 0x30, SEEP_SPACE_HEAP), 5000000, 70, 75);
    live(f, site_in(f, 0, 0x40, SEEP_SPACE_HEAP), 300, 80, -1);
    open_by(f, SEEP_BY_MODULE);
    assert_int_equal(f->report->site_count, 2);
    span = at(f, 72.5);

    assert_true(row_of(f, 5100300)->live_bytes == 5000000);
    assert_true(span->total.live_bytes == 5000000 + 15 * 7000);
    between(f, 65, 100);
    assert_true(row_of(f, 5100300)->allocated_bytes == 5000300);
    assert_true(row_of(f, 5100300)->freed_bytes == 5000000);
    assert_true(row_of(f, 5100300)->live_bytes == 300);
}

static void rows_by_module_stand_at_the_sum_of_their_stacks(void **state)
{
    struct fixture *f = *state;
    double by_stack[20];
    int i = 0;

    play_phases(f);
    for (uint32_t k = 0; k < 30; k++) {
        live(f, site_in(f, k % 2, 0x1000 + (uint64_t)k * 8, SEEP_SPACE_HEAP),
             (uint64_t)(k + 1) * 100, k * 3., k % 3 == 0 ? k * 3. + 8 : -1);
    }
    open_by(f, SEEP_BY_STACK);
    for (double at_s = 2; at_s < 100; at_s += 5) {
        by_stack[i++] = at(f, at_s)->total.live_bytes;
    }
    open_by(f, SEEP_BY_MODULE);
    assert_int_equal(f->report->site_count, 2);
    for (double at_s = 97; at_s > 0; at_s -= 5) {
        assert_true(at(f, at_s)->total.live_bytes == by_stack[--i]);
    }
}

static void where_blocks_differ_their_number_is_an_estimate(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_in(f, 0, 0x10, SEEP_SPACE_HEAP);
    const struct seep_span_row *row;

    for (int i = 0; i < 50; i++) {
        live(f, site, i % 2 == 0 ? 100 : 1900, i, i + 20.);
    }
    open_by(f, SEEP_BY_STACK);
    at(f, 40);
    row = row_of(f, 50000);

    assert_true(row->live_count_is_estimate);
    assert_true(fabs(row->live_count - 20) <= 2);
    assert_true(fabs(row->live_bytes - 20000) <= 2000);
}

/* No table has room: when it came is not known, and not made up. */
static void what_no_series_tells_is_counted_and_not_guessed(void **state)
{
    struct fixture *f = *state;
    struct seep_view *view = &f->builder.view;
    uint32_t site = site_in(f, 0, 0x10, SEEP_SPACE_HEAP);
    const struct seep_span *span;

    seep_word_store(&view->header->series_count, view->series_capacity);
    seep_word_store(&view->header->brief_count, view->brief_capacity);
    for (int i = 0; i < 10; i++) {
        live(f, site, 1000, 20 + i, i < 4 ? 40 : -1);
    }
    open_by(f, SEEP_BY_STACK);
    span = at(f, 30);

    assert_false(row_of(f, 10000)->knows_live);
    assert_true(row_of(f, 10000)->live_bytes == 0);
    assert_true(span->total.unknown_count == 1);
    assert_true(span->total.unknown_bytes == 10000);
    assert_true(at(f, 10)->total.unknown_count == 0);
    assert_true(at(f, 80)->total.live_bytes == 6000);
    assert_true(at(f, 80)->total.unknown_count == 0);
    /* A part that has all of it, one that has some, one that has none. */
    assert_true(between(f, 10, 90)->total.allocated_bytes == 10000);
    assert_true(f->span->total.freed_bytes == 4000);
    assert_true(f->span->total.growth_bytes == 6000);
    assert_true(between(f, 10, 30)->total.allocated_bytes == 0);
    assert_true(f->span->total.untold_count == 1);
    assert_true(f->span->total.untold_bytes == 10000);
    assert_true(between(f, 60, 90)->total.untold_count == 0);
}

static void what_died_at_once_is_temporary(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_in(f, 0, 0x10, SEEP_SPACE_HEAP);

    for (int i = 0; i < 50; i++) {
        live(f, site, 100, i, i + 0.01);
        live(f, site, 900, i + 0.02, i < 25 ? -1 : i + 30.);
    }
    open_by(f, SEEP_BY_STACK);
    span_of(f, &(struct seep_span_wish){0});
    assert_true(row_of(f, 50000)->temporary_bytes == 5000);
    /* Until then no other block died of what was born. */
    between(f, 0, 10);
    assert_true(row_of(f, 50000)->temporary_bytes == 1000 ||
                row_of(f, 50000)->temporary_bytes < 0);
    /* Some of what was born died young, some old: it is not known which. */
    between(f, 20, 40);
    assert_true(row_of(f, 50000)->temporary_bytes < 0);
}

static void where_all_deaths_are_young_a_part_knows_its_temporary(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_in(f, 0, 0x10, SEEP_SPACE_HEAP);

    for (int i = 0; i < 50; i++) {
        live(f, site, 100, i, i + 0.01);
    }
    open_by(f, SEEP_BY_STACK);
    between(f, 10, 20);
    assert_true(row_of(f, 5000)->temporary_bytes ==
                row_of(f, 5000)->allocated_bytes);
    assert_true(row_of(f, 5000)->temporary_bytes >= 1000);
}

static void a_mark_is_a_time_and_the_first_of_its_name_counts(void **state)
{
    struct fixture *f = *state;
    const struct seep_span *span;

    play_phases(f);
    builder_mark(&f->builder, SEEP_MARK_MOMENT, TICKS(30), "loaded", "");
    builder_mark(&f->builder, SEEP_MARK_MOMENT, TICKS(60), "served", "");
    open_by(f, SEEP_BY_STACK);
    span = span_of(f, &(struct seep_span_wish){
                          .since = {SEEP_SPAN_MARK, 0, "loaded"},
                          .until = {SEEP_SPAN_MARK, 0, "served"},
                      });

    assert_true(fabs(span->asked_from_s - 30) < 0.01);
    assert_true(fabs(span->asked_to_s - 60) < 0.01);
    assert_true(row_of(f, 100000)->growth_bytes <= -99000);
}

static void a_time_can_be_told_from_the_end(void **state)
{
    struct fixture *f = *state;
    const struct seep_span *span;

    play_phases(f);
    open_by(f, SEEP_BY_STACK);
    span = span_of(f, &(struct seep_span_wish){
                          .since = {SEEP_SPAN_BEFORE, 10, NULL},
                      });

    assert_true(fabs(span->asked_from_s - 90) < 0.01);
    assert_true(span->to_s == f->report->duration_s);
    assert_true(row_of(f, 140000)->growth_bytes == 2 * 7000);
}

static void what_is_no_part_of_the_run_is_refused(void **state)
{
    struct fixture *f = *state;
    struct seep_span *span = NULL;

    play_phases(f);
    open_by(f, SEEP_BY_STACK);
    assert_int_equal(seep_span_open(f->report,
                                    &(struct seep_span_wish){
                                        .at = {SEEP_SPAN_MARK, 0, "nothing"}},
                                    &span),
                     -ENOENT);
    assert_int_equal(
        seep_span_open(
            f->report,
            &(struct seep_span_wish){.at = {SEEP_SPAN_TIME, 102, NULL}}, &span),
        -ERANGE);
    assert_int_equal(seep_span_open(f->report,
                                    &(struct seep_span_wish){
                                        .since = {SEEP_SPAN_TIME, 50, NULL},
                                        .until = {SEEP_SPAN_TIME, 50, NULL},
                                    },
                                    &span),
                     -EINVAL);
    assert_null(span);
}

/* What it freed at its end is not evidence: the report is of before. */
static void the_end_is_where_the_run_is_judged_to(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_in(f, 0, 0x10, SEEP_SPACE_HEAP);
    const struct seep_span *span;

    for (int i = 0; i < 99; i++) {
        live(f, site, 1 << 20, i, 99.5);
    }
    open_by(f, SEEP_BY_STACK);
    assert_true(f->report->end.judged_before);
    span = span_of(f, &(struct seep_span_wish){.at.when = SEEP_SPAN_END});

    assert_true(span->to_s == f->report->end.judged_to_s);
    assert_true(span->rows[0].live_bytes ==
                (double)f->report->sites[0].live_bytes);
    assert_true(span->rows[0].live_bytes > 80 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(the_whole_run_is_what_the_report_says),
        TEST(what_stood_then_is_told_of_each_row),
        TEST(what_happened_in_a_part_is_told_of_each_row),
        TEST(what_stands_is_what_stood_and_what_came_less_what_went),
        TEST(the_peak_is_when_all_rows_together_held_most),
        TEST(the_peak_is_of_spaces_that_are_memory_of_their_own),
        TEST(a_buffer_that_came_and_went_once_is_seen),
        TEST(it_is_also_seen_in_a_row_of_several_stacks),
        TEST(rows_by_module_stand_at_the_sum_of_their_stacks),
        TEST(where_blocks_differ_their_number_is_an_estimate),
        TEST(what_no_series_tells_is_counted_and_not_guessed),
        TEST(what_died_at_once_is_temporary),
        TEST(where_all_deaths_are_young_a_part_knows_its_temporary),
        TEST(a_mark_is_a_time_and_the_first_of_its_name_counts),
        TEST(a_time_can_be_told_from_the_end),
        TEST(what_is_no_part_of_the_run_is_refused),
        TEST(the_end_is_where_the_run_is_judged_to),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
