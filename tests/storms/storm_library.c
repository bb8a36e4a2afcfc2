/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What storm.c loads: one block of it, by the allocator that it is given. */
#include <stdlib.h>

void *storm_make(size_t bytes);
void storm_drop(void *block);

void *storm_make(size_t bytes)
{
    return malloc(bytes);
}

void storm_drop(void *block)
{
    free(block);
}
