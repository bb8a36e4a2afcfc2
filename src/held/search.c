/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the blocks of a call site upwards, one pass over memory a level.
 *
 * Invariant: a level is one scan, whatever the process's size, and what is kept
 * are the holders alone; a chain of many like things (a list, a tree, a graph
 * of autograd) is followed at once, by one pass over blocks of its shape.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "held/search.h"

#define LEVELS_MOST 26U
#define CHAIN_LEVEL 6U  /* from here on chains are looked for */
#define DONE_LEVEL 8U   /* from here on nine tenths of the blocks will do, */
#define FRAME_LEVEL 12U /* and by variables of functions that run as well */
#define CHAINS_MOST 12U
#define LOOK 64U /* at the clock: so many words or things after another */

bool seep_held_search_is_late(struct seep_held_search *search)
{
    if (seep_held_memory_is_late(search->memory)) {
        search->was_cut_short = true;
        search->was_late = true;
    }
    return search->was_cut_short;
}

static int add_asked(struct seep_held_search *search)
{
    const struct seep_held_question *question = search->question;

    search->asked = calloc(question->block_count + 1, sizeof(*search->asked));
    search->front = calloc(question->block_count + 1, sizeof(*search->front));
    if (search->asked == NULL || search->front == NULL) {
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
        if (seep_held_chunk_at(&search->blocks, start, &chunk_start,
                               &chunk_end) == SEEP_HELD_CHUNK &&
            chunk_start == start && chunk_end < end) {
            end = chunk_end;
        }
        node = seep_held_block_node(search, start, end, SEEP_HELD_KNOWN);
        if (node == SEEP_HELD_NOTHING) {
            return -ENOMEM;
        }
        if (!search->nodes[node].is_asked) {
            search->nodes[node].is_asked = true;
            search->asked[search->asked_count++] = node;
            search->front[search->front_count++] = node;
        }
    }
    return 0;
}

/* Words that are looked for: an object is referred to by its address alone. */
static int add_target(struct seep_held_search *search, uint32_t number)
{
    const struct seep_held_node *node = &search->nodes[number];
    uint64_t start = node->start;
    uint64_t end = node->end > start ? node->end : start + 1;

    if (node->kind == SEEP_HELD_OBJECT) {
        start = node->address;
        end = start + (search->python.minor >= 14 ? 2 : 1);
    }
    return seep_held_scan_add(&search->scan, start, end, number);
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

/* Words in a mapping of which no rule knows the blocks. */
struct unknown {
    uint64_t at;
    uint64_t value;
    uint32_t child;
    uint32_t mapping; /* as a root */
};

struct unknowns {
    struct unknown *items;
    size_t count;
};

#define UNKNOWNS_MOST 8192U

static uint32_t push_new(struct seep_held_search *search, uint32_t **front,
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

struct level {
    uint32_t *front;
    size_t count;
    struct unknowns unknown;
};

/* Have @holder looked for in the next level, if it is new. */
static void go_on_from(struct seep_held_search *search, struct level *level,
                       uint32_t holder, uint32_t child)
{
    struct seep_held_node *node = &search->nodes[holder];

    if (node->level != 0 || node->rank != SEEP_HELD_NO_RANK) {
        return;
    }
    node->level = (uint16_t)search->level_count;
    node->child = child;
    /* Those who hold a block that is asked for are known from the first. */
    if (!node->is_asked) {
        push_new(search, &level->front, &level->count, holder);
    }
}

/* Some word of which nothing is known. */
static bool is_mapping(const struct seep_held_search *search, uint32_t node)
{
    return search->nodes[node].kind == SEEP_HELD_ROOT &&
           search->nodes[node].words == SEEP_HELD_KIND_MAPPING;
}

static void take_hit(struct seep_held_search *search, struct level *level,
                     const struct seep_held_hit *hit)
{
    uint32_t child = search->scan.ranges[hit->range].owner;
    uint32_t holder;

    if ((hit->at >= search->nodes[child].start &&
         hit->at < search->nodes[child].end) ||
        search->nodes[child].up_count >= SEEP_HELD_LINKS_MOST) {
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
        seep_held_is_weak(search, &search->nodes[holder], hit->at) ||
        is_pool_link(search, &search->nodes[holder], hit)) {
        return;
    }
    if (is_mapping(search, holder)) {
        if (level->unknown.count < UNKNOWNS_MOST) {
            level->unknown.items[level->unknown.count++] =
                (struct unknown){hit->at, hit->value, child, holder};
        }
        return;
    }
    if (seep_held_link_add(search, child, holder, hit->at, hit->value) !=
        SEEP_HELD_NOTHING) {
        go_on_from(search, level, holder, child);
    }
}

#define NEAREST_BYTES (UINT64_C(1) << 20)

static int compare_unknown(const void *one, const void *other)
{
    const struct unknown *a = one;
    const struct unknown *b = other;

    return (a->at > b->at) - (a->at < b->at);
}

static int compare_values(const void *one, const void *other)
{
    const struct seep_held_hit *a = one;
    const struct seep_held_hit *b = other;

    return (a->value > b->value) - (a->value < b->value);
}

static void sort_by_value(struct seep_held_scan *scan)
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
static void link_unknown(struct seep_held_search *search, struct level *level,
                         const struct unknown *word, uint64_t start)
{
    uint32_t holder;

    if (start == 0) {
        /* It is somewhere in there: nobody's, but not lost. */
        seep_held_link_add(search, word->child, word->mapping, word->at,
                           word->value);
        return;
    }
    holder =
        seep_held_block_node(search, start, word->at + 8, SEEP_HELD_NO_BLOCK);
    if (holder == SEEP_HELD_NOTHING || holder == word->child) {
        return;
    }
    search->nodes[holder].is_guessed = true;
    if (search->nodes[holder].end < word->at + 8) {
        search->nodes[holder].end = word->at + 8;
    }
    if (!seep_held_is_weak(search, &search->nodes[holder], word->at) &&
        seep_held_link_add(search, word->child, holder, word->at,
                           word->value) != SEEP_HELD_NOTHING) {
        go_on_from(search, level, holder, word->child);
    }
}

/*
 * Blocks of an allocator that no rule knows: one begins at the highest address
 * at or below a word that anything points to.
 */
static int find_nearest(struct seep_held_search *search, struct level *level)
{
    struct unknowns *unknown = &level->unknown;
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
    sort_by_value(scan);
    for (size_t i = 0; i < unknown->count; i++) {
        const struct unknown *word = &unknown->items[i];

        if (i % LOOK == 0 && seep_held_search_is_late(search)) {
            break;
        }
        link_unknown(search, level, word, nearest_below(scan, word->at));
    }
    return 0;
}

static struct seep_held_repeat shape_of(struct seep_held_search *search,
                                        uint32_t number, uint64_t at)
{
    struct seep_held_node *node = &search->nodes[number];

    seep_held_read_class(search, node);
    return (struct seep_held_repeat){
        .type = node->type,
        .bytes = node->end - node->start,
        .offset = at - node->start,
        .kind = node->kind,
    };
}

static bool is_same(const struct seep_held_repeat *a,
                    const struct seep_held_repeat *b)
{
    return a->type == b->type && a->bytes == b->bytes &&
           a->offset == b->offset && a->kind == b->kind;
}

/* The word of @holder by which it has @child; 0: none is left. */
static uint64_t word_between(const struct seep_held_search *search,
                             uint32_t child, uint32_t holder)
{
    uint64_t at = 0;

    for (uint32_t i = search->nodes[child].up; i != 0;
         i = search->links[i - 1].next_up) {
        if (search->links[i - 1].holder == holder) {
            at = search->links[i - 1].at;
        }
    }
    return at;
}

#define STEPS_BACK 12U /* to 3.10 a link of a list is three of them */

/* What repeats three times on the way down from @number, and what lies between.
 * @return how many */
static size_t repeats_below(struct seep_held_search *search, uint32_t number,
                            struct seep_held_repeat *ret_repeats)
{
    struct seep_held_repeat steps[STEPS_BACK];
    size_t count = 0;
    size_t found = 0;
    size_t most = 0;

    while (count < STEPS_BACK && search->nodes[number].level != 0 &&
           search->nodes[number].child != SEEP_HELD_NOTHING) {
        uint32_t child = search->nodes[number].child;
        uint64_t at = word_between(search, child, number);

        if (at == 0) {
            break;
        }
        steps[count++] = shape_of(search, number, at);
        number = child;
    }
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        bool is_first = true;

        for (size_t k = 0; k < count; k++) {
            same += is_same(&steps[i], &steps[k]);
            is_first &= k >= i || !is_same(&steps[i], &steps[k]);
        }
        most = same > most ? same : most;
        if (same >= 2 && is_first) {
            ret_repeats[found++] = steps[i];
        }
    }
    return most >= 3 ? found : 0;
}

/* Where memory is large it takes too long to try what may be no chain. */
#define OVER_BYTES_MOST (UINT64_C(256) << 20)

/* What repeats in more than half of the front, or over half of the blocks:
 * their ways may have met, beside much that leads nowhere. @return how many, or
 * 0 */
static size_t find_repeats(struct seep_held_search *search,
                           const struct level *level,
                           struct seep_held_repeat *ret_repeats)
{
    uint32_t *over = calloc(level->count + 1, sizeof(*over));
    size_t votes = 0;
    size_t count = 0;
    bool is_chain;

    for (size_t i = 0; over != NULL && i < level->count; i++) {
        struct seep_held_repeat found[STEPS_BACK];
        size_t found_count;

        if (i % LOOK == 0 && seep_held_search_is_late(search)) {
            votes = 0;
            break;
        }
        found_count = repeats_below(search, level->front[i], found);
        if (found_count > 0) {
            over[votes++] = level->front[i];
        }
        for (size_t k = 0; k < found_count; k++) {
            bool is_new = true;

            for (size_t n = 0; n < count; n++) {
                is_new &= !is_same(&found[k], &ret_repeats[n]);
            }
            if (is_new && count < SEEP_HELD_REPEATS_MOST) {
                ret_repeats[count++] = found[k];
            }
        }
    }
    is_chain =
        2 * votes > level->count ||
        (votes > 0 && search->memory->present_bytes < OVER_BYTES_MOST &&
         2 * seep_held_count_below(search, over, votes) > search->asked_count);
    free(over);
    return is_chain ? count : 0;
}

/* All words of blocks of these shapes that point to blocks: by value. */
static int scan_shapes(struct seep_held_search *search,
                       const struct seep_held_repeat *repeats, size_t count)
{
    struct seep_held_shape shapes[SEEP_HELD_REPEATS_MOST];
    struct seep_held_scan *scan = &search->side;
    int error;

    for (size_t i = 0; i < count; i++) {
        shapes[i] =
            (struct seep_held_shape){repeats[i].bytes, repeats[i].offset};
    }
    seep_held_scan_clear(scan);
    /* Whatever is an address: what it points to is asked for below. */
    error = seep_held_scan_add(scan, 65536, SEEP_HELD_ADDRESS_END, 0);
    if (error == 0) {
        error = seep_held_scan_prepare(scan);
    }
    if (error == 0) {
        seep_held_blocks_scan(&search->blocks, shapes, count, scan);
        sort_by_value(scan);
    }
    return error;
}

static uint32_t chain_node(struct seep_held_search *search,
                           const struct seep_held_hit *hit,
                           const struct seep_held_repeat *repeats, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t start = hit->at - repeats[i].offset;
        uint32_t node;

        if (count == 1 ||
            seep_held_node_find(search, seep_held_node_key(0, start, 0)) !=
                SEEP_HELD_NOTHING) {
            node = seep_held_block_node(search, start, start + repeats[i].bytes,
                                        SEEP_HELD_CHUNK);
            return node != SEEP_HELD_NOTHING &&
                           search->nodes[node].kind == repeats[i].kind
                       ? node
                       : SEEP_HELD_NOTHING;
        }
    }
    return seep_held_resolve(search, hit->at);
}

#define CHAIN_NODES_MOST 1000000U
#define POINTED_BYTES 256U /* of a raw block: where its links point to */

/* Holders of @number among the words that were found. */
static void add_chain_holders(struct seep_held_search *search,
                              struct level *level, uint32_t number,
                              const struct seep_held_repeat *repeats,
                              size_t count)
{
    const struct seep_held_scan *scan = &search->side;
    uint64_t from = search->nodes[number].address;
    uint64_t bytes = search->nodes[number].end - from;
    uint64_t to = from + (search->nodes[number].kind == SEEP_HELD_OBJECT ? 1
                          : bytes < POINTED_BYTES                        ? bytes
                                                  : POINTED_BYTES);
    size_t low = SEEP_SORTED_BELOW(scan->hits, scan->hit_count, value, from);

    for (; low < scan->hit_count && scan->hits[low].value < to; low++) {
        const struct seep_held_hit *hit = &scan->hits[low];
        uint32_t holder;
        uint32_t link;

        if (search->nodes[number].up_count >= SEEP_HELD_LINKS_MOST ||
            (low % LOOK == 0 && seep_held_search_is_late(search))) {
            break;
        }
        holder = chain_node(search, hit, repeats, count);
        if (holder >= SEEP_HELD_ALLOCATOR || holder == number) {
            continue;
        }
        link = seep_held_link_add(search, number, holder, hit->at, hit->value);
        if (link != SEEP_HELD_NOTHING) {
            struct seep_held_node *node = &search->nodes[holder];

            search->links[link].is_chain = true;
            if (node->level == 0 && node->rank == SEEP_HELD_NO_RANK) {
                node->level = (uint16_t)search->level_count;
                node->child = number;
                push_new(search, &level->front, &level->count, holder);
            }
        }
    }
}

#define NEAR_BYTES (UINT64_C(256) << 10)
#define BEHIND_BYTES (UINT64_C(4) << 20) /* the last: where a heap grows */

static int compare_starts(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one;
    uint64_t b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

#define WHOLE_BYTES_MOST (UINT64_C(512) << 20)

/* All of the mappings that the chain lies in, where that is not much.
 * @return -E2BIG: it is */
static int add_whole(struct seep_held_search *search, const struct level *level)
{
    uint64_t sum = 0;
    uint64_t last = 0;
    int error = 0;

    seep_held_scan_clear(&search->side);
    for (size_t i = 0; error == 0 && i < level->count; i++) {
        const struct seep_held_map *map = seep_held_map_at(
            search->memory, search->nodes[level->front[i]].start);
        bool is_new = map != NULL && map->start != last;

        if (i % LOOK == 0 && seep_held_search_is_late(search)) {
            break;
        }
        for (size_t k = 0; is_new && k < search->side.range_count; k++) {
            is_new = search->side.ranges[k].start != map->start;
        }
        if (is_new) {
            last = map->start;
            sum += map->end - map->start;
            error = sum > WHOLE_BYTES_MOST
                        ? -E2BIG
                        : seep_held_scan_add(&search->side, map->start,
                                             map->end, 0);
        }
    }
    return error;
}

/* Ranges around what is on the chain: what joins it lies near. */
static int add_near(struct seep_held_search *search, const struct level *level)
{
    uint64_t *starts = calloc(level->count + 1, sizeof(*starts));
    uint64_t from = 0;
    uint64_t to = 0;
    int error = starts == NULL ? -ENOMEM : 0;

    for (size_t i = 0; error == 0 && i < level->count; i++) {
        starts[i] = search->nodes[level->front[i]].start;
    }
    if (error == 0) {
        qsort(starts, level->count, sizeof(*starts), compare_starts);
    }
    seep_held_scan_clear(&search->side);
    for (size_t i = 0; error == 0 && i <= level->count; i++) {
        if (i < level->count && starts[i] < to + NEAR_BYTES && to != 0) {
            to = starts[i] + NEAR_BYTES;
            continue;
        }
        if (to != 0) {
            error = seep_held_scan_add(&search->side, from,
                                       i < level->count &&
                                               starts[i] < to + BEHIND_BYTES
                                           ? starts[i]
                                           : to + BEHIND_BYTES,
                                       0);
        }
        if (i < level->count) {
            from = to != 0 && starts[i] < to + BEHIND_BYTES
                       ? starts[i]
                       : starts[i] - NEAR_BYTES;
            to = starts[i] + NEAR_BYTES;
        }
    }
    free(starts);
    return error;
}

/* The node of what begins at @value, if it is like one of @repeats. */
static uint32_t like_one_of(struct seep_held_search *search, uint64_t value,
                            const struct seep_held_repeat *repeats,
                            size_t count, uint64_t *ret_word)
{
    enum seep_held_place place;
    uint64_t start;
    uint64_t end;
    uint32_t node;

    place = seep_held_block_at(&search->blocks, value, &start, &end);
    /* Behind its end it points to the head of the next. */
    if (place == SEEP_HELD_NO_BLOCK || place == SEEP_HELD_FREE ||
        value >= end) {
        return SEEP_HELD_NOTHING;
    }
    for (size_t i = 0; i < count; i++) {
        if (end - start != repeats[i].bytes) {
            continue;
        }
        node = seep_held_block_node(search, start, end, place);
        if (node != SEEP_HELD_NOTHING &&
            search->nodes[node].kind == repeats[i].kind &&
            (search->nodes[node].address == value ||
             (repeats[i].kind == SEEP_HELD_RAW &&
              value - start < POINTED_BYTES))) {
            struct seep_held_repeat shape =
                shape_of(search, node, start + repeats[i].offset);

            if (is_same(&shape, &repeats[i])) {
                *ret_word = start + repeats[i].offset;
                return node;
            }
        }
    }
    return SEEP_HELD_NOTHING;
}

#define HOPS_MOST 8192U

/* From @value, which joined the chain after it was read, down to what is known
 * of it. @return its node; SEEP_HELD_NOTHING: it does not lead there */
static uint32_t hop_down(struct seep_held_search *search, struct level *level,
                         uint64_t value, const struct seep_held_repeat *repeats,
                         size_t count)
{
    struct seep_held_hop *hops = search->hops;
    size_t hop_count = 0;

    while (hop_count < HOPS_MOST) {
        uint64_t word = 0;
        uint32_t node = like_one_of(search, value, repeats, count, &word);

        if (node == SEEP_HELD_NOTHING || search->nodes[node].leads_nowhere) {
            break;
        }
        hops[hop_count++] = (struct seep_held_hop){word, value, node};
        if (search->nodes[node].level != 0) {
            break;
        }
        value = seep_held_word(search->memory, word);
    }
    if (hop_count == 0 || search->nodes[hops[hop_count - 1].node].level == 0) {
        while (hop_count > 0) {
            search->nodes[hops[--hop_count].node].leads_nowhere = true;
        }
        return SEEP_HELD_NOTHING;
    }
    for (size_t i = hop_count - 1; i-- > 0;) {
        uint32_t link =
            seep_held_link_add(search, hops[i + 1].node, hops[i].node,
                               hops[i].word, hops[i + 1].value);

        if (link == SEEP_HELD_NOTHING) {
            return link;
        }
        search->links[link].is_chain = true;
        search->nodes[hops[i].node].level = (uint16_t)search->level_count;
        search->nodes[hops[i].node].child = hops[i + 1].node;
        push_new(search, &level->front, &level->count, hops[i].node);
    }
    return hops[0].node;
}

/*
 * Who holds the head of the chain, although it moves faster than memory is
 * read: words that point near it, at something like it that leads to it.
 */
static int find_heads(struct seep_held_search *search, struct level *level,
                      const struct seep_held_repeat *repeats, size_t count)
{
    struct seep_held_scan *scan = &search->side;
    int error;

    if (search->hops == NULL) {
        search->hops = calloc(HOPS_MOST, sizeof(*search->hops));
    }
    if (search->hops == NULL) {
        return -ENOMEM;
    }
    error = seep_held_memory_extend(search->memory);
    if (error == 0) {
        error = add_whole(search, level);
        error = error == -E2BIG ? add_near(search, level) : error;
    }
    if (error == 0) {
        error = seep_held_blocks_again(&search->blocks);
    }
    error = error == 0 ? seep_held_scan_run(scan, search->memory) : error;
    seep_held_memory_forget(search->memory);
    for (size_t i = 0; error == 0 && i < scan->hit_count; i++) {
        const struct seep_held_hit *hit = &scan->hits[i];
        uint32_t holder;
        uint32_t child;

        if (i % LOOK == 0 && seep_held_search_is_late(search)) {
            break;
        }
        holder = seep_held_resolve(search, hit->at);
        if (holder >= SEEP_HELD_ALLOCATOR || search->nodes[holder].level != 0 ||
            is_mapping(search, holder) ||
            seep_held_is_weak(search, &search->nodes[holder], hit->at)) {
            continue;
        }
        child = hop_down(search, level, hit->value, repeats, count);
        if (child != SEEP_HELD_NOTHING && child != holder &&
            seep_held_link_add(search, child, holder, hit->at, hit->value) !=
                SEEP_HELD_NOTHING) {
            go_on_from(search, level, holder, child);
        }
    }
    return error;
}

/* Follow a chain to its end: the front becomes all that is on it. */
static int follow_chain(struct seep_held_search *search, struct level *level,
                        const struct seep_held_repeat *repeats, size_t count)
{
    int error = scan_shapes(search, repeats, count);

    search->chain_count++;
    for (size_t i = 0; error == 0 && i < level->count && i < CHAIN_NODES_MOST;
         i++) {
        if (i % LOOK == 0 && seep_held_search_is_late(search)) {
            break;
        }
        add_chain_holders(search, level, level->front[i], repeats, count);
    }
    return error == 0 ? find_heads(search, level, repeats, count) : error;
}

/* One pass over memory: all that holds the front. */
static int search_level(struct seep_held_search *search, struct level *level)
{
    struct seep_held_scan *scan = &search->scan;
    int error = 0;

    seep_held_memory_forget(search->memory);
    seep_held_scan_clear(scan);
    search->top_count = 0;
    for (size_t i = 0; error == 0 && i < search->front_count; i++) {
        error = add_target(search, search->front[i]);
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
        if (i % LOOK == 0 && seep_held_search_is_late(search)) {
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
        named = seep_held_count_named(search, SEEP_HELD_RANK_RUNTIME);
    }
    return named == search->asked_count ||
           (search->level_count >= DONE_LEVEL &&
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
        struct level level = {0};
        struct seep_held_repeat repeats[SEEP_HELD_REPEATS_MOST];
        size_t repeat_count = 0;

        search->level_count++;
        level.unknown.items =
            calloc(UNKNOWNS_MOST, sizeof(*level.unknown.items));
        error = level.unknown.items == NULL ? -ENOMEM
                                            : search_level(search, &level);
        if (error == 0 && search->level_count >= CHAIN_LEVEL &&
            search->chain_count < CHAINS_MOST) {
            repeat_count = find_repeats(search, &level, repeats);
        }
        if (repeat_count > 0) {
            error = follow_chain(search, &level, repeats, repeat_count);
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
