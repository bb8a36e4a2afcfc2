/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Chains of many like things: a list, a tree, a graph of autograd.
 *
 * Invariant: a chain is followed to its end by one pass over blocks of its
 * shape, however long it is; where its head moves, by what leads to it.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/sorted.h"
#include "held/search.h"

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
size_t seep_held_find_repeats(struct seep_held_search *search,
                              const struct seep_held_level *level,
                              struct seep_held_repeat *ret_repeats)
{
    uint32_t *over = calloc(level->count + 1, sizeof(*over));
    size_t votes = 0;
    size_t count = 0;
    bool is_chain;

    for (size_t i = 0; over != NULL && i < level->count; i++) {
        struct seep_held_repeat found[STEPS_BACK];
        size_t found_count;

        if (i % SEEP_HELD_LOOK == 0 && seep_held_search_is_late(search)) {
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
        seep_held_sort_by_value(scan);
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
                              struct seep_held_level *level, uint32_t number,
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

        if (seep_held_is_full(&search->nodes[number]) ||
            (low % SEEP_HELD_LOOK == 0 && seep_held_search_is_late(search))) {
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
                seep_held_push_new(search, &level->front, &level->count,
                                   holder);
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
static int add_whole(struct seep_held_search *search,
                     const struct seep_held_level *level)
{
    uint64_t sum = 0;
    uint64_t last = 0;
    int error = 0;

    seep_held_scan_clear(&search->side);
    for (size_t i = 0; error == 0 && i < level->count; i++) {
        const struct seep_held_map *map = seep_held_map_at(
            search->memory, search->nodes[level->front[i]].start);
        bool is_new = map != NULL && map->start != last;

        if (i % SEEP_HELD_LOOK == 0 && seep_held_search_is_late(search)) {
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
static int add_near(struct seep_held_search *search,
                    const struct seep_held_level *level)
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
static uint32_t hop_down(struct seep_held_search *search,
                         struct seep_held_level *level, uint64_t value,
                         const struct seep_held_repeat *repeats, size_t count)
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
        seep_held_push_new(search, &level->front, &level->count, hops[i].node);
    }
    return hops[0].node;
}

/* The block that was looked at last. */
struct last_block {
    uint64_t start;
    uint64_t end;
    bool is_like; /* as large as one of the chain */
};

/* May @value point to something like the chain? Asked by ascending value. */
static bool may_be_like(struct seep_held_search *search, uint64_t value,
                        const struct seep_held_repeat *repeats, size_t count,
                        struct last_block *last)
{
    enum seep_held_place place;

    if (value >= last->start && value < last->end) {
        return last->is_like;
    }
    place =
        seep_held_block_at(&search->blocks, value, &last->start, &last->end);
    last->is_like = false;
    if (place == SEEP_HELD_NO_BLOCK || place == SEEP_HELD_FREE) {
        last->start = value;
        last->end = value + 1;
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        last->is_like |= last->end - last->start == repeats[i].bytes;
    }
    return last->is_like;
}

/*
 * Who holds the head of the chain, although it moves faster than memory is
 * read: words that point near it, at something like it that leads to it. Not
 * where these are more than can be looked at.
 */
static int find_heads(struct seep_held_search *search,
                      struct seep_held_level *level,
                      const struct seep_held_repeat *repeats, size_t count)
{
    struct seep_held_scan *scan = &search->side;
    struct last_block last = {0};
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
    search->has_many_heads = scan->lost_count > 0;
    if (error < 0 || search->has_many_heads) {
        return error;
    }
    seep_held_sort_by_value(scan);
    for (size_t i = 0; i < scan->hit_count; i++) {
        const struct seep_held_hit *hit = &scan->hits[i];
        uint32_t holder;
        uint32_t child;

        if (i % SEEP_HELD_LOOK == 0 && seep_held_search_is_late(search)) {
            break;
        }
        if (!may_be_like(search, hit->value, repeats, count, &last)) {
            continue;
        }
        holder = seep_held_resolve(search, hit->at);
        if (holder >= SEEP_HELD_ALLOCATOR || search->nodes[holder].level != 0 ||
            seep_held_is_mapping(search, holder) ||
            seep_held_is_weak(search, &search->nodes[holder], hit->at)) {
            continue;
        }
        child = hop_down(search, level, hit->value, repeats, count);
        if (child != SEEP_HELD_NOTHING && child != holder) {
            seep_held_take_link(search, level, child, holder, hit);
        }
    }
    return 0;
}

/* Follow a chain to its end: the front becomes all that is on it. */
int seep_held_follow_chain(struct seep_held_search *search,
                           struct seep_held_level *level,
                           const struct seep_held_repeat *repeats, size_t count)
{
    int error = scan_shapes(search, repeats, count);

    search->chain_count++;
    for (size_t i = 0; error == 0 && i < level->count && i < CHAIN_NODES_MOST;
         i++) {
        if (i % SEEP_HELD_LOOK == 0 && seep_held_search_is_late(search)) {
            break;
        }
        add_chain_holders(search, level, level->front[i], repeats, count);
    }
    return error == 0 && !search->has_many_heads
               ? find_heads(search, level, repeats, count)
               : error;
}
