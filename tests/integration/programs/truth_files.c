/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mappings of files whose truth is known: cut, resized, over memory and under
 * it; and what only looks like a file.
 *
 * Invariant: nothing of the files is read but by the kernel, so their length
 * does not matter; no descriptor is left open.
 */
#include "truth_maps.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL
#define FILE_PATH "/proc/self/exe"

#define FILES(X)         \
    X(site_file_kept)    \
    X(site_file_shared)  \
    X(site_file_written) \
    X(site_file_middle)  \
    X(site_file_under)   \
    X(site_file_over)    \
    X(site_file_grow)    \
    X(site_file_fails)

#define MEMORY(X)           \
    X(site_memory_under)    \
    X(site_memory_over)     \
    X(site_memory_of_memfd) \
    X(site_memory_of_zero)

#define DEFINE_FILE(function)                                             \
    static struct truth_site truth_of_##function = {#function, "file", 0, \
                                                    0,         0,      0};
#define DEFINE_MEMORY(function)                                             \
    static struct truth_site truth_of_##function = {#function, "mapped", 0, \
                                                    0,         0,        0};
FILES(DEFINE_FILE)
MEMORY(DEFINE_MEMORY)

static struct truth_block made(struct truth_site *site, void *address,
                               size_t bytes)
{
    return truth_made(site, address == MAP_FAILED ? NULL : address, bytes);
}

static int opened(int fd)
{
    if (fd < 0) {
        abort();
    }
    return fd;
}

#define MAP_SITE(function, protection, flags, descriptor)           \
    SITE_FUNCTION static struct truth_block function(void *where,   \
                                                     size_t bytes)  \
    {                                                               \
        int fd = descriptor;                                        \
        void *address =                                             \
            mmap(where, bytes, (protection),                        \
                 (flags) | (where != NULL ? MAP_FIXED : 0), fd, 0); \
                                                                    \
        if (fd >= 0) {                                              \
            close(fd);                                              \
        }                                                           \
        return made(&truth_of_##function, address, bytes);          \
    }

#define OPEN_FILE opened(open(FILE_PATH, O_RDONLY | O_CLOEXEC))
#define OPEN_ZERO opened(open("/dev/zero", O_RDWR | O_CLOEXEC))
#define OPEN_MEMFD opened(memfd_create("truth", MFD_CLOEXEC))
#define READ_WRITE (PROT_READ | PROT_WRITE)

MAP_SITE(site_file_kept, PROT_READ, MAP_PRIVATE, OPEN_FILE)
MAP_SITE(site_file_shared, PROT_READ, MAP_SHARED, OPEN_FILE)
MAP_SITE(site_file_written, READ_WRITE, MAP_PRIVATE, OPEN_FILE)
MAP_SITE(site_file_middle, PROT_READ, MAP_PRIVATE, OPEN_FILE)
MAP_SITE(site_file_under, PROT_READ, MAP_PRIVATE, OPEN_FILE)
MAP_SITE(site_file_over, PROT_READ, MAP_PRIVATE, OPEN_FILE)
MAP_SITE(site_file_fails, PROT_READ, MAP_PRIVATE, -1)
MAP_SITE(site_memory_under, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1)
MAP_SITE(site_memory_over, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1)
MAP_SITE(site_memory_of_memfd, READ_WRITE, MAP_SHARED, OPEN_MEMFD)
MAP_SITE(site_memory_of_zero, READ_WRITE, MAP_PRIVATE, OPEN_ZERO)

SITE_FUNCTION static struct truth_block site_file_grow(struct truth_block old,
                                                       size_t bytes)
{
    void *address = mremap(old.address, old.bytes, bytes, MREMAP_MAYMOVE);

    if (address == MAP_FAILED) {
        return old;
    }
    truth_gone(&old);
    return made(&truth_of_site_file_grow, address, bytes);
}

static void release(struct truth_block block)
{
    truth_gone(&block);
    munmap(block.address, block.bytes);
}

static char *at(struct truth_block block, size_t pages)
{
    return (char *)block.address + pages * PAGE;
}

static void cut(void)
{
    struct truth_block middle = site_file_middle(NULL, 8 * PAGE);

    truth_part_gone(&middle, 3 * PAGE, 0);
    munmap(at(middle, 2), 3 * PAGE);
}

/* One munmap then takes pieces of both. */
static void map_over(void)
{
    struct truth_block memory = site_memory_under(NULL, 8 * PAGE);
    struct truth_block file = site_file_under(NULL, 8 * PAGE);
    struct truth_block over;

    truth_part_gone(&memory, 4 * PAGE, 0);
    over = site_file_over(at(memory, 4), 4 * PAGE);
    truth_part_gone(&memory, PAGE, 0);
    truth_part_gone(&over, 2 * PAGE, 0);
    munmap(at(memory, 3), 3 * PAGE);
    truth_part_gone(&file, 2 * PAGE, 0);
    (void)site_memory_over(at(file, 6), 2 * PAGE);
}

static void resize(void)
{
    struct truth_block block = site_file_shared(NULL, 4 * PAGE);

    block = site_file_grow(block, 64 * PAGE);
    block = site_file_grow(block, 2 * PAGE);
    block = site_file_grow(block, (size_t)1 << 60);
    release(block);
}

void truth_files_use(void)
{
    struct truth_block written = site_file_written(NULL, PAGE);

    *(volatile char *)written.address = 1;
    release(site_file_shared(NULL, 16 * PAGE));
    (void)site_file_kept(NULL, 2 * PAGE);
    (void)site_file_fails(NULL, 2 * PAGE);
    (void)site_memory_of_memfd(NULL, PAGE);
    release(site_memory_of_memfd(NULL, 4 * PAGE));
    (void)site_memory_of_zero(NULL, PAGE);
    cut();
    map_over();
    resize();
}

size_t truth_files_list(struct truth_site **sites)
{
    size_t count = 0;

#define LIST_SITE(function) sites[count++] = &truth_of_##function;
    FILES(LIST_SITE)
    MEMORY(LIST_SITE)
#undef LIST_SITE
    return count;
}
