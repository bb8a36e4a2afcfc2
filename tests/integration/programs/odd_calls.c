/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every function of the family with odd arguments, and what came of each.
 *
 *     odd_calls [glibc]
 *     odd_calls_early
 *
 * The second tells what a library saw, which is built of the same and tries it
 * in an IFUNC resolver, where nothing of a preloaded library is relocated yet.
 *
 * Invariant: what is printed is the same with us and without, whatever the
 * allocator: no address, and no size that is the allocator's affair.
 */
#include "odd_calls.h"

#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEPT 77 /* what errno is before each call */
#define PAGE_BYTES ((size_t)4096)
#define HUGE_BYTES (SIZE_MAX / 2 - 4096)

static struct odd_calls_note notes[ODD_CALLS_MOST];
static size_t count;

/* Not what the compiler can foresee. */
static volatile size_t zero;
static volatile size_t most = SIZE_MAX;

/* One letter: none, misaligned, wrong bytes, or good; and errno. */
static void note(const void *block, size_t alignment, size_t size, int fill)
{
    struct odd_calls_note *note = &notes[count++];

    note->error = errno;
    note->what = '+';
    if (block == NULL) {
        note->what = '0';
    } else if ((uintptr_t)block % alignment != 0) {
        note->what = 'm';
    }
    for (size_t i = 0; block != NULL && fill >= 0 && i < size; i++) {
        if (((const unsigned char *)block)[i] != fill) {
            note->what = 'w';
        }
    }
    errno = KEPT;
}

static void *filled(void *block, size_t size)
{
    if (block != NULL) {
        for (size_t i = 0; i < size; i++) {
            ((volatile unsigned char *)block)[i] = 0x5a;
        }
    }
    return block;
}

static void plain(void)
{
    void *block = malloc(zero);

    note(block, 1, 0, -1);
    free(block);
    note(malloc(most), 1, 0, -1);
    note(malloc(HUGE_BYTES + zero), 1, 0, -1);
    block = calloc(3, 5);
    note(block, 8, 15, 0);
    free(block);
    block = calloc(zero, 5);
    note(block, 1, 0, -1);
    free(block);
    note(calloc(most, 2), 1, 0, -1);
    note(calloc(1, most), 1, 0, -1);
    free(NULL);
}

static void changed(void)
{
    void *volatile block = filled(realloc(NULL, 40), 40);

    note(block, 8, 40, 0x5a);
    note(realloc(block, most), 1, 0, -1);
    note(block, 8, 40, 0x5a); /* as it was */
    block = realloc(block, 4000);
    note(block, 8, 40, 0x5a);
    block = reallocarray(block, 5, 4);
    note(block, 8, 20, 0x5a);
    note(reallocarray(block, most, 2), 1, 0, -1);
    note(block, 8, 20, 0x5a);
    free(block);
    note(reallocarray(NULL, most / 2, 1), 1, 0, -1);
    block = reallocarray(NULL, 7, 3);
    note(block, 8, 0, -1);
    free(block);
}

/* What the allocators agree on; the rest is told by odd_calls_own(). */
static void aligned(void)
{
    void *block = &block;
    void *const untouched = block;

    note(posix_memalign(&block, 64, 100) == 0 ? block : NULL, 64, 0, -1);
    free(block);
    block = untouched;
    note(posix_memalign(&block, 3, 8) == EINVAL ? untouched : NULL, 1, 0, -1);
    note(posix_memalign(&block, 24, 8) == EINVAL ? untouched : NULL, 1, 0, -1);
    note(posix_memalign(&block, zero, 8) == EINVAL ? untouched : NULL, 1, 0,
         -1);
    note(posix_memalign(&block, 64, HUGE_BYTES) == ENOMEM ? untouched : NULL, 1,
         0, -1);
    note(block == untouched ? block : NULL, 1, 0, -1);
    block = aligned_alloc(256, 512);
    note(block, 256, 0, -1);
    free(block);
    note(aligned_alloc(64, HUGE_BYTES), 1, 0, -1);
    block = memalign(4096, 10);
    note(block, 4096, 0, -1);
    free(block);
    note(memalign(64, HUGE_BYTES), 1, 0, -1);
    block = valloc(100);
    note(block, 4096, 0, -1);
    free(block);
    note(valloc(HUGE_BYTES), 1, 0, -1);
    note(malloc_usable_size(NULL) == 0 ? &block : NULL, 1, 0, -1);
    block = malloc(100);
    note(malloc_usable_size(block) >= 100 ? block : NULL, 8, 0, -1);
    free(block);
}

/* Where allocators differ: one that lacks pvalloc() cannot free its blocks. */
static void of_glibc(void)
{
    static volatile size_t odd = 48;
    void *block = pvalloc(100);

    note(block, 4096, 0, -1);
    note(malloc_usable_size(block) >= 4096 ? block : NULL, 4096, 0, -1);
    free(block);
    note(pvalloc(HUGE_BYTES), 1, 0, -1);
    note(pvalloc(most), 1, 0, -1);
    block = memalign(odd, 10);
    note(block, 64, 0, -1);
    free(block);
    note(memalign(most / 2 + 2, 1), 1, 0, -1);
    note(aligned_alloc(most / 2 + 2, 1), 1, 0, -1);
    block = aligned_alloc(odd, 100);
    note(block, 64, 0, -1);
    free(block);
    block = realloc(NULL, zero);
    note(block, 1, 0, -1);
    free(block);
#ifndef ODD_CALLS_LIBRARY /* no block at that time is libc's, which frees */
    note(realloc(malloc(10), zero), 1, 0, -1);
    note(reallocarray(malloc(10), zero, 5), 1, 0, -1);
#endif
}

static void *refused(void *map)
{
    return map == MAP_FAILED ? NULL : map;
}

static void *map_pages(void *at, int flags)
{
    return mmap(at, 4 * PAGE_BYTES, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

/* Not in line: the site that a test looks for. */
static __attribute__((noinline)) void odd_calls_maps(void)
{
    char *pages = filled(map_pages(NULL, 0), 1);
    char *others = mmap64(NULL, 4 * PAGE_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    note(pages, PAGE_BYTES, 1, 0x5a);
    note(others, PAGE_BYTES, 1, 0);
    note(refused(
             mmap(NULL, zero, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
         1, 0, -1);
    note(refused(mmap64(NULL, 1, PROT_READ, MAP_PRIVATE, -1, 0)), 1, 0, -1);
    note(refused(map_pages(pages, MAP_FIXED_NOREPLACE)), 1, 0, -1);
    note(munmap(pages + 1, 1) == 0 ? pages : NULL, 1, 0, -1);
    note(munmap(pages, zero) == 0 ? pages : NULL, 1, 0, -1);
    note(munmap(pages + PAGE_BYTES, PAGE_BYTES) == 0 ? pages : NULL, 1, 1,
         0x5a);
    note(refused(mremap(pages + PAGE_BYTES, PAGE_BYTES, 2 * PAGE_BYTES,
                        MREMAP_MAYMOVE)),
         1, 0, -1);
    note(refused(mremap(pages, PAGE_BYTES, zero, 0)), 1, 0, -1);
    note(refused(mremap(pages, PAGE_BYTES, PAGE_BYTES, MREMAP_FIXED, others)),
         1, 0, -1);
    note(pages, PAGE_BYTES, 1, 0x5a);
    note(refused(mremap(pages, PAGE_BYTES, PAGE_BYTES,
                        MREMAP_MAYMOVE | MREMAP_FIXED, others)) == others
             ? others
             : NULL,
         PAGE_BYTES, 1, 0x5a);
    note(refused(mremap(others, 4 * PAGE_BYTES, PAGE_BYTES, 0)), PAGE_BYTES, 1,
         0x5a);
    others = mremap(others, PAGE_BYTES, 8 * PAGE_BYTES, MREMAP_MAYMOVE);
    note(others, PAGE_BYTES, 1, 0x5a);
    munmap(pages + 2 * PAGE_BYTES, 2 * PAGE_BYTES); /* what is left */
    pages = mremap(others, 8 * PAGE_BYTES, 8 * PAGE_BYTES,
                   MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL); /* Linux 5.7 */
    note(refused(pages), PAGE_BYTES, 1, 0x5a);
    munmap(others, 8 * PAGE_BYTES);
    munmap(pages, 8 * PAGE_BYTES); /* or an error twice */
}

/* Those through which a process may restrict itself; these do not. */
static void asked(void)
{
    char name[16];

    note(prctl(PR_GET_NAME, name, 0, 0, 0) == 0 ? name : NULL, 1, 0, -1);
    note(prctl(-1, 0, 0, 0, 0) == 0 ? name : NULL, 1, 0, -1);
    note(syscall(SYS_getpid) == getpid() ? name : NULL, 1, 0, -1);
    note(syscall(-1) == 0 ? name : NULL, 1, 0, -1);
    note(syscall(SYS_munmap, 1, 1) == 0 ? name : NULL, 1, 0, -1);
}

/* Not in line, as above. */
static __attribute__((noinline)) void odd_calls_all(void)
{
    plain();
    changed();
    aligned();
    odd_calls_maps();
    asked();
}

#ifdef ODD_CALLS_LIBRARY

static int stop_at_first(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)info;
    (void)size;
    (void)data;
    return 1;
}

/* Four: what cannot be had as early under the preload, and is refused. */
static void unserved(void)
{
    const size_t large = 3 << 19;

    malloc(large);
    malloc(large);
    note(malloc(large), 1, 0, -1);
    note(malloc(2 * large), 1, 0, -1);
    note(dl_iterate_phdr(stop_at_first, NULL) == 1 ? notes : NULL, 1, 0, -1);
    note(pthread_setname_np(pthread_self(), "odd") == 0 ? notes : NULL, 1, 0,
         -1);
}

static int answer(void)
{
    return 42;
}

/* Runs while this library is relocated, and nothing that is preloaded is. */
__attribute__((used)) static int (*resolve(void))(void)
{
    errno = KEPT;
    odd_calls_all();
    of_glibc();
    unserved();
    return answer;
}

/* Hidden: relocated last, when all that the resolver calls is. */
int odd_calls_answer(void)
    __attribute__((ifunc("resolve"), visibility("hidden")));

size_t odd_calls_early(const struct odd_calls_note **ret_notes)
{
    *ret_notes = notes;
    return odd_calls_answer() == 42 ? count : 0;
}

#else

static void tell(const struct odd_calls_note *those, size_t how_many)
{
    for (size_t i = 0; i < how_many; i++) {
        printf("%zu %c %d\n", i, those[i].what, those[i].error);
    }
}

int main(int argc, char **argv)
{
#ifdef ODD_CALLS_EARLY
    const struct odd_calls_note *early;
    size_t how_many = odd_calls_early(&early);

    (void)argc;
    (void)argv;
    (void)odd_calls_all;
    (void)of_glibc;
    tell(early, how_many);
#else
    free(malloc(1)); /* allocators begin */
    errno = KEPT;
    odd_calls_all();
    if (argc > 1 && strcmp(argv[1], "glibc") == 0) {
        of_glibc();
    }
    tell(notes, count);
#endif
    return 0;
}
#endif
