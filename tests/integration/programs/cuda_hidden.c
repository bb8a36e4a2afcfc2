/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A library with the name of a driver that is reached by no function of the
 * driver's names, as by tables of its own: what it keeps of the host shows
 * that it is there.
 */
#include <stdlib.h>

#define BLOCKS 64

__attribute__((visibility("default"))) int hidden_start(size_t block_bytes);

static void *blocks[BLOCKS];

int hidden_start(size_t block_bytes)
{
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(block_bytes);
        if (blocks[i] == NULL) {
            return 1;
        }
    }
    return 0;
}
