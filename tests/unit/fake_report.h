/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A report made by hand, for tests of what prints one: two call sites, one a
 * leak at a Python line, one hostile. Static and shared: a test that changes
 * it works on its own copy.
 */
#ifndef SEEP_TEST_FAKE_REPORT_H
#define SEEP_TEST_FAKE_REPORT_H

#include "reader/report.h"

/** Its strings hold terminal escapes, bad UTF-8 and a right-to-left mark. */
#define FAKE_HOSTILE_FUNCTION "put\033[2J\xff\xe2\x80\xae"

struct fake_report {
    struct seep_report report;
    struct seep_report_site sites[2];
    struct seep_report_frame frames[4];
    struct seep_report_point points[2];
    struct seep_report_counter counters[SEEP_COUNTER_COUNT];
    struct seep_report_space spaces[1];
};

/** Fill @fake; it must not be moved afterwards. */
void fake_report_fill(struct fake_report *fake);

#endif
