/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** One frame as plain text, or the report's document: no terminal is needed. */
#ifndef SEEP_TOOL_TOP_ONCE_H
#define SEEP_TOOL_TOP_ONCE_H

#include "top_options.h"

/** Print what @arguments ask for to stdout. @return the exit code */
int seep_top_once(char *const *words, size_t count,
                  const struct seep_top_arguments *arguments);

#endif
