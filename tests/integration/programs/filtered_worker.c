/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Blocks, some of them kept, and no system call that it can do without. */
#include <stdlib.h>

#define KEPT_COUNT 200

static void *volatile kept[KEPT_COUNT];

int main(void)
{
    for (size_t i = 0; i < KEPT_COUNT; i++) {
        kept[i] = malloc(1000);
        free(malloc(500));
    }
    return 3;
}
