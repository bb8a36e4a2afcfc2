/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Which of some words was meant by one that is none of them.
 */
#ifndef SEEP_TOOL_NEAREST_H
#define SEEP_TOOL_NEAREST_H

#include <stddef.h>

/** The one of @names that is nearest to @word, or NULL if none is near. */
const char *seep_nearest(const char *word, const char *const *names,
                         size_t count);

#endif
