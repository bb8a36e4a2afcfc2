/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocks that stay, each with a size that tells its stack: 50000 + depth bytes
 * by way of depth + 1 frames of nest(), and 70000 from below an array whose
 * length no compiler knows. Exit 0.
 */
#include <stdlib.h>

#define FRAME __attribute__((noinline, noclone))

static void *kept[64];
static int kept_count;

FRAME static void keep(size_t bytes)
{
    kept[kept_count++] = malloc(bytes);
}

FRAME static int nest(int depth, size_t bytes)
{
    if (depth == 0) {
        keep(bytes);
        return 1;
    }
    depth = nest(depth - 1, bytes) + 1;
    __asm__ volatile("" : "+r"(depth)); /* no loop in the place of calls */
    return depth;
}

FRAME static int with_array(size_t count)
{
    volatile char array[count];

    array[count / 2] = 1;
    nest(3, 70000);
    return array[count / 2];
}

int main(void)
{
    for (int depth = 0; depth < 20; depth++) {
        nest(depth, 50000 + (size_t)depth);
    }
    return with_array(5000) != 1 || kept_count != 21;
}
