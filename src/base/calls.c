/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The set of system calls that are not made. */
#include "base/calls.h"

uint64_t seep_calls_denied;
