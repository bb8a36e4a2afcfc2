/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports to be checked, made by hand. Invariant: each test has fresh ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_world.h"

struct check_world check_now, check_before;

/* It holds 50 MiB and nothing grows. */
static void fill(struct check_world *world)
{
    memset(world, 0, sizeof(*world));
    world->report = (struct seep_report){
        .path = "/data/x.seep",
        .executable = "/opt/bin/serve",
        .labels = "model=bert,role=worker",
        .duration_s = CHECK_RUN_S,
        .sample_bytes = 1,
        .verdict = {.class = SEEP_VERDICT_STEADY,
                    .reason = "steady",
                    .reassures = true,
                    .hidden_bytes_per_s = 1e12},
        .sites = world->sites,
        .devices = world->devices,
    };
    for (int i = 0; i < CHECK_MOMENTS; i++) {
        world->moments[i] = (struct seep_report_moment){
            .t_s = 10.0 * i + 5,
            .held_bytes = 60 * CHECK_MIB,
            .private_bytes = 50 * CHECK_MIB,
        };
    }
    world->report.memory.moments = world->moments;
    world->report.memory.moment_count = CHECK_MOMENTS;
}

int check_world_set_up(void **state)
{
    (void)state;
    fill(&check_now);
    fill(&check_before);
    return 0;
}

struct seep_report_site *check_world_add(struct check_world *world,
                                         const char *id, enum seep_class class,
                                         double rate)
{
    size_t index = world->report.site_count++;
    struct seep_report_site *site = &world->sites[index];

    *site = (struct seep_report_site){
        .class = class,
        .where = "serve.py:31 handle",
        .has_growth = true,
        .growth_bytes_per_s = {rate, .99 * rate, 1.01 * rate},
        .series = world->points[index],
        .point_count = CHECK_MOMENTS,
    };
    strcpy(site->id, id);
    for (int i = 0; i < CHECK_MOMENTS; i++) {
        uint64_t live = (uint64_t)(rate * 10 * i);

        world->points[index][i] = (struct seep_report_point){
            .start_s = 10.0 * i,
            .width_s = 10,
            .live_bytes = live + (uint64_t)(10 * rate),
            .low_bytes = live};
    }
    site->live_bytes = (uint64_t)(rate * CHECK_RUN_S);
    return site;
}

struct seep_check_measure check_world_measure(enum seep_check_kind kind,
                                              int space)
{
    struct seep_check_measure measured;

    seep_check_measure(kind, space, &check_now.report,
                       SEEP_CHECK_WARMUP_UNKNOWN, &measured);
    assert_non_null(measured.reason);
    return measured;
}

struct seep_check_result check_world_one(const struct seep_check_limit *limit,
                                         bool with_baseline)
{
    const struct seep_report *report = &check_now.report;
    const struct seep_report *old = &check_before.report;
    struct seep_check_options options = {
        .limits = limit,
        .count = 1,
        .warmup_s = SEEP_CHECK_WARMUP_UNKNOWN,
        .baseline = &old,
        .baseline_count = with_baseline,
    };
    struct seep_check_result *results;
    struct seep_check_result result;
    size_t count;

    assert_int_equal(seep_check_run(&options, &report, 1, &results, &count), 0);
    assert_int_equal(count, 1);
    result = results[0];
    assert_int_equal(seep_check_worst(results, count), result.outcome);
    free(results);
    return result;
}
