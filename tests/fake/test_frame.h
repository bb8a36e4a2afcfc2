/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** What the tests of the fake driver share: a context, and a short check. */
#ifndef SEEP_TESTS_TEST_FRAME_H
#define SEEP_TESTS_TEST_FRAME_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cuda_abi.h"
#include "seep_fake.h"

#define MIB (UINT64_C(1) << 20)

#define assert_result(call, result) assert_int_equal((call), (result))
#define assert_done(call) assert_result(call, CUDA_SUCCESS)

/* Who starts a test sets two devices of 256 MiB, and contexts of 1 MiB. */
int fake_test_group(void **state);
/* Device 0's primary context is current; afterwards nothing of it is left. */
int fake_test_begin(void **state);
int fake_test_end(void **state);

#define fake_test(function) \
    cmocka_unit_test_setup_teardown(function, fake_test_begin, fake_test_end)

#endif
