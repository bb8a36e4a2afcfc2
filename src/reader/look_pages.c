/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pages of mappings; see look_pages.h. Invariant: no more is read than windows
 * that begin in a mapping, and neighbours share them: a system call a mapping
 * would cost as much as smaps.
 */
#include "reader/look_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WINDOW_PAGES 8192U
#define ENTRY_PRESENT ((uint64_t)1 << 63)
#define ENTRY_SWAP ((uint64_t)1 << 62)
#define ENTRY_FILE ((uint64_t)1 << 61) /* or shared memory */

struct window {
    int fd;
    uint64_t page_bytes;
    uint64_t start; /* pages */
    uint64_t end;
    uint64_t entries[WINDOW_PAGES];
};

static void load(struct window *window, uint64_t start, uint64_t end)
{
    char *bytes = (char *)window->entries;
    size_t wanted = (size_t)(end - start) * sizeof(uint64_t);
    size_t length = 0;
    ssize_t got;

    while (length < wanted &&
           (got = pread(window->fd, bytes + length, wanted - length,
                        (off_t)(start * sizeof(uint64_t) + length))) > 0) {
        length += (size_t)got;
    }
    window->start = start;
    window->end = start + length / sizeof(uint64_t);
}

/* Up to where mappings reach that begin in the window at @page; the kernel
 * lists them by address, but no count may hang on that. */
static uint64_t reach(const struct window *window,
                      const struct seep_look_mapping *mappings, size_t count,
                      uint64_t page)
{
    uint64_t limit = page + WINDOW_PAGES;
    uint64_t end = page;

    for (size_t i = 0; i < count; i++) {
        if (mappings[i].start / window->page_bytes >= limit) {
            break;
        }
        uint64_t mapping_end = mappings[i].end / window->page_bytes;
        end = mapping_end > end ? mapping_end : end;
    }
    return end < limit ? end : limit;
}

static void count_pages(const struct window *window, uint64_t start,
                        uint64_t end, struct seep_look_mapping *mapping)
{
    uint64_t present = 0;
    uint64_t anonymous = 0;
    uint64_t swapped = 0;

    for (uint64_t i = start; i < end; i++) {
        uint64_t entry = window->entries[i - window->start];
        bool is_present = (entry & ENTRY_PRESENT) != 0;
        present += is_present;
        anonymous += is_present && (entry & ENTRY_FILE) == 0;
        swapped += (entry & ENTRY_SWAP) != 0;
    }
    mapping->rss_bytes += present * window->page_bytes;
    mapping->anonymous_bytes += anonymous * window->page_bytes;
    mapping->swap_bytes += swapped * window->page_bytes;
}

static void fill(struct window *window, struct seep_look_mapping *mappings,
                 size_t count)
{
    uint64_t page = mappings->start / window->page_bytes;
    uint64_t end = mappings->end / window->page_bytes;

    while (page < end) {
        if (page < window->start || page >= window->end) {
            load(window, page, reach(window, mappings, count, page));
        }
        uint64_t stop = end < window->end ? end : window->end;
        if (stop <= page) {
            return; /* beyond what a process can have */
        }
        count_pages(window, page, stop, mappings);
        page = stop;
    }
}

int seep_look_pages(pid_t pid, struct seep_look_mapping *mappings, size_t count)
{
    char path[64];
    struct window *window = calloc(1, sizeof(*window));

    if (window == NULL) {
        return -ENOMEM;
    }
    snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
    window->fd = open(path, O_RDONLY | O_CLOEXEC);
    window->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    int error = window->fd < 0 ? -errno : 0;
    for (size_t i = 0; error == 0 && i < count; i++) {
        fill(window, &mappings[i], count - i);
    }
    if (window->fd >= 0) {
        close(window->fd);
    }
    free(window);
    return error;
}
