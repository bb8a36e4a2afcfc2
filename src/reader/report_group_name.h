/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What rows are called: by report_group.c in their ids, and for people.
 *
 * Pure functions of names; any thread.
 */
#ifndef SEEP_READER_REPORT_GROUP_NAME_H
#define SEEP_READER_REPORT_GROUP_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "reader/report.h"

#define SEEP_NAME_BYTES 256U

/**
 * Threads are numbered as they come ("Thread-12"), and do the same work under
 * another number in the next run: each run of digits becomes one *.
 */
void seep_name_without_numbers(const char *name, char text[SEEP_NAME_BYTES]);

/** "name+0x40": the nearest name in a stripped file. */
bool seep_name_is_nearest(const char *function);

/** "torch", "serve.py", "libtorch_cpu.so". @return as snprintf */
int seep_name_module(const struct seep_report_frame *frame, char *text,
                     size_t capacity);

/** A thread by its own @name, else by the task, else by what runs in it. */
int seep_name_thread(const char *name, const struct seep_report_frame *frames,
                     size_t count, char *text, size_t capacity);

/** The name of a row, by its largest stack. */
int seep_name_row(enum seep_grouping by, const struct seep_report_site *site,
                  char *text, size_t capacity);

#endif
