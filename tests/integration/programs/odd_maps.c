/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What programs do to mappings that they did not make.
 *
 *   odd_maps unmap   unmap all that is shared and can be written to
 *   odd_maps raw     the same by the system call
 *   odd_maps around [BYTES]
 *                    the same, each with a page before it and one behind, which
 *                    a mapping of so many bytes finds beside it
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
#define PAGE_BYTES 4096UL

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

static int neighbours;
static unsigned long room_start;

/* A page of our own at @address, if nothing is there. */
static unsigned long take_page(unsigned long address)
{
    void *page = mmap((void *)address, PAGE_BYTES, PROT_READ,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    if (page != MAP_FAILED && page != (void *)address) {
        munmap(page, PAGE_BYTES); /* before Linux 4.17 that is a hint */
        page = MAP_FAILED;
    }
    return page == MAP_FAILED ? 0 : PAGE_BYTES;
}

/* Must be gone again: then nothing is there. */
static void check_gone(unsigned long address)
{
    if (take_page(address) == 0) {
        exit(4);
    }
    munmap((void *)address, PAGE_BYTES);
    neighbours++;
}

static void unmap_around(unsigned long start, unsigned long end)
{
    const int is_made = start == room_start;
    unsigned long before = is_made ? PAGE_BYTES : take_page(start - PAGE_BYTES);
    unsigned long behind = is_made ? PAGE_BYTES : take_page(end);

    if (munmap((void *)(start - before), end - start + before + behind) != 0) {
        exit(3);
    }
    if (before != 0) {
        check_gone(start - before);
    }
    if (behind != 0) {
        check_gone(end);
    }
}

static void unmap(const char *line, const char *how)
{
    unsigned long start;
    unsigned long end;
    char rights[8];

    if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 &&
        strcmp(rights, "rw-s") == 0) {
        if (strcmp(how, "around") == 0) {
            unmap_around(start, end);
        } else if (strcmp(how, "raw") == 0) {
            syscall(SYS_munmap, start, end - start);
        } else if (munmap((void *)start, end - start) != 0) {
            exit(3);
        }
    }
}

static void unmap_all(const char *how)
{
    FILE *file = fopen("/proc/self/maps", "re");
    char line[512];

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        unmap(line, how);
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* By the system call, which nobody sees: the kernel has a mapping of just so
 * many bytes lie where it fits, between two pages that are taken. */
static void make_room(unsigned long bytes)
{
    unsigned long room =
        (unsigned long)syscall(SYS_mmap, NULL, bytes + 2 * PAGE_BYTES,
                               PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    syscall(SYS_munmap, room + PAGE_BYTES, bytes);
    room_start = room + PAGE_BYTES;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (argc > 2) {
        make_room(strtoul(argv[2], NULL, 10));
    }

    if (strcmp(what, "future") == 0 && mlockall(MCL_FUTURE) != 0) {
        return errno;
    }
    allocate(0, COUNT / 2);
    if (strcmp(what, "unmap") == 0 || strcmp(what, "raw") == 0 ||
        strcmp(what, "around") == 0) {
        unmap_all(what);
    }
    if (strcmp(what, "lock") == 0 && mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        return errno;
    }
    allocate(COUNT / 2, COUNT);
    if (strcmp(what, "around") == 0) {
        fprintf(stderr, "%d\n", neighbours);
    }
    return 0;
}
