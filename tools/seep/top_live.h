/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** The live view: reports, keys and signals brought together. */
#ifndef SEEP_TOOL_TOP_LIVE_H
#define SEEP_TOOL_TOP_LIVE_H

#include "top_options.h"

/** Until q. @return the exit code; does not return after a signal that ends */
int seep_top_live(char *const *words, size_t count,
                  const struct seep_top_arguments *arguments);

#endif
