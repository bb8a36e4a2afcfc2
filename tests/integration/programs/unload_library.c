/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One source, two libraries of the same shape but other frames: SECOND's
 * allocating function keeps a larger frame than FIRST's, so rules that were
 * cached for the one break on the other.
 */
#include <stdlib.h>

#include "truth.h"

#ifdef SECOND
#define FRAME_BYTES 1040
#define INNER site_of_second_library
#else
#define FRAME_BYTES 24
#define INNER site_of_first_library
#endif

void *INNER(size_t bytes);
void *unload_allocate(size_t bytes);

SITE_FUNCTION void *INNER(size_t bytes)
{
    volatile char frame[FRAME_BYTES];
    void *block;

    frame[0] = (char)bytes;
    frame[FRAME_BYTES - 1] = frame[0];
    block = malloc(bytes);
    frame[1] = frame[0];
    return block;
}

SITE_FUNCTION void *unload_allocate(size_t bytes)
{
    return INNER(bytes);
}
