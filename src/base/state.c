/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What there is one of: the thread-local object, whose clock it is, and what
 * the process has forbidden itself, the cycle counter and system calls; see
 * base/thread.h and base/syscall.h.
 *
 * Invariant: what was forbidden once stays so.
 */
#include <time.h>

#include "base/syscall.h"
#include "base/thread.h"

int (*seep_clock_gettime)(clockid_t clock, struct timespec *ret_time)
    __attribute__((visibility("hidden"))) = clock_gettime;

bool seep_clock_forbidden __attribute__((visibility("hidden")));

uint64_t seep_calls_denied;

__thread struct seep_thread seep_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
