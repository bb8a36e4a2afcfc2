/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The frame of a test of the fake driver.
 *
 * Invariant: a test ends with nothing live but what its context took along.
 */
#include "test_frame.h"

int fake_test_group(void **state)
{
    (void)state;
    return cuInit(0) == CUDA_SUCCESS ? 0 : -1;
}

int fake_test_begin(void **state)
{
    CUcontext context;

    (void)state;
    if (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) {
        return -1;
    }
    return cuCtxSetCurrent(context) == CUDA_SUCCESS ? 0 : -1;
}

int fake_test_end(void **state)
{
    (void)state;
    seep_fake_fail(0, CUDA_SUCCESS);
    if (cuDevicePrimaryCtxRelease_v2(0) != CUDA_SUCCESS ||
        cuCtxSetCurrent(NULL) != CUDA_SUCCESS) {
        return -1;
    }
    for (int kind = 0; kind < SEEP_FAKE_OTHER; kind++) {
        if (seep_fake_live_count((enum seep_fake_kind)kind) != 0) {
            print_error("%s is left\n",
                        seep_fake_kind_name((enum seep_fake_kind)kind));
            return -1;
        }
    }
    return 0;
}
