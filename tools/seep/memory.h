/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The memory of the command itself.
 */
#ifndef SEEP_TOOL_MEMORY_H
#define SEEP_TOOL_MEMORY_H

#include <stdbool.h>

/** Once, before what is large. */
void seep_memory_init(void);

/** Has any allocation of this process failed? For who ends with an answer that
 * may not be whole. Any thread. */
bool seep_memory_has_failed(void);

#endif
