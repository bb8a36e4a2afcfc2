/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Prototypes of what programs call by themselves, from hooks.def.
 */
#ifndef SEEP_PRELOAD_CALLS_H
#define SEEP_PRELOAD_CALLS_H

#include <stdint.h>

#include "base/compiler.h"

struct seep_stats;

#define SEEP_HOOK(name, result, parameters)
#define SEEP_CALL(name, result, parameters) SEEP_EXPORT result name parameters;
#include "preload/hooks.def"
#undef SEEP_CALL
#undef SEEP_HOOK

#endif
