/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Many call sites: each number's bits choose a way down through functions, so
 * that every number is a stack of its own.
 *
 *     many_sites COUNT BLOCKS_A_SITE
 *
 * Invariant: COUNT sites, each with BLOCKS_A_SITE blocks of 32 bytes, every
 * second one freed.
 */
#include <stdlib.h>

#include "truth.h"

#define DEPTH 16

static void *descend(unsigned path, unsigned depth);

SITE_FUNCTION static void *site_bottom(void)
{
    return malloc(32);
}

SITE_FUNCTION static void *turn_left(unsigned path, unsigned depth)
{
    return descend(path, depth);
}

SITE_FUNCTION static void *turn_right(unsigned path, unsigned depth)
{
    return descend(path, depth);
}

static void *descend(unsigned path, unsigned depth)
{
    if (depth == DEPTH) {
        return site_bottom();
    }
    return (path >> depth & 1) != 0 ? turn_right(path, depth + 1)
                                    : turn_left(path, depth + 1);
}

int main(int argument_count, char **arguments)
{
    unsigned count;
    unsigned blocks;

    if (argument_count != 3) {
        return 2;
    }
    count = (unsigned)atoi(arguments[1]);
    blocks = (unsigned)atoi(arguments[2]);
    for (unsigned block = 0; block < blocks; block++) {
        for (unsigned path = 0; path < count; path++) {
            void *address = descend(path, 0);

            if (block % 2 == 1) {
                free(address);
            }
        }
    }
    return 0;
}
