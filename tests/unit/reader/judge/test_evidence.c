/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What speaks for a class: who died old, what is kept, and the rates. */
#include "judge_run.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "reader/compare/limits.h"
#include "reader/judge/sites.h"
#include "reader/recording/snapshot.h"

#define EXACT(test) \
    cmocka_unit_test_setup_teardown(test, judge_set_up_exact, judge_tear_down)
#define SAMPLED(test) \
    cmocka_unit_test_setup_teardown(test, judge_set_up_sampled, judge_tear_down)

/* Old and young are parted at one edge of the grid for both: here, where one
 * in two dies at 25 s, at 20.4 s. What dies is small: blocks are counted. */
static void the_share_of_old_blocks_that_died_is_exact(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);
    double limit = ceil(JUDGE_TICKS(JUDGE_RUN_S) / 5. / 1024) * 1024;
    uint32_t dead = 0;
    uint32_t alive = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        double second = i / 10.;
        uint64_t address = judge_born(f, site, i % 2 == 0 ? 100 : 8192, second);

        if (i % 2 == 0 && second + 25 < JUDGE_RUN_S) {
            judge_died(f, address, second + 25);
            dead++;
        } else {
            alive += JUDGE_TICKS(second) + limit <= JUDGE_TICKS(JUDGE_RUN_S);
        }
    }

    assert_true(fabs(judge_first(f)->kept.died_share -
                     (double)dead / (dead + alive)) < 1e-9);
}

/* What was seen counts, not what it stands for: 100 old deaths of 64 KiB
 * weight against 100 survivors of the same. */
static void sampled_deaths_are_counted_as_they_were_seen(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);

    for (uint32_t i = 0; i < 200; i++) {
        double second = i / 5.;
        /* small ones of any size stand for the mean interval */
        uint64_t address = judge_born(f, site, i % 2 == 0 ? 64 : 500, second);

        if (i % 2 == 0) {
            judge_died(f, address, second + 30);
        }
    }

    assert_true(fabs(judge_first(f)->kept.died_share - .5) < .01);
}

/* A thousand stay. So many of the old must go to be more than an accident. */
static bool gives_back(struct judge_run *f, uint32_t count)
{
    uint32_t site = judge_site(f, 0x10);

    judge_leak(f, site, 8192, .1);
    for (uint32_t i = 0; i < count; i++) {
        judge_died(f, 0x10000 + UINT64_C(0x10000) * i, 95);
    }
    return judge_first(f)->kept.gave_back_old;
}

static void a_few_old_deaths_are_no_eviction(void **state)
{
    struct judge_run *f = *state;

    assert_false(gives_back(f, 10));
    judge_assert_class(f->report->sites, "leak");
    assert_non_null(strstr(f->report->sites->class_reason, "hardly any"));
}

/* Such a leak is not said to look like a cache that fills. */
static void old_deaths_in_some_number_are_one(void **state)
{
    struct judge_run *f = *state;

    assert_true(gives_back(f, 20));
    judge_assert_class(f->report->sites, "leak");
    assert_null(strstr(f->report->sites->class_reason, "cache"));
}

static void two_old_deaths_are_an_accident(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);
    const struct seep_report_site *seen;

    for (uint32_t i = 0; i < 10; i++) {
        uint64_t address = judge_born(f, site, 8192, 5 * i);

        if (i < 2) {
            judge_died(f, address, 99.95);
        }
    }
    seen = judge_first(f);

    assert_false(seen->kept.gave_back_old);
    assert_true(fabs(seen->kept.died_share - .2) < 1e-9);
    /* nothing is older than the run */
    assert_true(seen->kept.oldest_death_s <= f->report->duration_s);
}

static bool is_dead(const struct seep_rec_header *header)
{
    (void)header;
    return true;
}

/* Each of the 80 stands for eight. */
static void evidence_is_blocks_that_were_seen(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);
    struct seep_snapshot snapshot;
    struct seep_clock clock;
    struct seep_sites sites;
    struct seep_evidence evidence;
    int fd;

    for (uint32_t i = 0; i < 80; i++) {
        uint64_t address = judge_born(f, site, 8192, 5 * i);

        if (i % 4 != 0) {
            judge_died(f, address, i + 2.5);
        }
    }
    builder_write(&f->builder, f->path);
    fd = open(f->path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(
        seep_snapshot_init(fd, f->builder.size_bytes, is_dead, NULL, &snapshot),
        0);
    close(fd);
    seep_clock_init(&clock, &snapshot.view,
                    seep_series_grid_of(JUDGE_TICKS(JUDGE_RUN_S)));
    assert_int_equal(seep_sites_init(&snapshot, &clock, NULL, &sites), 0);
    seep_evidence_gather(&sites, &sites.works[0], &clock, &evidence);

    assert_true(sites.works[0].site.allocated_count > 600);
    assert_true(evidence.input.live_count == 20);
    assert_true(
        fabs(evidence.input.allocations[evidence.input.bucket_count - 1] - 80) <
        1e-6);
    seep_sites_fini(&sites);
    seep_snapshot_fini(&snapshot);
}

/* Ten units a second, from the middle of the run thirty. */
static void rates_are_told_for_a_second_now_and_a_unit(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);
    const struct seep_report_site *seen;
    uint64_t units = 0;

    for (uint32_t i = 0; i < JUDGE_RUN_S; i++) {
        uint32_t pace = i < 50 ? 10 : 30;

        for (uint32_t k = 0; k < pace; k++) {
            judge_born(f, site, 4096, i + (double)k / pace);
        }
        units += pace;
        builder_moment(&f->builder, i, JUDGE_TICKS(i + 1), 1000, units);
    }
    seen = judge_first(f);

    assert_true(fabs(f->report->units_per_s - 30) < .5);
    assert_true(fabs(seen->growth_bytes_per_s.estimate / 4096 - 20) < .5);
    assert_true(fabs(seen->growth_now_bytes_per_s / 4096 - 30) < .7);
    assert_true(seen->has_growth_per_unit);
    assert_true(fabs(seen->growth_bytes_per_unit.estimate / 4096 - 1) < .02);
    assert_true(seen->growth_bytes_per_unit.low < 4096);
    assert_true(seen->growth_bytes_per_unit.high > 4096);
}

/* Units that are told from the second half of the run on are the clock of that
 * part, and what is kept of each is what was kept there. The start-up is three
 * times as busy. */
static void a_late_start_keeps_as_much_of_a_unit(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);
    uint32_t other = judge_site(f, 0x20);
    const struct seep_report_site *seen;
    struct seep_check_measure measure;
    uint64_t units = 0;

    for (uint32_t i = 0; i < JUDGE_RUN_S; i++) {
        uint32_t pace = i < 10 ? 30 : 10;

        for (uint32_t k = 0; k < pace; k++) {
            double second = i + (double)k / pace;

            judge_died(f, judge_born(f, other, 40960, second), second + .01);
            if (i >= 53) {
                judge_born(f, site, 40960, second + .02);
            }
        }
        units += i < 53 ? 0 : 10;
        builder_moment(&f->builder, i, JUDGE_TICKS(i + 1), 1000, units);
    }
    seen = judge_first(f);
    seep_check_measure(SEEP_CHECK_GROWTH_PER_UNIT, SEEP_CHECK_ALL_SPACES,
                       f->report, 0, &measure);

    judge_assert_class(seen, "leak");
    assert_true(seen->has_growth_per_unit);
    assert_true(fabs(seen->growth_bytes_per_unit.estimate / 40960 - 1) < .01);
    assert_true(measure.valid);
    assert_true(fabs(measure.value.estimate / 40960 - 1) < .01);
    assert_true(measure.value.low < 40960 && 40960 < measure.value.high);
}

static void without_marks_there_is_no_rate_for_a_unit(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report_site *seen;

    judge_leak(f, judge_site(f, 0x10), 40960, .25);
    seen = judge_first(f);

    assert_true(seen->has_growth);
    assert_false(seen->has_growth_per_unit);
    assert_true(
        fabs(seen->growth_now_bytes_per_s / seen->growth_bytes_per_s.estimate -
             1) < .05);
}

static void what_is_kept_is_kept_since_the_onset(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);
    const struct seep_report_site *seen;

    judge_work(f);
    for (double second = 0; second < JUDGE_RUN_S; second += .25) {
        if (second >= 40) {
            judge_born(f, site, 16384, second);
        }
    }
    seen = judge_first(f);

    judge_assert_class(seen, "leak");
    assert_true(fabs(seen->kept.share - .6) < 1e-9);
    assert_true(fabs(seen->kept.since_s - 40) < 1.5);
    assert_true(seen->kept.oldest_death_s == 0);
    assert_false(seen->kept.gave_back_old);
}

static void what_is_kept_from_the_start_on_is_kept_since_then(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report_site *seen;

    judge_leak(f, judge_site(f, 0x10), 16384, .25);
    seen = judge_first(f);

    assert_true(seen->kept.share == 1);
    assert_true(seen->kept.since_s == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EXACT(the_share_of_old_blocks_that_died_is_exact),
        SAMPLED(sampled_deaths_are_counted_as_they_were_seen),
        EXACT(a_few_old_deaths_are_no_eviction),
        EXACT(old_deaths_in_some_number_are_one),
        EXACT(two_old_deaths_are_an_accident),
        SAMPLED(evidence_is_blocks_that_were_seen),
        EXACT(rates_are_told_for_a_second_now_and_a_unit),
        EXACT(a_late_start_keeps_as_much_of_a_unit),
        EXACT(without_marks_there_is_no_rate_for_a_unit),
        EXACT(what_is_kept_is_kept_since_the_onset),
        EXACT(what_is_kept_from_the_start_on_is_kept_since_then),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
