/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What programs do to mappings that they did not make.
 *
 *   odd_maps unmap   unmap all that is shared and can be written to
 *   odd_maps raw     the same by the system call
 *   odd_maps lock    lock all that is mapped, and what will be
 *   odd_maps future  lock what will be mapped, before anything was allocated
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT 20000

static void *volatile kept[COUNT];

static void allocate(int from, int to)
{
    for (int i = from; i < to; i++) {
        kept[i] = malloc(100);
        if (kept[i] == NULL) {
            exit(2);
        }
    }
}

static void unmap(const char *line, int raw)
{
    unsigned long start;
    unsigned long end;
    char rights[8];

    if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 &&
        strcmp(rights, "rw-s") == 0) {
        if (raw) {
            syscall(SYS_munmap, start, end - start);
        } else if (munmap((void *)start, end - start) != 0) {
            exit(3);
        }
    }
}

static void unmap_all(int raw)
{
    FILE *file = fopen("/proc/self/maps", "re");
    char line[512];

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        unmap(line, raw);
    }
    if (file != NULL) {
        fclose(file);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "future") == 0 && mlockall(MCL_FUTURE) != 0) {
        return errno;
    }
    allocate(0, COUNT / 2);
    if (strcmp(what, "unmap") == 0 || strcmp(what, "raw") == 0) {
        unmap_all(strcmp(what, "raw") == 0);
    }
    if (strcmp(what, "lock") == 0 && mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        return errno;
    }
    allocate(COUNT / 2, COUNT);
    return 0;
}
