/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** What cmocka needs before itself, once. */
#ifndef SEEP_TESTS_SEEP_TEST_H
#define SEEP_TESTS_SEEP_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/** How often: @few times, and @many if every test is to have its full length
 * (SEEP_TEST_LONG=1). */
static inline uint32_t seep_test_times(uint32_t few, uint32_t many)
{
    const char *text = getenv("SEEP_TEST_LONG");

    return text != NULL && *text != '\0' && strcmp(text, "0") != 0 ? many : few;
}

#endif
