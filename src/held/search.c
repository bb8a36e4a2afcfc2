/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the blocks of a call site upwards, one pass over memory a level.
 *
 * Invariant: a level is one scan, whatever the process's size, and what is kept
 * are the holders alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "held/search.h"

#define LEVELS_MOST 26U
#define CHAIN_LEVEL 6U /* from here on chains are looked for */
#define DONE_LEVEL 8U  /* from here on nine tenths of the blocks will do, */
#define FRAME_LEVEL                                           \
    12U /* and by variables of functions that run as well, or \
           by fields of C that no rule knows */
#define CHAINS_MOST 12U

bool seep_held_search_is_late(struct seep_held_search *search)
{
    if (seep_held_memory_is_late(search->memory)) {
        search->was_cut_short = true;
        search->was_late = true;
    }
    return search->was_cut_short;
}

/* Of the first @block_count blocks: the call sites that end with these. */
static void end_parts(struct seep_held_search *search, size_t block_count)
{
    const struct seep_held_question *question = search->question;

    for (size_t i = 0; i < question->part_count; i++) {
        if (question->part_ends[i] == block_count) {
            search->part_ends[i] = search->asked_count;
        }
    }
    search->part_ends[search->part_count - 1] = search->asked_count;
}

static int add_asked(struct seep_held_search *search)
{
    const struct seep_held_question *question = search->question;

    search->part_count = question->part_count > 0 ? question->part_count : 1;
    search->part_ends = calloc(search->part_count, sizeof(*search->part_ends));
    search->asked = calloc(question->block_count + 1, sizeof(*search->asked));
    search->front = calloc(question->block_count + 1, sizeof(*search->front));
    if (search->asked == NULL || search->front == NULL ||
        search->part_ends == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < question->block_count; i++) {
        uint64_t start = question->blocks[i].address;
        uint64_t end = start + question->blocks[i].bytes;
        uint64_t chunk_start;
        uint64_t chunk_end;
        uint32_t node;

        /* A block of the recording is as large as was asked for; what an
         * allocator made of it may begin a little later. */
        if (!question->is_of_driver &&
            seep_held_chunk_at(&search->blocks, start, &chunk_start,
                               &chunk_end) == SEEP_HELD_CHUNK &&
            chunk_start == start && chunk_end < end) {
            end = chunk_end;
        }
        node = seep_held_block_node(search, start, end,
                                    question->is_of_driver ? SEEP_HELD_OF_DRIVER
                                                           : SEEP_HELD_KNOWN);
        if (node == SEEP_HELD_NOTHING) {
            return -ENOMEM;
        }
        if (!search->nodes[node].is_asked) {
            search->nodes[node].is_asked = true;
            search->asked[search->asked_count++] = node;
            search->front[search->front_count++] = node;
        }
        end_parts(search, i + 1);
    }
    return 0;
}

/* An object is referred to by its address alone; from 3.14 on a variable may
 * have a bit more. */
int seep_held_add_target(const struct seep_held_search *search,
                         struct seep_held_scan *scan, uint32_t number)
{
    const struct seep_held_node *node = &search->nodes[number];
    uint64_t start = node->start;
    uint64_t end = node->end > start ? node->end : start + 1;

    if (node->kind == SEEP_HELD_OBJECT) {
        start = node->address;
        end = start + (search->python.minor >= 14 ? 2 : 1);
    }
    return seep_held_scan_add(scan, start, end, number);
}

static uint64_t depth_of(const struct seep_held_scan *scan,
                         const struct seep_held_hit *hit)
{
    return hit->value - scan->ranges[hit->range].start;
}

/* Words that point to a beginning first: others are chance more often. */
static int compare_hits(const void *one, const void *other, void *scan)
{
    const struct seep_held_hit *a = one;
    const struct seep_held_hit *b = other;
    uint64_t depth_a = depth_of(scan, a);
    uint64_t depth_b = depth_of(scan, b);

    if (depth_a != depth_b) {
        return depth_a < depth_b ? -1 : 1;
    }
    return (a->at > b->at) - (a->at < b->at);
}

/* A free block of a pool links to the next of the same pool. An object that is
 * in use may begin with its values, of the same pool. */
static bool is_pool_link(const struct seep_held_search *search,
                         const struct seep_held_node *holder,
                         const struct seep_held_hit *hit)
{
    return holder->place == SEEP_HELD_POOL &&
           holder->kind != SEEP_HELD_OBJECT && hit->at == holder->start &&
           ((hit->value ^ hit->at) & ~(search->blocks.pool_bytes - 1)) == 0;
}

#define UNKNOWNS_MOST 8192U

uint32_t seep_held_push_new(struct seep_held_search *search, uint32_t **front,
                            size_t *count, uint32_t node)
{
    if ((*count & (*count - 1)) == 0) {
        size_t capacity = *count < 64 ? 64 : 2 * *count;
        uint32_t *larger = realloc(*front, capacity * sizeof(**front));

        if (larger == NULL) {
            search->was_cut_short = true;
            return SEEP_HELD_NOTHING;
        }
        *front = larger;
    }
    (*front)[(*count)++] = node;
    return node;
}

/* Have @holder looked for in the next level, if it is new. */
void seep_held_go_on_from(struct seep_held_search *search,
                          struct seep_held_level *level, uint32_t holder,
                          uint32_t child)
{
    struct seep_held_node *node = &search->nodes[holder];

    if (node->level != 0 || node->rank != SEEP_HELD_NO_RANK) {
        return;
    }
    node->level = (uint16_t)search->level_count;
    node->child = child;
    /* Those who hold a block that is asked for are known from the first. */
    if (!node->is_asked) {
        seep_held_push_new(search, &level->front, &level->count, holder);
    }
}

/* Some word of which nothing is known. */
bool seep_held_is_mapping(const struct seep_held_search *search, uint32_t node)
{
    return search->nodes[node].kind == SEEP_HELD_ROOT &&
           search->nodes[node].words == SEEP_HELD_KIND_MAPPING;
}

bool seep_held_is_link(struct seep_held_search *search, uint32_t child,
                       uint32_t holder, const struct seep_held_hit *hit)
{
    struct seep_held_node *below = &search->nodes[child];
    const struct seep_held_node *above = &search->nodes[holder];

    if (below->place == SEEP_HELD_OF_DRIVER &&
        (hit->value < below->start || hit->value >= below->end)) {
        return seep_held_is_number(search, above, hit->at);
    }
    /* PyTorch has each tensor by a class of its own, and the driver by one of
     * its many blocks without a class. */
    if (below->place == SEEP_HELD_OF_DRIVER && search->question->is_cached &&
        above->kind == SEEP_HELD_RAW && above->type == 0) {
        below->raw_word = hit->at; /* not lost: nobody knows whose that is */
        return false;
    }
    return !above->is_of_allocator &&
           !seep_held_is_weak(search, above, hit->at) &&
           !is_pool_link(search, above, hit);
}

void seep_held_take_link(struct seep_held_search *search,
                         struct seep_held_level *level, uint32_t child,
                         uint32_t holder, const struct seep_held_hit *hit)
{
    uint32_t link =
        seep_held_link_add(search, child, holder, hit->at, hit->value);

    if (link == SEEP_HELD_NOTHING) {
        return;
    }
    if (seep_held_is_entry(search, child, holder, hit)) {
        search->links[link].is_stale = true;
        search->links[link].is_odd = true;
        return;
    }
    seep_held_go_on_from(search, level, holder, child);
}

static void take_hit(struct seep_held_search *search,
                     struct seep_held_level *level,
                     const struct seep_held_hit *hit)
{
    uint32_t child = search->scan.ranges[hit->range].owner;
    uint32_t holder;

    if ((hit->at >= search->nodes[child].start &&
         hit->at < search->nodes[child].end) ||
        seep_held_is_full(&search->nodes[child]) ||
        seep_held_is_of_crowd(search, child, hit->at)) {
        return;
    }
    holder = seep_held_resolve(search, hit->at);
    if (holder == SEEP_HELD_ALLOCATOR) {
        if (search->nodes[child].is_guessed) {
            seep_held_strike_down(search, child);
        }
        holder = SEEP_HELD_NOTHING;
    }
    if (holder == SEEP_HELD_NOTHING && search->level_count == 1) {
        seep_held_note_dropped(search, hit);
    }
    if (holder == SEEP_HELD_NOTHING || holder == child ||
        !seep_held_is_link(search, child, holder, hit)) {
        return;
    }
    if (seep_held_is_mapping(search, holder)) {
        if (level->unknown.count < UNKNOWNS_MOST) {
            level->unknown.items[level->unknown.count++] =
                (struct seep_held_unknown){hit->at, hit->value, child, holder};
        }
        return;
    }
    seep_held_take_link(search, level, child, holder, hit);
}

#define NEAREST_BYTES (UINT64_C(1) << 20)

static int compare_unknown(const void *one, const void *other)
{
    const struct seep_held_unknown *a = one;
    const struct seep_held_unknown *b = other;

    return (a->at > b->at) - (a->at < b->at);
}

static int compare_values(const void *one, const void *other)
{
    const struct seep_held_hit *a = one;
    const struct seep_held_hit *b = other;

    return (a->value > b->value) - (a->value < b->value);
}

void seep_held_sort_by_value(struct seep_held_scan *scan)
{
    if (scan->hit_count > 0) {
        qsort(scan->hits, scan->hit_count, sizeof(*scan->hits), compare_values);
    }
}

/* The highest beginning at or below @at; 0: none near. */
static uint64_t nearest_below(const struct seep_held_scan *scan, uint64_t at)
{
    size_t low = SEEP_SORTED_UP_TO(scan->hits, scan->hit_count, value, at);

    for (; low > 0 && at - scan->hits[low - 1].value <= NEAREST_BYTES; low--) {
        if (scan->hits[low - 1].value % 16 == 0) {
            return scan->hits[low - 1].value;
        }
    }
    return 0;
}

/* The word is in what begins at @start; 0: nobody knows where that begins. */
static void link_unknown(struct seep_held_search *search,
                         struct seep_held_level *level,
                         const struct seep_held_unknown *word, uint64_t start)
{
    uint64_t end = word->at + 8;
    uint32_t holder;

    if (start == 0) {
        /* It is somewhere in there: nobody's, but not lost. */
        seep_held_link_add(search, word->child, word->mapping, word->at,
                           word->value);
        return;
    }
    if (search->has_python) {
        seep_held_object_near(&search->python, start, &start, &end);
    }
    holder = seep_held_block_node(search, start, end, SEEP_HELD_NO_BLOCK);
    if (holder == SEEP_HELD_NOTHING || holder == word->child) {
        return;
    }
    search->nodes[holder].is_guessed = true;
    if (search->nodes[holder].kind == SEEP_HELD_RAW &&
        search->nodes[holder].end < word->at + 8) {
        search->nodes[holder].end = word->at + 8;
    }
    if (!seep_held_is_weak(search, &search->nodes[holder], word->at)) {
        seep_held_take_link(
            search, level, word->child, holder,
            &(struct seep_held_hit){.at = word->at, .value = word->value});
    }
}

/*
 * Blocks of an allocator that no rule knows: one begins at the highest address
 * at or below a word that anything points to.
 */
static int find_nearest(struct seep_held_search *search,
                        struct seep_held_level *level)
{
    struct seep_held_unknowns *unknown = &level->unknown;
    struct seep_held_scan *scan = &search->side;
    uint64_t last = 0;
    int error = 0;

    if (unknown->count == 0) {
        return 0;
    }
    qsort(unknown->items, unknown->count, sizeof(*unknown->items),
          compare_unknown);
    seep_held_scan_clear(scan);
    for (size_t i = 0; error == 0 && i < unknown->count; i++) {
        const struct seep_held_map *map =
            seep_held_map_at(search->memory, unknown->items[i].at);
        uint64_t at = unknown->items[i].at;
        uint64_t from = at - NEAREST_BYTES;

        if (map == NULL) {
            continue;
        }
        from = at - map->start < NEAREST_BYTES ? map->start : from;
        from = from < last ? last : from;
        if (at + 1 > from) {
            error = seep_held_scan_add(scan, from, at + 1, 0);
            last = at + 1;
        }
    }
    error = error == 0 ? seep_held_scan_run(scan, search->memory) : error;
    if (error < 0) {
        return error;
    }
    seep_held_sort_by_value(scan);
    for (size_t i = 0; i < unknown->count; i++) {
        const struct seep_held_unknown *word = &unknown->items[i];

        if (i % SEEP_HELD_LOOK == 0 && seep_held_search_is_late(search)) {
            break;
        }
        link_unknown(search, level, word, nearest_below(scan, word->at));
    }
    return 0;
}

/* One pass over memory: all that holds the front. */
static int search_level(struct seep_held_search *search,
                        struct seep_held_level *level)
{
    struct seep_held_scan *scan = &search->scan;
    int error = 0;

    seep_held_memory_forget(search->memory);
    seep_held_scan_clear(scan);
    search->top_count = 0;
    for (size_t i = 0; error == 0 && i < search->front_count; i++) {
        error = seep_held_add_target(search, scan, search->front[i]);
        error =
            error == 0 ? seep_held_add_number(search, search->front[i]) : error;
    }
    error = error == 0 ? seep_held_scan_run(scan, search->memory) : error;
    if (error < 0) {
        return error;
    }
    if (scan->hit_count > 0) {
        qsort_r(scan->hits, scan->hit_count, sizeof(*scan->hits), compare_hits,
                scan);
    }
    for (size_t i = 0; i < scan->hit_count; i++) {
        if (i % SEEP_HELD_LOOK == 0 && seep_held_search_is_late(search)) {
            break;
        }
        take_hit(search, level, &scan->hits[i]);
    }
    if (!seep_held_search_is_late(search) && search->level_count == 1) {
        search->has_first = scan->lost_count == 0;
    }
    error = find_nearest(search, level);
    return error == 0 && search->level_count == 1 ? seep_held_look_again(search)
                                                  : error;
}

/* Do enough of the blocks have a name? */
static bool is_enough(struct seep_held_search *search)
{
    size_t named = seep_held_count_named(search, SEEP_HELD_RANK_NAMELESS);

    if (search->level_count >= FRAME_LEVEL &&
        10 * named < 9 * search->asked_count) {
        size_t nearly =
            seep_held_count_nearly_named(search, SEEP_HELD_RANK_NAMED);

        named = seep_held_count_named(search, SEEP_HELD_RANK_RUNTIME);
        named = named > nearly ? named : nearly;
    }
    /* Of several call sites those that go on are asked by themselves. */
    return named == search->asked_count ||
           ((search->level_count >= DONE_LEVEL || search->part_count > 1) &&
            10 * named >= 9 * search->asked_count);
}

/* Is enough known, also without what turns out to hold nothing? */
static bool is_done(struct seep_held_search *search, int *ret_error)
{
    if (search->level_count < CHAIN_LEVEL || !is_enough(search)) {
        return false;
    }
    *ret_error = seep_held_strike(search);
    return *ret_error < 0 || is_enough(search);
}

int seep_held_search_run(struct seep_held_search *search)
{
    int error = add_asked(search);

    while (error == 0 && search->front_count > 0 &&
           search->level_count < LEVELS_MOST &&
           !seep_held_search_is_late(search)) {
        struct seep_held_level level = {0};
        struct seep_held_repeat repeats[SEEP_HELD_REPEATS_MOST];
        size_t repeat_count = 0;

        search->level_count++;
        level.unknown.items =
            calloc(UNKNOWNS_MOST, sizeof(*level.unknown.items));
        error = level.unknown.items == NULL ? -ENOMEM
                                            : search_level(search, &level);
        if (error == 0 && search->level_count >= CHAIN_LEVEL &&
            search->chain_count < CHAINS_MOST) {
            repeat_count = seep_held_find_repeats(search, &level, repeats);
        }
        if (repeat_count > 0) {
            error =
                seep_held_follow_chain(search, &level, repeats, repeat_count);
        }
        free(level.unknown.items);
        free(search->front);
        search->front = level.front;
        search->front_count = level.count;
        if (error == 0 && is_done(search, &error)) {
            break;
        }
    }
    if (search->level_count == LEVELS_MOST && search->front_count > 0) {
        search->is_deep = !search->was_cut_short;
        search->was_cut_short = true;
    }
    return error;
}
