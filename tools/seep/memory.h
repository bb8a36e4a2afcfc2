/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Has any allocation of this process failed? For who ends with an answer that
 * may not be whole. Any thread.
 */
#ifndef SEEP_TOOL_MEMORY_H
#define SEEP_TOOL_MEMORY_H

#include <stdbool.h>

bool seep_memory_has_failed(void);

#endif
