/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A run made by hand of a program in Python that imports, and works.
 *
 * What fails fails the test.
 */
#ifndef SEEP_TESTS_BEGIN_RUN_H
#define SEEP_TESTS_BEGIN_RUN_H

#include "judge_run.h"

/** encode.py, whose line 7 imports the module in the file @module. */
uint32_t begin_import(struct judge_run *f, const char *module);

/** The same where the table fills up: of whatever module that line imports. */
uint32_t begin_coarse(struct judge_run *f);

/** A function of the user's, which may run inside of an import. */
uint32_t begin_work(struct judge_run *f, uint32_t line, bool imported);

/** @site takes a block every tenth of a second; and gives it back, or not. */
void begin_takes(struct judge_run *f, uint32_t site, uint64_t size,
                 double from_s, double to_s, bool keeps);

#endif
