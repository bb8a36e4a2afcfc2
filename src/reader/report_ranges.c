/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See report_ranges.h. */
#include "reader/report_ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader/snapshot.h"

/* glibc's arenas but the first lie in heaps so aligned (HEAP_MAX_SIZE). */
#define GLIBC_HEAP_BYTES (UINT64_C(64) << 20)

static bool is_aligned(const struct seep_look_mapping *mapping)
{
    return mapping->name[0] == '\0' && mapping->start % GLIBC_HEAP_BYTES == 0;
}

/* A heap never begins anywhere else: a mapping that grows downwards passes
 * such an address, and an earlier or later look shows it inside of it. Two
 * heaps side by side are one mapping, which is aligned itself. */
static bool is_passed(const struct seep_looks *looks, uint64_t address)
{
    for (size_t i = 0; i < looks->count; i++) {
        for (size_t j = 0; j < looks->looks[i].mapping_count; j++) {
            const struct seep_look_mapping *at = &looks->looks[i].mappings[j];

            if (at->start < address && address < at->end && !is_aligned(at)) {
                return true;
            }
        }
    }
    return false;
}

bool seep_ranges_is_allocator(const struct seep_look_mapping *mapping,
                              const struct seep_looks *looks, bool glibc)
{
    if (strcmp(mapping->name, "[heap]") == 0) {
        return true;
    }
    return glibc && is_aligned(mapping) && !is_passed(looks, mapping->start);
}

static size_t count_mappings(const struct seep_looks *looks)
{
    size_t count = 0;

    for (size_t i = 0; looks != NULL && i < looks->count; i++) {
        count += looks->looks[i].mapping_count;
    }
    return count;
}

static void add(struct seep_ranges *ranges, uint64_t start, uint64_t end)
{
    if (end < start) {
        end = UINT64_MAX;
    }
    if (end > start) {
        ranges->ranges[ranges->count++] = (struct seep_range){start, end, 0};
    }
}

static bool is_wanted(const struct seep_view *view, struct seep_rec_live *live,
                      bool heap_only)
{
    uint32_t site = seep_snapshot_load(live->site);

    return seep_snapshot_load(live->address) != 0 &&
           site < view->site_capacity &&
           (!heap_only || view->sites[site].space == SEEP_SPACE_HEAP);
}

static int compare(const void *a, const void *b)
{
    const struct seep_range *left = a;
    const struct seep_range *right = b;

    return (left->start > right->start) - (left->start < right->start);
}

static void seal(struct seep_ranges *ranges)
{
    uint64_t reach = 0;

    if (ranges->count > 0) {
        qsort(ranges->ranges, ranges->count, sizeof(*ranges->ranges), compare);
    }
    for (size_t i = 0; i < ranges->count; i++) {
        reach = ranges->ranges[i].end > reach ? ranges->ranges[i].end : reach;
        ranges->ranges[i].reach = reach;
    }
}

int seep_ranges_init(struct seep_ranges *ret_ranges,
                     const struct seep_view *view,
                     const struct seep_looks *looks, bool heap_only, bool glibc)
{
    size_t count = count_mappings(looks);

    for (uint32_t i = 0; i < view->live_capacity; i++) {
        count += is_wanted(view, &view->live[i], heap_only);
    }
    ret_ranges->count = 0;
    ret_ranges->ranges = malloc((count + 1) * sizeof(*ret_ranges->ranges));
    if (ret_ranges->ranges == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < view->live_capacity; i++) {
        struct seep_rec_live *live = &view->live[i];

        if (is_wanted(view, live, heap_only)) {
            uint64_t start = seep_snapshot_load(live->address);

            add(ret_ranges, start,
                start +
                    (seep_snapshot_load(live->size_level) & SEEP_SIZE_MASK));
        }
    }
    for (size_t i = 0; looks != NULL && i < looks->count; i++) {
        for (size_t j = 0; j < looks->looks[i].mapping_count; j++) {
            const struct seep_look_mapping *at = &looks->looks[i].mappings[j];

            if (seep_ranges_is_allocator(at, looks, glibc)) {
                add(ret_ranges, at->start, at->end);
            }
        }
    }
    seal(ret_ranges);
    return 0;
}

void seep_ranges_fini(struct seep_ranges *ranges)
{
    free(ranges->ranges);
    ranges->ranges = NULL;
    ranges->count = 0;
}

/* How many begin below @end. */
static size_t below(const struct seep_ranges *ranges, uint64_t end)
{
    size_t low = 0;
    size_t high = ranges->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ranges->ranges[middle].start < end) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool seep_ranges_meet(const struct seep_ranges *ranges, uint64_t start,
                      uint64_t end)
{
    size_t count = below(ranges, end);

    return count > 0 && ranges->ranges[count - 1].reach > start;
}

double seep_ranges_pages(const struct seep_view *view)
{
    struct seep_ranges heap;
    uint64_t next = 0; /* page that is not counted yet */
    double pages = 0;

    if (seep_ranges_init(&heap, view, NULL, true, false) != 0) {
        return 0;
    }
    for (size_t i = 0; i < heap.count; i++) {
        uint64_t first = heap.ranges[i].start / SEEP_PAGE_BYTES;
        uint64_t last = (heap.ranges[i].end - 1) / SEEP_PAGE_BYTES;

        first = first > next ? first : next;
        if (last >= first) {
            pages += (double)(last - first) + 1;
            next = last + 1;
        }
    }
    seep_ranges_fini(&heap);
    return pages * SEEP_PAGE_BYTES;
}
