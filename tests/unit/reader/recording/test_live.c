/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading while a process writes: a thread pushes and folds as a worker does,
 * without a pause, and each report must be one moment of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/word.h"
#include "format/layout.h"
#include "reader/report/report.h"
#include "recording_builder.h"

#define SITES 40
#define READS 60
/* One in some twenty is of one moment: until there is one to be checked. */
#define READS_MOST 3000
#define HELD 5000U /* blocks of 64 bytes, always, once they will be reached */

struct worker {
    struct recording_builder builder;
    char path[BUILDER_PATH_BYTES];
    pthread_t thread;
    _Atomic bool stop;
    uint32_t sites[SITES];
};

static uint64_t address_of(uint64_t number)
{
    return (number + 1) * 64;
}

/* Every block lives until HELD others came: live bytes of each site stay
 * between bounds that any single moment has to satisfy. */
static void *work(void *context)
{
    struct worker *w = context;

    for (uint64_t i = 0; !atomic_load_explicit(&w->stop, memory_order_relaxed);
         i++) {
        uint32_t tick = (uint32_t)(i / 1000);

        builder_alloc(&w->builder, address_of(i), 64, w->sites[i % SITES],
                      tick);
        if (i >= HELD) {
            builder_free(&w->builder, address_of(i - HELD), tick);
        }
    }
    return NULL;
}

static int setup(void **state)
{
    struct worker *w = calloc(1, sizeof(*w));

    builder_temporary(w->path);
    builder_init_shared(&w->builder, w->path, UINT64_C(8) << 20, true);
    for (uint32_t i = 0; i < SITES; i++) {
        uint64_t frame = builder_frame(SEEP_MODULE_NONE, i + 1);

        w->sites[i] =
            builder_site(&w->builder, builder_stack(&w->builder, &frame, 1),
                         SEEP_SPACE_HEAP);
    }
    assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct worker *w = *state;

    atomic_store_explicit(&w->stop, true, memory_order_relaxed);
    pthread_join(w->thread, NULL);
    builder_fini(&w->builder);
    unlink(w->path);
    free(w);
    return 0;
}

static void check_site(const struct seep_report_site *site, bool is_one_moment,
                       bool is_thinned)
{
    double survivors = 0;

    assert_true(site->allocated_bytes >= site->freed_bytes);
    assert_int_equal(site->live_bytes,
                     site->allocated_bytes - site->freed_bytes);
    /* A reader that keeps the lock for long lets the table fill. */
    assert_true(is_thinned || site->live_bytes % 64 == 0);
    for (int i = 0; i < SEEP_GROWTH_WINDOWS; i++) {
        survivors += site->window_bytes[i];
    }
    if (is_one_moment) {
        assert_true(survivors == (double)site->live_bytes);
        assert_int_equal(site->series[site->point_count - 1].live_bytes,
                         site->live_bytes);
    }
}

/*
 * A fold under way in another shard while a site is read is nothing that a
 * reader can wait for without end: such a report does not call itself exact,
 * and the totals of each site hold all the same.
 */
static void each_report_is_one_moment(void **state)
{
    struct worker *w = *state;
    int moments = 0;
    int reads;

    for (reads = 0; reads < READS || (moments == 0 && reads < READS_MOST);
         reads++) {
        struct seep_report *report = NULL;
        bool is_one_moment;

        assert_int_equal(seep_report_open(w->path, NULL, NULL, &report), 0);
        is_one_moment = report->exact;
        moments += is_one_moment;
        for (size_t j = 0; j < report->site_count; j++) {
            check_site(&report->sites[j], is_one_moment,
                       report->sample_bytes > 1);
        }
        seep_report_close(report);
    }
    print_message("%d of %d reads were one moment\n", moments, reads);
    assert_true(moments > 0);
}

#define PREEMPTED_NS 20000000L /* some turns of others at a processor */

/* Whose fold stands still until a reader has waited so long. */
static struct {
    struct recording_builder builder;
    int64_t left_ns;
} preempted;

/* The reader's pauses: what it would wait is counted. */
int nanosleep(const struct timespec *wanted, struct timespec *ret_left)
{
    int64_t before_ns = preempted.left_ns;

    (void)ret_left;
    preempted.left_ns -= wanted->tv_nsec;
    if (before_ns > 0 && preempted.left_ns <= 0) {
        seep_word_fetch_add(&preempted.builder.view.sites[1].lock, 1);
        seep_word_fetch_add(&preempted.builder.view.shards[0].lock, 1);
    }
    return 0;
}

/* Whoever folds may lose its processor for longer than a reader needs for its
 * copy: that is no loss, and the report is exact. */
static void a_fold_that_stands_still_is_waited_for(void **state)
{
    struct recording_builder *builder = &preempted.builder;
    uint64_t frame = builder_frame(SEEP_MODULE_NONE, 1);
    struct seep_report *report = NULL;
    char path[BUILDER_PATH_BYTES];

    (void)state;
    builder_temporary(path);
    builder_init_shared(builder, path, UINT64_C(8) << 20, true);
    assert_int_equal(builder_site(builder, builder_stack(builder, &frame, 1),
                                  SEEP_SPACE_HEAP),
                     1);
    seep_word_store(&builder->view.shards[0].lock, 7);
    seep_word_store(&builder->view.sites[1].lock, 7);
    preempted.left_ns = PREEMPTED_NS;
    assert_int_equal(seep_report_open(path, NULL, NULL, &report), 0);
    assert_true(preempted.left_ns <= 0);
    assert_int_equal(report->torn_sites, 0);
    assert_true(report->exact);
    seep_report_close(report);
    builder_fini(builder);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fold_that_stands_still_is_waited_for),
        cmocka_unit_test_setup_teardown(each_report_is_one_moment, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
