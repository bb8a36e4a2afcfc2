/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is on the heap when main() begins: nothing of ours may be.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    struct mallinfo2 info = mallinfo2();

    printf("%zu bytes in use, %zu from the kernel, %zu free\n", info.uordblks,
           info.arena, info.fordblks);
    return 0;
}
