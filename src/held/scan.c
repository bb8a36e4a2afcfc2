/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pass over memory; see memory.h.
 *
 * Invariant: a page in which no word was an address, once, is not read again
 * within one question: weights and tensors are nearly all of a model server's
 * memory. A page that is written to meanwhile costs what it came to hold, and
 * the question is asked again where too much has no answer.
 */
#include "held/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"

#define FILTER_BITS 22U
#define FILTER_WORDS (UINT64_C(1) << (FILTER_BITS - 6))
#define PAGE_SHIFT 12
#define MARKED_BYTES_MOST (UINT64_C(1) << 40)

static uint64_t bit_of(uint64_t page)
{
    return (page ^ page >> FILTER_BITS) & ((UINT64_C(1) << FILTER_BITS) - 1);
}

int seep_held_scan_add(struct seep_held_scan *scan, uint64_t start,
                       uint64_t end, uint32_t owner)
{
    if ((scan->range_count & (scan->range_count - 1)) == 0) {
        size_t capacity = scan->range_count < 64 ? 64 : 2 * scan->range_count;
        struct seep_held_range *ranges =
            realloc(scan->ranges, capacity * sizeof(*ranges));

        if (ranges == NULL) {
            return -ENOMEM;
        }
        scan->ranges = ranges;
    }
    scan->ranges[scan->range_count++] =
        (struct seep_held_range){start, end, owner};
    return 0;
}

static int compare_ranges(const void *one, const void *other)
{
    const struct seep_held_range *a = one;
    const struct seep_held_range *b = other;

    return (a->start > b->start) - (a->start < b->start);
}

int seep_held_scan_prepare(struct seep_held_scan *scan)
{
    uint64_t top = 0;
    uint64_t marked = 0;
    bool is_full = false;

    if (scan->filter == NULL) {
        scan->filter = malloc(FILTER_WORDS * sizeof(*scan->filter));
        scan->first_pass = true;
    }
    if (scan->filter == NULL) {
        return -ENOMEM;
    }
    memset(scan->filter, 0, FILTER_WORDS * sizeof(*scan->filter));
    if (scan->range_count > 0) {
        qsort(scan->ranges, scan->range_count, sizeof(*scan->ranges),
              compare_ranges);
    }
    for (size_t i = 0; i < scan->range_count; i++) {
        const struct seep_held_range *range = &scan->ranges[i];
        uint64_t page = range->start >> PAGE_SHIFT;
        uint64_t last = (range->end - 1) >> PAGE_SHIFT;

        /* As many as it has bits: it tells nothing any more. */
        marked += last - page + 1;
        if (marked >> FILTER_BITS != 0 && !is_full) {
            memset(scan->filter, 0xff, FILTER_WORDS * sizeof(*scan->filter));
            is_full = true;
        }
        for (; page <= last && !is_full; page++) {
            scan->filter[bit_of(page) / 64] |= UINT64_C(1) << bit_of(page) % 64;
        }
        top = range->end > top ? range->end : top;
    }
    scan->base = scan->range_count > 0 ? scan->ranges[0].start : 0;
    scan->span = scan->range_count > 0 ? top - scan->base : 0;
    scan->hit_count = 0;
    scan->lost_count = 0;
    scan->error = 0;
    return 0;
}

static void add_hit(struct seep_held_scan *scan, struct seep_held_hit hit)
{
    if (scan->hit_count == scan->hit_capacity) {
        size_t capacity =
            scan->hit_capacity == 0 ? 4096 : 2 * scan->hit_capacity;
        struct seep_held_hit *hits =
            capacity > SEEP_HELD_HITS_MOST
                ? NULL
                : realloc(scan->hits, capacity * sizeof(*hits));

        if (hits == NULL) {
            scan->lost_count++;
            return;
        }
        scan->hits = hits;
        scan->hit_capacity = capacity;
    }
    scan->hits[scan->hit_count++] = hit;
}

void seep_held_scan_word(struct seep_held_scan *scan, uint64_t at,
                         uint64_t value)
{
    uint64_t bit = bit_of(value >> PAGE_SHIFT);
    size_t next;

    if (value - scan->base >= scan->span ||
        (scan->filter[bit / 64] >> bit % 64 & 1) == 0) {
        return;
    }
    next = SEEP_SORTED_UP_TO(scan->ranges, scan->range_count, start, value);
    if (next > 0 && value < scan->ranges[next - 1].end) {
        add_hit(scan, (struct seep_held_hit){at, value, (uint32_t)(next - 1)});
    }
}

static void mark_page(struct seep_held_map *map, uint64_t address)
{
    uint64_t number = (address - map->start) / SEEP_HELD_PAGE_BYTES;

    if (map->end - map->start > MARKED_BYTES_MOST) {
        return;
    }
    if (map->no_word == NULL) {
        map->no_word =
            calloc((map->end - map->start) / SEEP_HELD_PAGE_BYTES / 8 + 1, 1);
    }
    if (map->no_word != NULL) {
        map->no_word[number / 8] |= (uint8_t)(1U << number % 8);
    }
}

#define PAGE_WORDS (SEEP_HELD_PAGE_BYTES / 8)

static void note_pages(const struct seep_held_scan *scan,
                       struct seep_held_map *map, const uint64_t *words,
                       uint64_t address, size_t word_count)
{
    for (size_t i = 0; i + PAGE_WORDS <= word_count; i += PAGE_WORDS) {
        bool any = false;

        for (size_t k = 0; k < PAGE_WORDS; k++) {
            any |= words[i + k] - scan->words_from < scan->words_span;
        }
        if (!any) {
            mark_page(map, address + 8 * i);
        }
    }
}

static void visit(void *context, struct seep_held_map *map,
                  const uint64_t *words, uint64_t address, size_t word_count)
{
    struct seep_held_scan *scan = context;
    uint64_t base = scan->base;
    uint64_t span = scan->span;
    size_t i = 0;

    if (scan->first_pass) {
        note_pages(scan, map, words, address, word_count);
    }
    for (; i + 8 <= word_count; i += 8) {
        bool any = false;

        for (size_t k = 0; k < 8; k++) {
            any |= words[i + k] - base < span;
        }
        for (size_t k = 0; any && k < 8; k++) {
            seep_held_scan_word(scan, address + 8 * (i + k), words[i + k]);
        }
    }
    for (; i < word_count; i++) {
        seep_held_scan_word(scan, address + 8 * i, words[i]);
    }
}

/* Whatever is held lies between the first and the last of what is searched. */
static void find_span(struct seep_held_scan *scan,
                      const struct seep_held_memory *memory)
{
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;

    for (size_t i = 0; i < memory->map_count; i++) {
        const struct seep_held_map *map = &memory->maps[i];

        if (seep_held_map_is_searched(map)) {
            first = map->start < first ? map->start : first;
            last = map->end > last ? map->end : last;
        }
    }
    scan->words_from = first;
    scan->words_span = last > first ? last - first : 0;
}

int seep_held_scan_run(struct seep_held_scan *scan,
                       struct seep_held_memory *memory)
{
    int error = seep_held_scan_prepare(scan);

    if (error < 0) {
        return error;
    }
    if (scan->first_pass) {
        find_span(scan, memory);
    }
    memory->stats.absent_bytes = 0;
    memory->stats.swapped_bytes = 0;
    memory->stats.failed_bytes = 0;
    memory->stats.scan_count++;
    for (size_t i = 0; i < memory->map_count; i++) {
        if (seep_held_map_is_searched(&memory->maps[i])) {
            seep_held_each_page(memory, &memory->maps[i], visit, scan);
        }
    }
    scan->first_pass = false;
    return scan->error;
}

void seep_held_scan_clear(struct seep_held_scan *scan)
{
    scan->range_count = 0;
    scan->hit_count = 0;
    free(scan->ranges);
    scan->ranges = NULL;
}

void seep_held_scan_fini(struct seep_held_scan *scan)
{
    free(scan->ranges);
    free(scan->hits);
    free(scan->filter);
    *scan = (struct seep_held_scan){0};
}
