/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Deep stacks of many functions, built with and without frame pointers.
 */
#ifndef SEEP_BENCH_CAPTURE_FRAMES_H
#define SEEP_BENCH_CAPTURE_FRAMES_H

typedef int bottom_function(void *argument);

/** @depth frames, then @bottom. @return what @bottom did, more or less */
typedef int descend_function(int depth, bottom_function *bottom,
                             void *argument);

descend_function descend_by_rbp;
descend_function descend_by_rsp;

/** As these, each through other functions; the first are these. */
#define BENCH_WAYS 6
extern descend_function *const ways_by_rbp[BENCH_WAYS];
extern descend_function *const ways_by_rsp[BENCH_WAYS];

#endif
