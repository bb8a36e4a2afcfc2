/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A run of 100 s made by hand, a block at a time, and what a reader says of
 * it: for the tests of who judges. Times are seconds.
 *
 * What fails fails the test.
 */
#ifndef SEEP_TESTS_JUDGE_RUN_H
#define SEEP_TESTS_JUDGE_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

#include "reader/report/report.h"
#include "recording_builder.h"

#define JUDGE_TICKS(s) ((uint32_t)((s)*BUILDER_TICKS_PER_S))
#define JUDGE_RUN_S 100

struct judge_run {
    char path[BUILDER_PATH_BYTES];
    struct recording_builder builder;
    struct seep_report *report;
    uint32_t module;
    uint64_t next; /* address of the next block */
};

int judge_set_up_exact(void **state);
/** Every 64 KiB. */
int judge_set_up_sampled(void **state);
int judge_tear_down(void **state);

uint32_t judge_site(struct judge_run *f, uint64_t offset);

/** @return its address */
uint64_t judge_born(struct judge_run *f, uint32_t site, uint64_t size,
                    double second);
void judge_died(struct judge_run *f, uint64_t address, double second);

/** One block of @size every @period, each kept for ever. */
void judge_leak(struct judge_run *f, uint32_t site, uint64_t size,
                double period);

/** Work of other sites, so that there is a clock: steady, and given back. */
void judge_work(struct judge_run *f);

/** Of a run that ended at @seconds; it is @f's. */
const struct seep_report *judge_report(struct judge_run *f, double seconds);

/** The first site of the report of the whole run. */
const struct seep_report_site *judge_first(struct judge_run *f);

void judge_assert_class(const struct seep_report_site *site, const char *class);

#endif
