/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A report made by hand, for tests of what prints one: two call sites, one a
 * leak at a Python line, one hostile; a third is there to be added. Static and
 * shared: a test that changes it works on its own copy.
 */
#ifndef SEEP_TEST_FAKE_REPORT_H
#define SEEP_TEST_FAKE_REPORT_H

#include "reader/compare/patterns.h"
#include "reader/report/report.h"

/** Its strings hold terminal escapes, bad UTF-8 and a right-to-left mark. */
#define FAKE_HOSTILE_FUNCTION "put\033[2J\xff\xe2\x80\xae"

struct fake_report {
    struct seep_report report;
    struct seep_report_site sites[3];
    struct seep_report_frame frames[4];
    const struct seep_report_frame *frame_list[4]; /* of them, in order */
    struct seep_report_point points[2];
    struct seep_report_counter counters[SEEP_COUNTER_COUNT];
    struct seep_report_space spaces[4];
    struct seep_report_device devices[2];
    struct seep_report_mapping mappings[2];
};

/** Fill @fake; it must not be moved afterwards. */
void fake_report_fill(struct fake_report *fake);

/**
 * The same as a process of another verdict, with all that such a one has: a
 * balance, and where there is growth, a limit ahead.
 */
void fake_report_become(struct fake_report *fake,
                        enum seep_verdict_class class);

/**
 * The same with two GPUs, of which the first is filled by the first call site:
 * a leak of device memory there, with PyTorch's cache, a pool and graphs.
 */
void fake_report_give_devices(struct fake_report *fake);

/** A pattern, as a catalogue would have it. */
extern const struct seep_pattern fake_report_pattern;

#endif
