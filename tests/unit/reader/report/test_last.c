/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* reader/report_last: what a process did that was ended from outside. */
#include <math.h>
#include <signal.h>

#include "seep_test.h"

#include "base/word.h"
#include "judge_run.h"

static void killed(struct judge_run *f)
{
    struct seep_rec_header *header = f->builder.view.header;

    seep_word_store(&header->has_status, 1);
    seep_word_store(&header->status, SIGKILL);
}

/* Two lines; one keeps what it takes, the other gives all of it back. */
static void works(struct judge_run *f)
{
    uint32_t keeps = judge_site(f, 0x100);
    uint32_t gives = judge_site(f, 0x200);

    for (int i = 0; i < 1000; i++) {
        judge_born(f, keeps, 5000, i / 10.0);
        judge_died(f, judge_born(f, gives, 70000, i / 10.0), i / 10.0 + 0.01);
    }
}

static const struct seep_report_site *
kept_most(const struct seep_report *report)
{
    const struct seep_report_site *most = &report->sites[0];

    for (size_t i = 0; i < report->site_count; i++) {
        if (report->sites[i].live_bytes > most->live_bytes) {
            most = &report->sites[i];
        }
    }
    return most;
}

static void what_was_killed_tells_its_last_second(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report_last *last;
    double blocks;

    works(f);
    killed(f);
    last = &judge_report(f, 100)->last;
    blocks = last->span_s * 10;
    assert_true(last->span_s >= 1 && last->span_s < 3);
    assert_true(fabs(last->freed_bytes / (blocks * 70000) - 1) < 0.15);
    assert_true(fabs(last->allocated_bytes / (blocks * 75000) - 1) < 0.15);
    assert_true(fabs(last->stayed_bytes / (blocks * 5000) - 1) < 0.15);
    assert_string_equal(last->where, kept_most(f->report)->where);
}

static void what_ended_by_itself_tells_nothing(void **state)
{
    struct judge_run *f = *state;

    works(f);
    assert_true(!(judge_report(f, 100)->last.span_s > 0));
}

static void what_lived_less_than_a_second_tells_nothing(void **state)
{
    struct judge_run *f = *state;

    judge_born(f, judge_site(f, 0x100), 5000, 0.1);
    killed(f);
    assert_true(!(judge_report(f, 0.5)->last.span_s > 0));
}

/* One block at the end is what the kernel came for. */
static void one_great_block_at_the_end_is_what_stayed(void **state)
{
    struct judge_run *f = *state;
    uint32_t great = judge_site(f, 0x300);

    works(f);
    judge_born(f, great, 3000000000U, 99.9);
    killed(f);
    judge_report(f, 100);
    assert_true(f->report->last.stayed_bytes == 3000000000.0);
    assert_string_equal(f->report->last.where, kept_most(f->report)->where);
}

#define WITH(test) \
    cmocka_unit_test_setup_teardown(test, judge_set_up_exact, judge_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(what_was_killed_tells_its_last_second),
        WITH(what_ended_by_itself_tells_nothing),
        WITH(what_lived_less_than_a_second_tells_nothing),
        WITH(one_great_block_at_the_end_is_what_stayed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
