/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Twins: the same events up to a moment, at which one was killed; the other
 * went on, and then gave back what it had. Both must be told alike.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "seep_test.h"

#include "format/series.h"
#include "reader/report/report.h"
#include "recording_builder.h"

#define TICKS(s) ((uint32_t)((s)*953.67))
#define SITES 6U
#define SLOTS 40000U
#define MIB 1048576.0
#define EXACT_BYTES (UINT64_C(32) << 20)

/* What a run is made of. */
struct scene {
    uint32_t moment; /* at which the killed one is; an edge of eras, or that
                        of exit() */
    uint32_t fall;   /* from here on the other gives back */
    uint32_t end;
    bool by_exit;
    bool gives_back;
    bool two_stacks; /* of each function, which is one row */
};

struct run {
    char path[BUILDER_PATH_BYTES];
    struct recording_builder builder;
    struct seep_report *report;
    const struct seep_report_options *options;
    uint32_t sites[SITES][2]; /* of two stacks that end in one function */
    uint32_t live[SLOTS];     /* slot -> site + 1 */
    uint32_t next;
    uint64_t random;
};

static const struct seep_report_options by_stack = {.symbols = false};
static const struct seep_report_options by_function = {.by = SEEP_BY_FUNCTION,
                                                       .symbols = false};

static uint64_t pick(struct run *run, uint64_t below)
{
    run->random =
        run->random * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (run->random >> 33) % below;
}

static void begin(struct run *run, bool exact)
{
    uint32_t module;

    memset(run, 0, sizeof(*run));
    run->random = 7;
    run->options = &by_stack;
    builder_temporary(run->path);
    builder_init(&run->builder, EXACT_BYTES, exact);
    module = builder_module(&run->builder, "/opt/app/worker", 0xab);
    for (uint32_t i = 0; i < SITES; i++) {
        for (uint32_t j = 0; j < 2; j++) {
            uint64_t frames[] = {builder_frame(module, 0x1000 * (i + 1)),
                                 builder_frame(module, 0x10000 + 0x1000 * j)};

            run->sites[i][j] = builder_site(
                &run->builder, builder_stack(&run->builder, frames, 2),
                i < 5 ? SEEP_SPACE_HEAP : SEEP_SPACE_PYTHON);
        }
    }
}

static void finish(struct run *run)
{
    seep_report_close(run->report);
    builder_fini(&run->builder);
    unlink(run->path);
    free(run);
}

static uint64_t address_of(uint32_t slot)
{
    return 0x100000 + (uint64_t)slot * 256;
}

static uint32_t born(struct run *run, uint32_t site, uint32_t bytes,
                     uint32_t tick)
{
    do {
        run->next = (run->next + 1) % SLOTS;
    } while (run->live[run->next] != 0);
    run->live[run->next] = site + 1;
    builder_alloc(&run->builder, address_of(run->next), bytes,
                  run->sites[site][run->options == &by_function && tick % 2],
                  tick);
    return run->next;
}

static void died(struct run *run, uint32_t slot, uint32_t tick)
{
    run->live[slot] = 0;
    builder_free(&run->builder, address_of(slot), tick);
}

/* One request: site 0 leaks, 1 churns, 2 is a ring that is full, 3 leaks a
 * third of what it allocates, 4 was there before all, 5 leaks as Python does.
 */
static void request(struct run *run, uint32_t tick, uint32_t *ring, uint32_t at)
{
    uint32_t churned = born(run, 1, 100 + (uint32_t)pick(run, 900), tick);
    uint32_t mixed = born(run, 3, 50 + (uint32_t)pick(run, 900), tick);

    born(run, 0, 1000 + (uint32_t)pick(run, 3000), tick);
    born(run, 5, 300, tick);
    if (ring[at % 500] != 0) {
        died(run, ring[at % 500] - 1, tick);
    }
    ring[at % 500] = 1 + born(run, 2, 500 + (uint32_t)pick(run, 1000), tick);
    died(run, churned, tick);
    if (at % 3 != 0) {
        died(run, mixed, tick);
    }
}

static void play(struct run *run, const struct scene *scene, uint32_t until)
{
    static uint32_t ring[500];
    uint32_t at = 0;

    memset(ring, 0, sizeof(ring));
    for (uint32_t i = 0; i < 200; i++) {
        born(run, 4, 20000, 5);
    }
    for (uint32_t tick = 10; tick < until; tick += 8 + (at++ % 5)) {
        if (scene->by_exit && tick >= scene->moment) {
            atomic_store_explicit(&run->builder.view.header->final_tick,
                                  scene->moment, memory_order_relaxed);
        }
        request(run, tick, ring, at);
        atomic_store_explicit(&run->builder.view.header->progress_units,
                              10 * at, memory_order_relaxed);
        builder_fold(&run->builder); /* lows are those of a fold in order */
        if (at % 100 == 0) {
            builder_moment(&run->builder, at / 100 % SEEP_BUCKET_COUNT, tick,
                           UINT64_C(50) << 20, 10 * at);
        }
    }
}

static void give_back(struct run *run, const struct scene *scene)
{
    uint32_t span = scene->end - scene->fall;
    uint32_t left = 0;
    uint32_t done = 0;

    if (scene->by_exit) {
        atomic_store_explicit(&run->builder.view.header->final_tick,
                              scene->moment, memory_order_relaxed);
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        left += run->live[i] != 0;
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (run->live[i] != 0) {
            died(run, i,
                 scene->fall +
                     (uint32_t)((uint64_t)span * done++ / (left + 1)));
        }
    }
}

static const struct seep_report *report_of(struct run *run, uint32_t end)
{
    builder_fold(&run->builder);
    builder_exit(&run->builder, end);
    builder_write(&run->builder, run->path);
    seep_report_close(run->report);
    run->report = NULL;
    assert_int_equal(
        seep_report_open(run->path, run->options, NULL, &run->report), 0);
    return run->report;
}

static struct run *killed_of(const struct scene *scene, bool exact)
{
    struct run *run = calloc(1, sizeof(*run));

    assert_non_null(run);
    begin(run, exact);
    run->options = scene->two_stacks ? &by_function : &by_stack;
    play(run, scene, scene->moment);
    report_of(run, scene->moment);
    return run;
}

static struct run *tidy_of(const struct scene *scene, bool exact)
{
    struct run *run = calloc(1, sizeof(*run));

    assert_non_null(run);
    begin(run, exact);
    run->options = scene->two_stacks ? &by_function : &by_stack;
    play(run, scene, scene->fall);
    if (scene->gives_back) {
        give_back(run, scene);
    }
    report_of(run, scene->end);
    return run;
}

static const struct seep_report_site *site_of(const struct seep_report *report,
                                              const char *id)
{
    for (size_t i = 0; i < report->site_count; i++) {
        if (strcmp(report->sites[i].id, id) == 0) {
            return &report->sites[i];
        }
    }
    fail_msg("no site %s", id);
    return NULL;
}

static bool near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b)) + 1e-6;
}

/* To the byte, but for the moment inside of a bucket (@about). */
static void assert_site_alike(const struct seep_report_site *killed,
                              const struct seep_report_site *tidy, bool about)
{
    assert_string_equal(seep_class_name(killed->class),
                        seep_class_name(tidy->class));
    assert_int_equal(killed->live_bytes, tidy->live_bytes);
    assert_int_equal(killed->allocated_bytes, tidy->allocated_bytes);
    assert_int_equal(killed->freed_bytes, tidy->freed_bytes);
    assert_true(near(killed->live_count, tidy->live_count, 1e-6));
    assert_true(near(killed->allocated_count, tidy->allocated_count,
                     about ? 1e-3 : 1e-9));
    assert_int_equal(killed->has_growth, tidy->has_growth);
    if (killed->has_growth) {
        const struct seep_interval *a = &killed->growth_bytes_per_s;
        const struct seep_interval *b = &tidy->growth_bytes_per_s;

        assert_true(near(a->estimate, b->estimate, 0.01));
        assert_true(near(a->low, b->low, 0.02));
        assert_true(near(a->high, b->high, 0.02));
    }
    for (size_t i = 0; i < SEEP_GROWTH_WINDOWS; i++) {
        assert_true(fabs(killed->window_bytes[i] - tidy->window_bytes[i]) <=
                    0.02 * (double)killed->live_bytes + 4096);
    }
    /* How old is old is told in buckets. */
    assert_true(fabs(killed->kept.died_share - tidy->kept.died_share) <
                0.05 * killed->kept.died_share + 0.001);
}

static void assert_series_alike(const struct seep_report_site *killed,
                                const struct seep_report_site *tidy)
{
    assert_int_equal(killed->point_count, tidy->point_count);
    for (size_t i = 0; i < killed->point_count; i++) {
        const struct seep_report_point *a = &killed->series[i];
        const struct seep_report_point *b = &tidy->series[i];

        assert_true(a->start_s == b->start_s);
        assert_int_equal(a->live_bytes, b->live_bytes);
        assert_int_equal(a->low_bytes, b->low_bytes);
        assert_int_equal(a->allocated_bytes, b->allocated_bytes);
        assert_int_equal(a->freed_bytes, b->freed_bytes);
        /* What died since is kept as floats. */
        assert_true(near((double)a->born_freed_bytes,
                         (double)b->born_freed_bytes, 1e-6));
        assert_true(near(a->born_freed_count, b->born_freed_count, 1e-6));
    }
}

/* A tick is a millisecond: of an end on the edge of a bucket as well. */
static void assert_series_end(const struct seep_report *report)
{
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];
        const struct seep_report_point *last =
            &site->series[site->point_count - 1];

        assert_true(last->start_s + last->width_s < report->duration_s + 0.002);
    }
}

static void assert_alike(const struct seep_report *killed,
                         const struct seep_report *tidy, bool about)
{
    assert_true(tidy->end.judged_before);
    assert_true(near(killed->duration_s, tidy->duration_s, 1e-4));
    assert_series_end(tidy);
    assert_int_equal(killed->site_count, tidy->site_count);
    assert_int_equal(killed->verdict.class, tidy->verdict.class);
    assert_string_equal(killed->verdict.first_id, tidy->verdict.first_id);
    for (size_t i = 0; i < killed->site_count; i++) {
        const struct seep_report_site *twin =
            site_of(tidy, killed->sites[i].id);

        assert_site_alike(&killed->sites[i], twin, about);
        if (!about) {
            assert_series_alike(&killed->sites[i], twin);
        }
    }
}

static void check_twins(const struct scene *scene, bool about)
{
    struct run *killed = killed_of(scene, true);
    struct run *tidy = tidy_of(scene, true);

    assert_false(killed->report->end.judged_before);
    assert_int_equal(killed->report->verdict.class, SEEP_VERDICT_LEAK);
    assert_alike(killed->report, tidy->report, about);
    assert_true(
        near(tidy->report->life_s, (double)scene->end * 1.048576e-3, 0.001));
    finish(killed);
    finish(tidy);
}

/* 40 s are 38,147 ticks: buckets of 512, eras of 4,096. */
static void what_main_returned_from_is_judged_as_if_it_was_killed(void **state)
{
    struct scene scene = {
        .moment = 9 * 4096, .fall = 38000, .end = 38100, .gives_back = true};

    (void)state;
    check_twins(&scene, false);
}

static void a_drain_of_some_seconds_is_no_evidence(void **state)
{
    struct scene scene = {
        .moment = 8 * 4096, .fall = 35000, .end = 41000, .gives_back = true};

    (void)state;
    check_twins(&scene, false);
}

/* What goes on behind 32,768 ticks has buckets of 512, what does not of 256,
 * which would do up to the moment. */
static void a_row_is_told_on_the_grid_of_its_whole_life(void **state)
{
    struct scene scene = {.moment = 15 * 2048,
                          .fall = 31000,
                          .end = 38000,
                          .gives_back = true,
                          .two_stacks = true};

    (void)state;
    check_twins(&scene, true);
}

static void what_exit_frees_is_no_evidence(void **state)
{
    struct scene scene = {.moment = 38013,
                          .fall = 38020,
                          .end = 38100,
                          .by_exit = true,
                          .gives_back = true};
    struct run *tidy = tidy_of(&scene, true);

    (void)state;
    assert_true(tidy->report->end.by_exit);
    finish(tidy);
    check_twins(&scene, true);
}

/* Minutes behind exit(): no regular edge pushes its moment out. */
static void a_long_end_behind_exit_is_no_evidence(void **state)
{
    struct scene scene = {.moment = 40000,
                          .fall = 40000,
                          .end = 90000,
                          .by_exit = true,
                          .gives_back = true};

    (void)state;
    check_twins(&scene, true);
}

static void who_frees_nothing_is_judged_to_its_end(void **state)
{
    struct scene scene = {.moment = 38013, .fall = 38020, .end = 38100};
    struct run *run = tidy_of(&scene, true);

    (void)state;
    assert_false(run->report->end.judged_before);
    assert_false(run->report->end.unreachable);
    assert_int_equal(run->report->verdict.class, SEEP_VERDICT_LEAK);
    finish(run);
}

/* Its load ebbs at the same pace throughout the run, and then it is killed. */
static void a_load_that_falls_slowly_is_no_shutdown(void **state)
{
    enum { BLOCKS = 4000, LEFT = 1200, END = 38000 };
    struct run *run = calloc(1, sizeof(*run));
    uint32_t slots[BLOCKS];

    (void)state;
    assert_non_null(run);
    begin(run, true);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        slots[i] = born(run, 4, 4000, 5);
    }
    for (uint32_t i = 0; i < BLOCKS - LEFT; i++) {
        died(run, slots[i], 100 + (END - 100) * i / (BLOCKS - LEFT));
        builder_fold(&run->builder);
    }
    report_of(run, END);
    assert_false(run->report->end.judged_before);
    finish(run);
}

/* Ten edges pass between the fall and the end: none before it is kept. */
static void a_fall_that_is_out_of_reach_is_said_to_be(void **state)
{
    struct scene scene = {
        .moment = 36864, .fall = 60000, .end = 60500, .gives_back = true};
    struct run *run = calloc(1, sizeof(*run));

    (void)state;
    assert_non_null(run);
    begin(run, true);
    play(run, &scene, scene.fall);
    give_back(run, &scene);
    for (uint32_t tick = 61000; tick < 84000; tick += 50) {
        died(run, born(run, 1, 100, tick), tick);
    }
    report_of(run, 84000);
    assert_true(run->report->end.unreachable);
    finish(run);
}

static void a_run_too_short_to_be_judged_is_left_as_it_is(void **state)
{
    struct scene scene = {
        .moment = 4096, .fall = 20000, .end = 20100, .gives_back = true};
    struct run *run = tidy_of(&scene, true);

    (void)state;
    assert_false(run->report->end.judged_before);
    for (size_t i = 0; i < run->report->site_count; i++) {
        assert_int_equal(run->report->sites[i].live_bytes, 0);
    }
    finish(run);
}

/* What is live at the moment is put together from what died since: the peak
 * that was recorded may be less, and it is never told below what is live. */
static void a_peak_is_never_below_what_is_live(void **state)
{
    struct scene scene = {
        .moment = 9 * 4096, .fall = 38000, .end = 38100, .gives_back = true};
    struct run *run = calloc(1, sizeof(*run));
    uint64_t most = 0;

    (void)state;
    begin(run, true);
    play(run, &scene, scene.fall);
    give_back(run, &scene);
    builder_fold(&run->builder);
    for (uint32_t i = 0; i < SITES; i++) {
        atomic_store_explicit(
            &run->builder.view.sites[run->sites[i][0]].peak_bytes, 1000,
            memory_order_relaxed);
    }
    report_of(run, scene.end);
    assert_true(run->report->end.judged_before);
    for (size_t i = 0; i < run->report->site_count; i++) {
        const struct seep_report_site *site = &run->report->sites[i];

        assert_true(site->peak_bytes >= site->live_bytes);
        for (size_t j = 0; j < site->point_count; j++) {
            assert_true(site->peak_bytes >= site->series[j].live_bytes);
            most = site->series[j].live_bytes > most
                       ? site->series[j].live_bytes
                       : most;
        }
    }
    assert_true(most > 1 << 20);
    finish(run);
}

/* Sampled: what died since comes back as so many blocks as had been seen. */
static void sampled_twins_are_alike(void **state)
{
    struct scene scene = {
        .moment = 9 * 4096, .fall = 38000, .end = 38100, .gives_back = true};
    struct run *killed = calloc(1, sizeof(*killed));
    struct run *tidy = calloc(1, sizeof(*tidy));
    struct run *runs[2] = {killed, tidy};

    (void)state;
    for (int i = 0; i < 2; i++) {
        begin(runs[i], false);
        atomic_store_explicit(&runs[i]->builder.view.header->sample_log2, 10,
                              memory_order_relaxed);
        play(runs[i], &scene, i == 0 ? scene.moment : scene.fall);
    }
    give_back(tidy, &scene);
    report_of(killed, scene.moment);
    report_of(tidy, scene.end);
    assert_true(tidy->report->end.judged_before);
    for (size_t i = 0; i < killed->report->site_count; i++) {
        const struct seep_report_site *a = &killed->report->sites[i];
        const struct seep_report_site *b = site_of(tidy->report, a->id);

        assert_string_equal(seep_class_name(a->class),
                            seep_class_name(b->class));
        assert_int_equal(a->requested.live_bytes, b->requested.live_bytes);
        /* what is put back is of the mean size */
        assert_true(near((double)a->live_bytes, (double)b->live_bytes, 0.01));
        assert_true(near(a->live_count, b->live_count, 1e-5));
        assert_true(near(a->live_bytes_error, b->live_bytes_error, 0.1));
        assert_true(near(a->growth_bytes_per_s.estimate,
                         b->growth_bytes_per_s.estimate, 0.05));
    }
    finish(killed);
    finish(tidy);
}

/* Where more than 1 MiB of it is gone, it may be a leak that was given back. */
static double judged_to(uint32_t gone)
{
    enum { EARLY = 150, GOES = 35000, EXIT = 38013, END = 38100 };
    struct run *run = calloc(1, sizeof(*run));
    uint32_t early[EARLY];
    double ticks;

    assert_non_null(run);
    begin(run, true);
    for (uint32_t i = 0; i < EARLY; i++) {
        early[i] = born(run, 4, 20000, 5);
    }
    for (uint32_t tick = 10; tick < EXIT; tick += 10) {
        died(run, born(run, 1, 4000, tick), tick);
        for (uint32_t i = 0; tick == GOES && i < gone; i++) {
            died(run, early[i], tick);
        }
        builder_fold(&run->builder);
    }
    atomic_store_explicit(&run->builder.view.header->final_tick, EXIT,
                          memory_order_relaxed);
    for (uint32_t i = gone; i < EARLY; i++) {
        died(run, early[i], EXIT + 20);
    }
    report_of(run, END);
    assert_true(run->report->end.judged_before);
    ticks = run->report->duration_s * 953.67;
    finish(run);
    return ticks;
}

static void
a_trifle_that_went_before_the_end_costs_none_of_the_run(void **state)
{
    (void)state;
    assert_true(judged_to(48) > 38000);
    assert_true(judged_to(60) < 35000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_trifle_that_went_before_the_end_costs_none_of_the_run),
        cmocka_unit_test(what_main_returned_from_is_judged_as_if_it_was_killed),
        cmocka_unit_test(a_drain_of_some_seconds_is_no_evidence),
        cmocka_unit_test(a_row_is_told_on_the_grid_of_its_whole_life),
        cmocka_unit_test(what_exit_frees_is_no_evidence),
        cmocka_unit_test(a_long_end_behind_exit_is_no_evidence),
        cmocka_unit_test(who_frees_nothing_is_judged_to_its_end),
        cmocka_unit_test(a_load_that_falls_slowly_is_no_shutdown),
        cmocka_unit_test(a_fall_that_is_out_of_reach_is_said_to_be),
        cmocka_unit_test(a_run_too_short_to_be_judged_is_left_as_it_is),
        cmocka_unit_test(a_peak_is_never_below_what_is_live),
        cmocka_unit_test(sampled_twins_are_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
