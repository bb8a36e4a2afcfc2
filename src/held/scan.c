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

/*
 * Where the words of a page point to, as a filter of places: of most pages
 * these are few, as what was made at one time lies together.
 */
#define PLACE_SHIFT 16
#define POINTS_WORDS 8U
#define POINTS_BITS (64U * POINTS_WORDS)
#define POINTS_OF_PLACE 3U
#define POINTS_PAGES 256U /* of a window */
#define POINTS_WINDOW_BYTES (POINTS_PAGES * POINTS_WORDS * 8U)
#define POINTS_BYTES_MOST (UINT64_C(64) << 20)
#define POINTS_WORTH_BYTES (UINT64_C(128) << 20) /* of less in all: no */
#define PLACES_MOST 512U /* more take as long as to read the page */

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

static uint64_t hash_of_place(uint64_t place)
{
    return place * UINT64_C(0x9e3779b97f4a7c15);
}

static uint32_t point_of(uint64_t hash, uint32_t i)
{
    return (uint32_t)(hash >> (55U - 9U * i)) & (POINTS_BITS - 1);
}

static int compare_ranges(const void *one, const void *other)
{
    const struct seep_held_range *a = one;
    const struct seep_held_range *b = other;

    return (a->start > b->start) - (a->start < b->start);
}

/* Of the ranges, if they are few and all of them lie where words were noted. */
static int find_places(struct seep_held_scan *scan)
{
    uint64_t last = UINT64_MAX;

    scan->place_count = 0;
    if (scan->first_pass || !scan->may_pass_over || scan->range_count == 0 ||
        scan->base < scan->words_from ||
        scan->base + scan->span > scan->words_from + scan->words_span) {
        return 0;
    }
    if (scan->places == NULL) {
        scan->places = malloc(PLACES_MOST * sizeof(*scan->places));
    }
    if (scan->places == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < scan->range_count; i++) {
        uint64_t place = scan->ranges[i].start >> PLACE_SHIFT;
        uint64_t end = (scan->ranges[i].end - 1) >> PLACE_SHIFT;

        for (place += place == last; place <= end; place++) {
            if (scan->place_count == PLACES_MOST) {
                scan->place_count = 0;
                return 0;
            }
            scan->places[scan->place_count++] = hash_of_place(place);
        }
        last = end;
    }
    return 0;
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
    return find_places(scan);
}

static const uint64_t *points_of(const struct seep_held_map *map,
                                 uint64_t number)
{
    const uint64_t *points =
        map->points == NULL ? NULL : map->points[number / POINTS_PAGES];

    return points == NULL ? NULL
                          : points + number % POINTS_PAGES * POINTS_WORDS;
}

bool seep_held_scan_wants(struct seep_held_scan *scan,
                          const struct seep_held_map *map, uint64_t number)
{
    const uint64_t *points =
        scan->place_count == 0 ? NULL : points_of(map, number);
    uint64_t any = 0;

    for (size_t i = 0; points != NULL && i < POINTS_WORDS; i++) {
        any |= points[i];
    }
    if (any == 0) {
        return true;
    }
    for (size_t i = 0; i < scan->place_count; i++) {
        bool has = true;

        for (uint32_t k = 0; has && k < POINTS_OF_PLACE; k++) {
            uint32_t point = point_of(scan->places[i], k);

            has = (points[point / 64] >> point % 64 & 1) != 0;
        }
        if (has) {
            return true;
        }
    }
    scan->has_passed_over = true;
    return false;
}

static size_t windows_of(const struct seep_held_map *map)
{
    return (size_t)((map->end - map->start) / SEEP_HELD_PAGE_BYTES) /
               POINTS_PAGES +
           1;
}

static size_t marks_of(const struct seep_held_map *map)
{
    return (size_t)((map->end - map->start) / SEEP_HELD_PAGE_BYTES) / 8 + 1;
}

/* Room of @count of @bytes, all 0; NULL: it is more than may be had. */
static void *points_room(struct seep_held_memory *memory, size_t count,
                         size_t bytes)
{
    void *room = count * bytes > POINTS_BYTES_MOST - memory->points_bytes
                     ? NULL
                     : calloc(count, bytes);

    memory->points_bytes += room == NULL ? 0 : count * bytes;
    return room;
}

void seep_held_scan_forget(struct seep_held_memory *memory,
                           struct seep_held_map *map)
{
    free(map->no_word);
    map->no_word = NULL;
    if (map->points == NULL) {
        return;
    }
    for (size_t i = 0; i < windows_of(map); i++) {
        if (map->points[i] != NULL) {
            free(map->points[i]);
            memory->points_bytes -= POINTS_WINDOW_BYTES;
        }
    }
    free(map->points);
    map->points = NULL;
    memory->points_bytes -= windows_of(map) * sizeof(*map->points);
}

/* Room for what is known of a mapping that is @map by now. */
static bool grow_points(struct seep_held_memory *memory,
                        const struct seep_held_map *map,
                        struct seep_held_map *before)
{
    size_t had = windows_of(before);
    size_t has = windows_of(map);
    uint64_t **points;

    if (before->points == NULL || had == has) {
        return true;
    }
    if ((has - had) * sizeof(*points) >
        POINTS_BYTES_MOST - memory->points_bytes) {
        return false;
    }
    points = realloc(before->points, has * sizeof(*points));
    if (points == NULL) {
        return false;
    }
    memset(points + had, 0, (has - had) * sizeof(*points));
    before->points = points;
    memory->points_bytes += (has - had) * sizeof(*points);
    return true;
}

static bool grow_marks(const struct seep_held_map *map,
                       struct seep_held_map *before)
{
    size_t had = marks_of(before);
    size_t has = marks_of(map);
    uint8_t *marks;

    if (before->no_word == NULL || had == has) {
        return true;
    }
    marks = map->end - map->start > MARKED_BYTES_MOST
                ? NULL
                : realloc(before->no_word, has);
    if (marks == NULL) {
        return false;
    }
    memset(marks + had, 0, has - had);
    before->no_word = marks;
    return true;
}

void seep_held_scan_keep(struct seep_held_memory *memory,
                         struct seep_held_map *map,
                         struct seep_held_map *before)
{
    if (map->start != before->start || map->end < before->end) {
        return;
    }
    /* What cannot be kept is forgotten with what was there before. */
    if (grow_marks(map, before)) {
        map->no_word = before->no_word;
        before->no_word = NULL;
    }
    if (grow_points(memory, map, before)) {
        map->points = before->points;
        before->points = NULL;
    }
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
        map->no_word = calloc(marks_of(map), 1);
    }
    if (map->no_word != NULL) {
        map->no_word[number / 8] |= (uint8_t)(1U << number % 8);
    }
}

#define PAGE_WORDS (SEEP_HELD_PAGE_BYTES / 8)
#define PLACES_KEPT 32U

/* Neighbours point to the same places: what was seen is not noted again. */
static void note_points(const struct seep_held_scan *scan, uint64_t *points,
                        const uint64_t *words)
{
    uint64_t seen[PLACES_KEPT];

    memset(seen, 0xff, sizeof(seen));
    memset(points, 0, POINTS_WORDS * sizeof(*points));
    for (size_t i = 0; i < PAGE_WORDS; i++) {
        uint64_t place = words[i] >> PLACE_SHIFT;
        uint64_t hash;

        if (words[i] - scan->words_from >= scan->words_span ||
            seen[place % PLACES_KEPT] == place) {
            continue;
        }
        seen[place % PLACES_KEPT] = place;
        hash = hash_of_place(place);
        for (uint32_t k = 0; k < POINTS_OF_PLACE; k++) {
            uint32_t point = point_of(hash, k);

            points[point / 64] |= UINT64_C(1) << point % 64;
        }
    }
}

/* Where the points of the page at @address are to be; NULL: nowhere. */
static uint64_t *points_at(struct seep_held_memory *memory,
                           struct seep_held_map *map, uint64_t address)
{
    uint64_t number = (address - map->start) / SEEP_HELD_PAGE_BYTES;
    uint64_t **window;

    if (memory->present_bytes < POINTS_WORTH_BYTES) {
        return NULL;
    }
    if (map->points == NULL) {
        map->points =
            points_room(memory, windows_of(map), sizeof(*map->points));
    }
    window = map->points == NULL ? NULL : &map->points[number / POINTS_PAGES];
    if (window != NULL && *window == NULL) {
        *window = points_room(memory, 1, POINTS_WINDOW_BYTES);
    }
    return window == NULL || *window == NULL
               ? NULL
               : *window + number % POINTS_PAGES * POINTS_WORDS;
}

static void note_pages(const struct seep_held_scan *scan,
                       struct seep_held_map *map, const uint64_t *words,
                       uint64_t address, size_t word_count)
{
    for (size_t i = 0; i + PAGE_WORDS <= word_count; i += PAGE_WORDS) {
        bool any = false;

        for (size_t k = 0; k < PAGE_WORDS; k++) {
            any |= words[i + k] - scan->words_from < scan->words_span;
        }
        if (any) {
            uint64_t *points = points_at(scan->memory, map, address + 8 * i);

            if (points != NULL) {
                note_points(scan, points, words + i);
            }
        } else {
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
    scan->memory = memory;
    for (size_t i = 0; i < memory->map_count; i++) {
        if (seep_held_map_is_searched(&memory->maps[i])) {
            seep_held_each_page(memory, &memory->maps[i], scan, visit, scan);
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
    free(scan->places);
    *scan = (struct seep_held_scan){0};
}
