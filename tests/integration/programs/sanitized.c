/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that is built with AddressSanitizer: with an argument it uses a
 * block that it has freed, and must still be caught.
 */
#include <stdio.h>
#include <stdlib.h>

int main(int argument_count, char **arguments)
{
    volatile char *block = malloc(100);

    (void)arguments;
    for (int i = 0; i < 1000; i++) {
        free(malloc((size_t)i));
    }
    free((void *)block);
    if (argument_count > 1) {
        block[0] = 1;
    }
    puts("sane");
    return 0;
}
