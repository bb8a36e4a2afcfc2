/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The one thread-local object, whose clock it is, and whether the cycle counter
 * may be read. */
#include "base/thread.h"

int (*seep_clock_gettime)(clockid_t clock, struct timespec *ret_time)
    __attribute__((visibility("hidden"))) = clock_gettime;

bool seep_clock_forbidden __attribute__((visibility("hidden")));

__thread struct seep_thread seep_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
