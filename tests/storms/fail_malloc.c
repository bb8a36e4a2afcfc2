/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * To be preloaded: one allocation of `seep` fails, the FAIL_AT-th of each of
 * its processes; with FAIL_ON set all behind it too. What a verb starts is let
 * be. FAIL_COUNT is a file that gets how many there were.
 *
 * Invariant: nothing is allocated here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

static atomic_ulong count;
static unsigned long wanted;
static bool goes_on;
static pid_t first;

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FAIL_AT");

    if (at != NULL && strcmp(program_invocation_short_name, "seep") == 0) {
        wanted = strtoul(at, NULL, 10);
        goes_on = getenv("FAIL_ON") != NULL;
        first = getpid();
        /* What came before was the loader's. */
        atomic_store_explicit(&count, 0, memory_order_relaxed);
    }
}

__attribute__((destructor)) static void end(void)
{
    const char *path = first == getpid() ? getenv("FAIL_COUNT") : NULL;
    int file = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT, 0600);

    if (file >= 0) {
        dprintf(file, "%lu\n",
                atomic_load_explicit(&count, memory_order_relaxed));
        close(file);
    }
}

static bool fails(void)
{
    unsigned long number =
        atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) + 1;

    if (wanted == 0 || number < wanted || (number > wanted && !goes_on)) {
        return false;
    }
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes)
{
    return fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t number, size_t bytes)
{
    return fails() ? NULL : __libc_calloc(number, bytes);
}

void *realloc(void *block, size_t bytes)
{
    return fails() ? NULL : __libc_realloc(block, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    return fails() ? NULL : __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **ret_block, size_t alignment, size_t bytes)
{
    void *block = memalign(alignment, bytes);

    if (block == NULL) {
        return ENOMEM;
    }
    *ret_block = block;
    return 0;
}
