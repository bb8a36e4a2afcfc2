/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A run made by hand whose events go to several stacks of one line, and the
 * report of it by rows of any kind.
 *
 * What fails fails the test.
 */
#ifndef SEEP_TESTS_GROUP_RUN_H
#define SEEP_TESTS_GROUP_RUN_H

#include "judge_run.h"

#define GROUP_STACKS_MAX 64

/* A run whose events go to several stacks of one line, by turns. */
struct group_run {
    struct judge_run *f;
    uint32_t code;
    uint32_t sites[GROUP_STACKS_MAX];
    uint32_t count;
    uint32_t turn;
};

/** A stack of @line in @code, with native frames at @offset around it. */
uint32_t group_stack(struct judge_run *f, uint32_t code, uint32_t line,
                     uint64_t offset);

/** @count stacks of serve.py:31 handle. */
void group_begin(struct group_run *run, struct judge_run *f, uint32_t count);

/** A block of the next stack. @return its address */
uint64_t group_born(struct group_run *run, uint64_t size, double second);

/** The report of the whole run; it is @f's. */
const struct seep_report *group_read(struct judge_run *f,
                                     const struct seep_report_options *how);
const struct seep_report *group_report(struct judge_run *f,
                                       enum seep_grouping by);

/** The row that is called @where. */
const struct seep_report_site *group_find(const struct seep_report *report,
                                          const char *where);

#endif
