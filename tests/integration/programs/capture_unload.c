/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One source, two libraries whose code is the same byte for byte but for the
 * size of a frame: a rule that outlives the one is wrong for the other at the
 * very same address. Used by the program `unload`.
 */
#include <stdlib.h>

void *unload_allocate(size_t bytes);

void *unload_allocate(size_t bytes)
{
    volatile char frame[FRAME_BYTES];
    void *block;

    frame[0] = (char)bytes;
    block = malloc(bytes);
    frame[1] = frame[0];
    return block;
}
