/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** What cmocka needs before itself, once. */
#ifndef SEEP_TESTS_SEEP_TEST_H
#define SEEP_TESTS_SEEP_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
