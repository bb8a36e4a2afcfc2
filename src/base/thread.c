/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The one thread-local object, and whether the cycle counter may be read. */
#include "base/thread.h"

bool seep_clock_forbidden __attribute__((visibility("hidden")));

__thread struct seep_thread seep_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
