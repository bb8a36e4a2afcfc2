/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * exit() in the middle of a hook, at a moment that is no luck: the hook asks a
 * program that has this function whether Python ends, and it ends there.
 *
 * Exits with 6, or with 3 where nobody asks.
 */
#include <stdlib.h>

int Py_IsFinalizing(void);

static int armed;

static void allocate(void)
{
    void *volatile block = malloc(100000);

    free(block);
}

int Py_IsFinalizing(void)
{
    if (armed) {
        armed = 0;
        exit(6);
    }
    return 0;
}

int main(void)
{
    allocate();
    armed = 1;
    allocate();
    return 3;
}
