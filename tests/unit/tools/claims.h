/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Claims: words that are there where they are true, and are not where they are
 * false. tests/lint/sentences.py sees to it that each sentence of the verdict's
 * sources is one.
 *
 * Invariant: what fails() was seen to hold since the last forget(), so that it
 * is gone for what was changed, and not because it is never said.
 */
#ifndef SEEP_TESTS_CLAIMS_H
#define SEEP_TESTS_CLAIMS_H

#include "seep_test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLAIMS_MAX 32

/* All that is said now, to be freed: the test's. */
char *claims_text(void);

static const char *claims_held[CLAIMS_MAX];
static size_t claims_count;

static inline void forget(void)
{
    claims_count = 0;
}

static inline bool is_claimed(const char *words, bool there)
{
    char *text = claims_text();
    bool found = strstr(text, words) != NULL;

    if (found != there) {
        print_error("\"%s\" is %s in\n%s\n", words, there ? "not" : "still",
                    text);
    }
    free(text);
    return found;
}

/** It is true now, and said. */
static inline void holds(const char *words)
{
    assert_true(is_claimed(words, true));
    assert_true(claims_count < CLAIMS_MAX);
    claims_held[claims_count++] = words;
}

/** It is no longer true, and no longer said. */
static inline void fails(const char *words)
{
    bool held = false;

    for (size_t i = 0; i < claims_count; i++) {
        held = held || strcmp(claims_held[i], words) == 0;
    }
    assert_true(held);
    assert_false(is_claimed(words, false));
}

#endif
