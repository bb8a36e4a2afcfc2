/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Prototypes of the hooks, from hooks.def. They carry the names of what they
 * stand before, so libc's own headers for those are not included beside this.
 */
#ifndef SEEP_PRELOAD_HOOKS_H
#define SEEP_PRELOAD_HOOKS_H

#include <stddef.h>
#include <sys/types.h>

#include "base/compiler.h"

struct dl_phdr_info;

#define SEEP_HOOK(name, result, parameters) SEEP_EXPORT result name parameters;
#include "preload/hooks.def"
#undef SEEP_HOOK

#endif
