/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The one thread-local object; see thread.h. */
#include "base/thread.h"

__thread struct seep_thread seep_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
