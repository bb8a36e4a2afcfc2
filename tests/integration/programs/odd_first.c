/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One call before any other of the program's and before every constructor:
 *
 *     odd_first NAME
 *
 * Invariant: what is printed and returned is the same with us and without.
 */
#include <dlfcn.h>
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

#define PAGE_BYTES 4096

static volatile size_t most = SIZE_MAX / 2;
static const void *result;
static int error;
static char page[2 * PAGE_BYTES] __attribute__((aligned(PAGE_BYTES)));

static const void *as_pointer(long answer)
{
    return answer == 0 ? page : NULL;
}

static const void *mapped(const void *map)
{
    return map == MAP_FAILED ? NULL : map;
}

static int stop_at_first(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)info;
    (void)size;
    (void)data;
    return 1;
}

static const void *aligned(void)
{
    void *block;

    return posix_memalign(&block, 64, 100) == 0 ? block : NULL;
}

static const void *map_page(void)
{
    return mapped(
        mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

#define CALLS(X)                                                               \
    X(malloc, malloc(10))                                                      \
    X(calloc, calloc(3, 10))                                                   \
    X(calloc_refused, calloc(most, 3))                                         \
    X(realloc, realloc(NULL, 10))                                              \
    X(reallocarray, reallocarray(NULL, 3, 10))                                 \
    X(free, (free(NULL), page))                                                \
    X(posix_memalign, aligned())                                               \
    X(aligned_alloc, aligned_alloc(64, 128))                                   \
    X(memalign, memalign(64, 100))                                             \
    X(valloc, valloc(10))                                                      \
    X(pvalloc, pvalloc(10))                                                    \
    X(malloc_usable_size, as_pointer((long)malloc_usable_size(NULL)))          \
    X(mmap, map_page())                                                        \
    X(mmap64, mapped(mmap64(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE, -1, 0))) \
    X(munmap, as_pointer(munmap(page, PAGE_BYTES)))                            \
    X(munmap_refused, as_pointer(munmap(page + 1, PAGE_BYTES)))                \
    X(mremap, mapped(mremap(page, PAGE_BYTES, 2 * PAGE_BYTES, 0)))             \
    X(dlclose, as_pointer(dlclose(dlopen(NULL, RTLD_NOW))))                    \
    X(dl_iterate_phdr, as_pointer(dl_iterate_phdr(stop_at_first, NULL) - 1))   \
    X(prctl, as_pointer(prctl(PR_SET_NAME, "first", 0, 0, 0)))                 \
    X(prctl_refused, as_pointer(prctl(-1, 0, 0, 0, 0)))                        \
    X(syscall, as_pointer(syscall(SYS_getpid) - getpid()))                     \
    X(syscall_refused, as_pointer(syscall(-1)))                                \
    X(pthread_setname_np,                                                      \
      as_pointer(pthread_setname_np(pthread_self(), "first")))                 \
    X(exit, (exit(3), page))

static void call_first(int argc, char **argv, char **variables)
{
    (void)variables;
    if (argc < 2) {
        return;
    }
    errno = 0;
#define CALL(name, call)               \
    if (strcmp(argv[1], #name) == 0) { \
        result = call;                 \
        error = errno;                 \
    }
    CALLS(CALL)
#undef CALL
}

__attribute__((section(".preinit_array"),
               used)) static void (*const first)(int, char **,
                                                 char **) = call_first;

int main(int argc, char **argv)
{
    if (argc > 1) {
        printf("%s %d %d\n", argv[1], result != NULL, error);
        return 0;
    }
#define TELL(name, call) puts(#name);
    CALLS(TELL)
#undef TELL
    return 0;
}
