/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Recordings of two sides, put together by program and compared.
 *
 * Errors: 0 or -ENOMEM. A set points into the reports.
 */
#ifndef SEEP_TOOL_DIFF_SET_H
#define SEEP_TOOL_DIFF_SET_H

#include <stddef.h>

#include "reader/diff.h"

/** One program, which both sides ran. */
struct seep_diff_pair {
    char *program;
    const struct seep_report **before;
    size_t before_count;
    const struct seep_report **now;
    size_t now_count;
    struct seep_diff diff;
};

struct seep_diff_set {
    struct seep_diff_pair *pairs; /* the one that is worst first */
    size_t count;
    char *only_before; /* a program that one side alone ran; NULL */
    char *only_now;
    size_t refused_count;
    const char *key; /* of the label that parts them; NULL: none does */
    char *before_name;
    char *now_name;
};

/**
 * Compare what each program did before with what it does now. Where each side
 * ran one program they are compared, whatever its name.
 *
 * @param ret_set  give it to seep_diff_set_close(); .key, the names and
 *                 .refused_count are the caller's to fill
 */
int seep_diff_set_make(const struct seep_report *const *before,
                       size_t before_count,
                       const struct seep_report *const *now, size_t now_count,
                       struct seep_diff_set *ret_set);
void seep_diff_set_close(struct seep_diff_set *set);

/** The worst answer of all programs; of none INSUFFICIENT. */
enum seep_diff_answer seep_diff_set_answer(const struct seep_diff_set *set);

/** The exit code of `seep diff`. */
int seep_diff_set_exit(const struct seep_diff_set *set);

#endif
