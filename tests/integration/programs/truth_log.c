/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The counters behind truth.h. Invariant: nothing here allocates; the file is
 * made in one static buffer and written by write(2).
 */
#include "truth.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static char buffer[64 * 1024];

static void add(uint64_t *where, uint64_t amount)
{
    __atomic_fetch_add(where, amount, __ATOMIC_RELAXED);
}

struct truth_block truth_made(struct truth_site *site, void *address,
                              size_t bytes)
{
    struct truth_block block = {address, bytes, site};

    if (address != NULL) {
        add(&site->allocated_bytes, bytes);
        add(&site->allocated_count, 1);
    }
    return block;
}

void truth_gone(const struct truth_block *block)
{
    if (block->address != NULL) {
        add(&block->site->freed_bytes, block->bytes);
        add(&block->site->freed_count, 1);
    }
}

void truth_part_gone(struct truth_block *block, size_t bytes, int count)
{
    add(&block->site->freed_bytes, bytes);
    add(&block->site->freed_count, (uint64_t)count);
    block->bytes -= bytes;
}

uint64_t truth_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t print_site(const struct truth_site *site, size_t used, int last)
{
    int printed = snprintf(
        buffer + used, sizeof(buffer) - used,
        "{\"name\":\"%s\",\"space\":\"%s\",\"allocated_bytes\":%llu,"
        "\"allocated_count\":%llu,\"freed_bytes\":%llu,\"freed_count\":%llu}%s",
        site->name, site->space, (unsigned long long)site->allocated_bytes,
        (unsigned long long)site->allocated_count,
        (unsigned long long)site->freed_bytes,
        (unsigned long long)site->freed_count, last ? "]}\n" : ",\n");

    return used + (size_t)printed;
}

void truth_write(const char *path, struct truth_site *const *sites,
                 size_t count)
{
    size_t used = (size_t)snprintf(buffer, sizeof(buffer), "{\"sites\":[\n");
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    for (size_t i = 0; i < count; i++) {
        used = print_site(sites[i], used, i + 1 == count);
    }
    if (file < 0 || write(file, buffer, used) != (ssize_t)used) {
        _exit(3);
    }
    close(file);
}
