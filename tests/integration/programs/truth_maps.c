/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mappings whose truth is known: whole, cut at the head, at the tail and in
 * the middle, resized, moved, and mapped over.
 *
 * Invariant: only one's own pages are ever mapped over or unmapped, so no
 * other thread's mapping can be hit.
 */
#include "truth_maps.h"

#include <sys/mman.h>

#define PAGE 4096UL

#define SITES(X)         \
    X(site_map_whole)    \
    X(site_map_kept)     \
    X(site_map_shared)   \
    X(site_map_head)     \
    X(site_map_tail)     \
    X(site_map_middle)   \
    X(site_map_under)    \
    X(site_map_over)     \
    X(site_map_small)    \
    X(site_remap_grow)   \
    X(site_remap_shrink) \
    X(site_remap_fails)

#define DEFINE_SITE(function)                                               \
    static struct truth_site truth_of_##function = {#function, "mapped", 0, \
                                                    0,         0,        0};
SITES(DEFINE_SITE)

static struct truth_block made(struct truth_site *site, void *address,
                               size_t bytes)
{
    return truth_made(site, address == MAP_FAILED ? NULL : address, bytes);
}

#define MAP_SITE(function, kind)                                   \
    SITE_FUNCTION static struct truth_block function(size_t bytes) \
    {                                                              \
        return made(&truth_of_##function,                          \
                    mmap(NULL, bytes, PROT_READ | PROT_WRITE,      \
                         (kind) | MAP_ANONYMOUS, -1, 0),           \
                    bytes);                                        \
    }

MAP_SITE(site_map_whole, MAP_PRIVATE)
MAP_SITE(site_map_kept, MAP_PRIVATE)
MAP_SITE(site_map_shared, MAP_SHARED)
MAP_SITE(site_map_head, MAP_PRIVATE)
MAP_SITE(site_map_tail, MAP_PRIVATE)
MAP_SITE(site_map_middle, MAP_PRIVATE)
MAP_SITE(site_map_under, MAP_PRIVATE)
MAP_SITE(site_map_small, MAP_PRIVATE)

SITE_FUNCTION static struct truth_block site_map_over(char *where, size_t bytes)
{
    return made(&truth_of_site_map_over,
                mmap(where, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                bytes);
}

#define REMAP_SITE(function)                                                   \
    SITE_FUNCTION static struct truth_block function(struct truth_block old,   \
                                                     size_t bytes)             \
    {                                                                          \
        void *address = mremap(old.address, old.bytes, bytes, MREMAP_MAYMOVE); \
                                                                               \
        if (address == MAP_FAILED) {                                           \
            return old;                                                        \
        }                                                                      \
        truth_gone(&old);                                                      \
        return made(&truth_of_##function, address, bytes);                     \
    }

REMAP_SITE(site_remap_grow)
REMAP_SITE(site_remap_shrink)
REMAP_SITE(site_remap_fails)

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
    struct truth_block head = site_map_head(8 * PAGE);
    struct truth_block tail = site_map_tail(8 * PAGE);
    struct truth_block middle = site_map_middle(8 * PAGE);

    truth_part_gone(&head, 3 * PAGE, 0);
    munmap(head.address, 3 * PAGE);
    truth_part_gone(&tail, 5 * PAGE, 0);
    munmap(at(tail, 3), 5 * PAGE);
    /* two pages remain before the hole and three behind it */
    truth_part_gone(&middle, 3 * PAGE, 0);
    munmap(at(middle, 2), 3 * PAGE);
    truth_part_gone(&middle, 3 * PAGE, 0);
    munmap(at(middle, 5), 3 * PAGE);
}

static void map_over(void)
{
    struct truth_block under = site_map_under(8 * PAGE);

    truth_part_gone(&under, 2 * PAGE, 0);
    (void)site_map_over(at(under, 6), 2 * PAGE);
}

static void resize(void)
{
    struct truth_block block = site_map_whole(4 * PAGE);

    block = site_remap_grow(block, 64 * PAGE);
    block = site_remap_shrink(block, 2 * PAGE);
    block = site_remap_fails(block, (size_t)1 << 60);
    release(block);
}

void truth_maps_use(void)
{
    struct truth_block small = site_map_small(PAGE + 1);

    release(site_map_whole(16 * PAGE));
    (void)site_map_kept(2 * PAGE);
    release(site_map_shared(4 * PAGE));
    cut();
    map_over();
    resize();
    /* the kernel maps whole pages, whatever was asked for */
    munmap(small.address, PAGE + 1);
    truth_gone(&small);
}

size_t truth_maps_list(struct truth_site **sites)
{
    size_t count = 0;

#define LIST_SITE(function) sites[count++] = &truth_of_##function;
    SITES(LIST_SITE)
#undef LIST_SITE
    return count;
}
