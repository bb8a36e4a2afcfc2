/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** What came of the calls of odd_calls.c, and of those of the library that it
 * is built into as well. */
#ifndef SEEP_TEST_ODD_CALLS_H
#define SEEP_TEST_ODD_CALLS_H

#include <stddef.h>

struct odd_calls_note {
    char what; /* 0 none, + a good one, m misaligned, w of wrong bytes */
    int error;
};

#define ODD_CALLS_MOST 96

/** What the library's resolver saw. @return how many they are */
size_t odd_calls_early(const struct odd_calls_note **ret_notes);

/** What the resolver resolves, inside the library. */
int odd_calls_answer(void);

#endif
