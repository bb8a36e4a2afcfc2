/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that brings its own malloc, and counts its calls: a preloaded
 * library must neither take them nor add to them.
 *
 * Invariant: the counts depend on the program only.
 */
#include <errno.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES ((size_t)8 << 20)
#define HEAD_BYTES 16

static alignas(16) char arena[ARENA_BYTES];
static size_t used_bytes;
static unsigned malloc_count;
static unsigned free_count;

void *malloc(size_t bytes)
{
    size_t whole = (bytes + HEAD_BYTES + 15) & ~(size_t)15;
    char *block = arena + used_bytes;

    if (bytes > ARENA_BYTES || whole > ARENA_BYTES - used_bytes) {
        errno = ENOMEM;
        return NULL;
    }
    malloc_count++;
    used_bytes += whole;
    memcpy(block, &bytes, sizeof(bytes));
    return block + HEAD_BYTES;
}

void free(void *address)
{
    free_count += address != NULL;
}

void *calloc(size_t count, size_t bytes)
{
    return bytes != 0 && count > SIZE_MAX / bytes ? NULL
                                                  : malloc(count * bytes);
}

void *realloc(void *address, size_t bytes)
{
    void *block = malloc(bytes);
    size_t old = 0;

    if (address != NULL && block != NULL) {
        memcpy(&old, (char *)address - HEAD_BYTES, sizeof(old));
        memcpy(block, address, old < bytes ? old : bytes);
        free(address);
    }
    return block;
}

int main(void)
{
    unsigned mallocs = malloc_count;
    unsigned frees = free_count;
    char line[128];

    for (int i = 0; i < 1000; i++) {
        free(realloc(malloc(64), 100));
    }
    snprintf(line, sizeof(line), "malloc %u free %u\n", malloc_count - mallocs,
             free_count - frees);
    fputs(line, stdout);
    return 0;
}
