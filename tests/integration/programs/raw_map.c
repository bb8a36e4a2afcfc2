/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps memory by the bare system call, which no hook sees, and tells where.
 *
 *   raw_map BYTES COUNT PAUSE_US [together|apart [STOP]]
 *
 * apart: with a guard between, so that the kernel merges none of them.
 * STOP: it ends before COUNT, once a file of that name is there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GUARD_BYTES 65536U
#define RECORDED_BYTES ((size_t)64 << 20)

int main(int argc, char **argv)
{
    size_t bytes = argc > 3 ? strtoul(argv[1], NULL, 10) : 0;
    long count = argc > 3 ? strtol(argv[2], NULL, 10) : 0;
    useconds_t pause_us = argc > 3 ? (useconds_t)strtoul(argv[3], NULL, 10) : 0;
    size_t guard_bytes =
        argc > 4 && strcmp(argv[4], "apart") == 0 ? GUARD_BYTES : 0;
    /* never touched, so that there is something to record */
    char *recorded = malloc(RECORDED_BYTES);

    for (long i = 0; recorded != NULL && bytes > 0 && i < count; i++) {
        long at =
            syscall(SYS_mmap, NULL, bytes + guard_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
        if (at == -1) {
            return 1;
        }
        if (guard_bytes > 0) {
            syscall(SYS_mprotect, at + (long)bytes, guard_bytes, PROT_NONE);
        }
        memset((void *)at, 1, bytes);
        printf("%lx\n", (unsigned long)at);
        fflush(stdout);
        usleep(pause_us);
        if (argc > 5 && access(argv[5], F_OK) == 0) {
            break;
        }
    }
    return 0;
}
