/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ranges into segments by a sweep with a heap of those that are open.
 *
 * Invariant: segments ascend, do not overlap, and are at most twice as many as
 * ranges: each begins where a range begins or ends.
 */
#include "reader/symbolise_index.h"

#include <errno.h>
#include <stdlib.h>

struct sweep {
    struct seep_symbolise_index *index;
    size_t *heap; /* range numbers, the winner on top */
    size_t heap_count;
};

int seep_symbolise_index_add(struct seep_symbolise_index *index,
                             const struct seep_symbolise_range *range)
{
    if (range->start >= range->end) {
        return 0;
    }
    if (index->range_count == index->range_capacity) {
        size_t capacity = index->range_capacity * 2 + 16;
        struct seep_symbolise_range *grown =
            reallocarray(index->ranges, capacity, sizeof(*grown));

        if (grown == NULL) {
            return -ENOMEM;
        }
        index->ranges = grown;
        index->range_capacity = capacity;
    }
    index->ranges[index->range_count++] = *range;
    return 0;
}

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Of one start the best comes last, where below() looks. */
static int compare_ranges(const void *left, const void *right)
{
    const struct seep_symbolise_range *a = left;
    const struct seep_symbolise_range *b = right;
    int result = order(a->start, b->start);

    if (result == 0) {
        result = order(b->class, a->class);
    }
    if (result == 0) {
        result = order(b->tie, a->tie);
    }
    return result != 0 ? result : order(b->value, a->value);
}

void seep_symbolise_index_sort(struct seep_symbolise_index *index)
{
    if (index->range_count > 1) {
        qsort(index->ranges, index->range_count, sizeof(*index->ranges),
              compare_ranges);
    }
}

/* Range numbers ascend by start, and among equal starts by merit. */
static bool beats(const struct sweep *sweep, size_t a, size_t b)
{
    const struct seep_symbolise_range *ranges = sweep->index->ranges;

    if (ranges[a].class != ranges[b].class) {
        return ranges[a].class < ranges[b].class;
    }
    return a > b;
}

static void push(struct sweep *sweep, size_t range)
{
    size_t at = sweep->heap_count++;

    while (at > 0 && beats(sweep, range, sweep->heap[(at - 1) / 2])) {
        sweep->heap[at] = sweep->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    sweep->heap[at] = range;
}

static void pop(struct sweep *sweep)
{
    size_t last = sweep->heap[--sweep->heap_count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < sweep->heap_count &&
            beats(sweep, sweep->heap[child + 1], sweep->heap[child])) {
            child++;
        }
        if (child >= sweep->heap_count ||
            !beats(sweep, sweep->heap[child], last)) {
            break;
        }
        sweep->heap[at] = sweep->heap[child];
        at = child;
    }
    sweep->heap[at] = last;
}

static void emit(struct seep_symbolise_index *index, uint64_t start,
                 uint64_t end, size_t range)
{
    struct seep_symbolise_segment *last =
        index->segment_count > 0 ? &index->segments[index->segment_count - 1]
                                 : NULL;

    if (last != NULL && last->range == range && last->end == start) {
        last->end = end;
        return;
    }
    index->segments[index->segment_count++] =
        (struct seep_symbolise_segment){start, end, range};
}

static void cut(struct sweep *sweep)
{
    struct seep_symbolise_index *index = sweep->index;
    const struct seep_symbolise_range *ranges = index->ranges;
    size_t next = 0;
    uint64_t at = 0;

    for (;;) {
        while (sweep->heap_count > 0 && ranges[sweep->heap[0]].end <= at) {
            pop(sweep);
        }
        if (sweep->heap_count == 0) {
            if (next == index->range_count) {
                return;
            }
            at = ranges[next].start;
        }
        while (next < index->range_count && ranges[next].start <= at) {
            push(sweep, next++);
        }

        size_t winner = sweep->heap[0];
        uint64_t end = ranges[winner].end;

        if (next < index->range_count && ranges[next].start < end) {
            end = ranges[next].start;
        }
        emit(index, at, end, winner);
        at = end;
    }
}

int seep_symbolise_index_seal(struct seep_symbolise_index *index)
{
    struct sweep sweep = {.index = index};

    if (index->range_count == 0) {
        return 0;
    }
    seep_symbolise_index_sort(index);
    index->segments = calloc(index->range_count, 2 * sizeof(*index->segments));
    sweep.heap = calloc(index->range_count, sizeof(*sweep.heap));
    if (index->segments == NULL || sweep.heap == NULL) {
        free(sweep.heap);
        return -ENOMEM;
    }
    cut(&sweep);
    free(sweep.heap);
    return 0;
}

const struct seep_symbolise_range *
seep_symbolise_index_find(const struct seep_symbolise_index *index,
                          uint64_t address)
{
    size_t low = 0;
    size_t high = index->segment_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (index->segments[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == index->segment_count || index->segments[low].start > address) {
        return NULL;
    }
    return &index->ranges[index->segments[low].range];
}

const struct seep_symbolise_range *
seep_symbolise_index_below(const struct seep_symbolise_index *index,
                           uint64_t address)
{
    size_t low = 0;
    size_t high = index->range_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (index->ranges[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? &index->ranges[low - 1] : NULL;
}

void seep_symbolise_index_fini(struct seep_symbolise_index *index)
{
    free(index->ranges);
    free(index->segments);
    *index = (struct seep_symbolise_index){0};
}
