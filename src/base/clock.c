/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether the cycle counter may be read; see clock.h. */
#include "base/clock.h"

bool seep_clock_forbidden __attribute__((visibility("hidden")));
