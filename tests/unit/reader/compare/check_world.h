/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Reports of 1,000 s that limits are held against, for tests: one of now, one
 * of before. They hold 50 MiB, and nothing grows.
 */
#ifndef SEEP_TEST_CHECK_WORLD_H
#define SEEP_TEST_CHECK_WORLD_H

#include "reader/compare/limits.h"

#define CHECK_MIB (1024.0 * 1024.0)
#define CHECK_RUN_S 1000
#define CHECK_MOMENTS 100

struct check_world {
    struct seep_report report;
    struct seep_report_site sites[4];
    struct seep_report_moment moments[CHECK_MOMENTS];
    struct seep_report_device devices[2];
    struct seep_report_point points[4][CHECK_MOMENTS];
};
extern struct check_world check_now, check_before;

/** For cmocka. */
int check_world_set_up(void **state);

/** A site that grows by @rate, by 1 % more or less, from the start. */
struct seep_report_site *check_world_add(struct check_world *world,
                                         const char *id, enum seep_class class,
                                         double rate);

/** Of the report of now. */
struct seep_check_measure check_world_measure(enum seep_check_kind kind,
                                              int space);

/** The one result of one limit on it. */
struct seep_check_result check_world_one(const struct seep_check_limit *limit,
                                         bool with_baseline);

#endif
