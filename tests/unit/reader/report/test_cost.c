/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What seep itself cost, from counters to seconds, and what of shared memory is
 * its own. Invariant: the truth of each is what was put in.
 */
#include "seep_test.h"

#include <elf.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/word.h"
#include "format/layout.h"
#include "reader/report/report.h"
#include "recording_builder.h"

#define RUN_S 10
#define NS UINT64_C(1000000000)
#define HZ (UINT64_C(2) * NS) /* 2 GHz */
#define MIB ((uint64_t)1 << 20)

struct fixture {
    char path[BUILDER_PATH_BYTES];
    struct recording_builder builder;
    struct seep_report *report;
};

static void count(struct fixture *f, enum seep_counter which, uint64_t value)
{
    seep_word_store(&f->builder.view.counters[which], value);
}

/* The last moment of the clocks was @s after the start. */
static void clocks(struct fixture *f, double s)
{
    struct seep_rec_header *header = f->builder.view.header;

    seep_word_store(&header->last_ns,
                    header->start_monotonic_ns + (uint64_t)(s * NS));
    seep_word_store(&header->last_cycles,
                    header->start_cycles + (uint64_t)(s * HZ));
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    builder_temporary(f->path);
    builder_init(&f->builder, SEEP_LAYOUT_LEAST_BYTES, true);
    f->builder.view.header->elf_machine = EM_X86_64;
    f->builder.view.header->start_cycles = 1000;
    f->builder.view.header->start_monotonic_ns = 77 * NS;
    builder_seal(&f->builder);
    clocks(f, RUN_S);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    seep_report_close(f->report);
    builder_fini(&f->builder);
    unlink(f->path);
    free(f);
    return 0;
}

static const struct seep_report *report_of(struct fixture *f)
{
    builder_exit(&f->builder, RUN_S * BUILDER_TICKS_PER_S);
    builder_write(&f->builder, f->path);
    seep_report_close(f->report);
    f->report = NULL;
    assert_int_equal(seep_report_open(f->path, NULL, NULL, &f->report), 0);
    return f->report;
}

static void is_cost(struct fixture *f, double s, bool at_most)
{
    const struct seep_report *report = report_of(f);

    assert_true(fabs(report->cost_s - s) <= 1e-6 + 0.001 * s);
    assert_int_equal(report->cost_at_most, at_most);
}

static void nothing_was_done_and_costs_nothing(void **state)
{
    is_cost(*state, 0, false);
}

static void the_first_events_are_added_up_and_others_spread(void **state)
{
    struct fixture *f = *state;

    count(f, SEEP_COUNT_EVENTS, 512 + 64000);
    count(f, SEEP_COUNT_FIRST_EVENTS, 512);
    count(f, SEEP_COUNT_FIRST_CYCLES, HZ / 100); /* 10 ms */
    count(f, SEEP_COUNT_TIMED_EVENTS, 1000);
    count(f, SEEP_COUNT_TIMED_CYCLES, HZ / 1000); /* 1 us each */
    is_cost(f, 0.010 + 0.064, false);
}

static void a_run_of_few_events_is_known_to_the_last(void **state)
{
    struct fixture *f = *state;

    count(f, SEEP_COUNT_EVENTS, 100);
    count(f, SEEP_COUNT_FIRST_EVENTS, 100);
    count(f, SEEP_COUNT_FIRST_CYCLES, HZ / 100);
    is_cost(f, 0.010, false);
}

/* The first are the dearest kind. */
static void what_too_few_tell_counts_as_the_first(void **state)
{
    struct fixture *f = *state;

    count(f, SEEP_COUNT_EVENTS, 1000);
    count(f, SEEP_COUNT_FIRST_EVENTS, 500);
    count(f, SEEP_COUNT_FIRST_CYCLES, HZ / 100);
    count(f, SEEP_COUNT_TIMED_EVENTS, 15);
    count(f, SEEP_COUNT_TIMED_CYCLES, 15);
    is_cost(f, 0.020, true);
    count(f, SEEP_COUNT_TIMED_EVENTS, 16);
    count(f, SEEP_COUNT_TIMED_CYCLES, HZ / 10000);
    is_cost(f, 0.010 + 500 * (1e-4 / 16), false);
}

static void where_there_is_no_counter_a_bound_is_told(void **state)
{
    struct fixture *f = *state;

    count(f, SEEP_COUNT_EVENTS, 1000);
    is_cost(f, 0.1, true);
}

static void no_more_is_told_than_the_process_used(void **state)
{
    struct fixture *f = *state;
    struct seep_rec_header *header = f->builder.view.header;

    count(f, SEEP_COUNT_EVENTS, 106603);
    count(f, SEEP_COUNT_FIRST_EVENTS, 1);
    count(f, SEEP_COUNT_FIRST_CYCLES, HZ / 100);
    is_cost(f, 1066.03, true);
    seep_word_store(&header->processor_ns, 7 * NS);
    is_cost(f, 7, true);
    seep_word_store(&header->processor_ns, 2000 * NS);
    is_cost(f, 1066.03, true);
}

/* A clock of 10 ms may be one step behind. */
static void of_a_short_run_the_clock_bounds_it(void **state)
{
    struct fixture *f = *state;

    count(f, SEEP_COUNT_EVENTS, 100);
    count(f, SEEP_COUNT_FIRST_EVENTS, 100);
    count(f, SEEP_COUNT_FIRST_CYCLES, HZ / 100);
    clocks(f, 0.1);
    is_cost(f, 0.010 * 0.11 / 0.1, true);
    clocks(f, 0); /* nothing passed: no counter is slower than 1 GHz */
    is_cost(f, 0.020, true);
}

/* Moments of 20 MiB, of which 6 are shared; 4 of these are the recording. */
static void the_recording_is_no_shared_memory_of_the_program(void **state)
{
    struct fixture *f = *state;
    const struct seep_report_memory *memory;

    for (uint32_t i = 0; i < 100; i++) {
        struct seep_rec_moment *moment = &f->builder.view.timeline[i];

        builder_moment(&f->builder, i, 1 + i * 90, 20 * MIB, 0);
        seep_word_store(&moment->shared_bytes, 6 * MIB);
        seep_word_store(&moment->own_bytes, 4 * MIB);
    }
    memory = &report_of(f)->memory;
    assert_true(memory->shared.last_bytes == 2 * MIB);
    assert_true(memory->own.last_bytes == 4 * MIB);
    assert_true(memory->anonymous.last_bytes == 14 * MIB);
    assert_true(memory->rss.last_bytes == 20 * MIB);
    for (uint32_t i = 0; i < 100; i++) {
        seep_word_store(&f->builder.view.timeline[i].own_bytes, 0);
    }
    memory = &report_of(f)->memory; /* not told */
    assert_true(memory->shared.last_bytes == 6 * MIB);
    assert_false(memory->own.valid);
}

/* The recording grows by 1.5 MiB, nothing else does; then a file does too. */
static void a_recording_that_grows_is_nobodys_growth(void **state)
{
    struct fixture *f = *state;

    for (int other = 0; other < 2; other++) {
        for (uint32_t i = 0; i < 100; i++) {
            struct seep_rec_moment *moment = &f->builder.view.timeline[i];
            uint64_t own = MIB + i * (MIB / 64);
            uint64_t file = other != 0 ? i * MIB : 0;

            builder_moment(&f->builder, i, 1 + i * 90, 20 * MIB + own + file,
                           0);
            seep_word_store(&moment->shared_bytes, own + file);
            seep_word_store(&moment->own_bytes, own);
        }
        assert_int_equal(report_of(f)->verdict.shared_grows, other);
    }
}

/* A damaged file: more of its own than there is. */
static void more_than_all_is_all(void **state)
{
    struct fixture *f = *state;
    const struct seep_report_memory *memory;

    for (uint32_t i = 0; i < 100; i++) {
        builder_moment(&f->builder, i, 1 + i * 90, 20 * MIB, 0);
        seep_word_store(&f->builder.view.timeline[i].shared_bytes, MIB);
        seep_word_store(&f->builder.view.timeline[i].own_bytes, UINT64_MAX);
    }
    memory = &report_of(f)->memory;
    assert_true(memory->own.last_bytes == MIB);
    assert_true(memory->shared.last_bytes == 0);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH(nothing_was_done_and_costs_nothing),
        WITH(the_first_events_are_added_up_and_others_spread),
        WITH(a_run_of_few_events_is_known_to_the_last),
        WITH(what_too_few_tell_counts_as_the_first),
        WITH(where_there_is_no_counter_a_bound_is_told),
        WITH(no_more_is_told_than_the_process_used),
        WITH(of_a_short_run_the_clock_bounds_it),
        WITH(the_recording_is_no_shared_memory_of_the_program),
        WITH(a_recording_that_grows_is_nobodys_growth),
        WITH(more_than_all_is_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
