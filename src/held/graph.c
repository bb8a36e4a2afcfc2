/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Nodes and links of a search, and what is said of a block that no way up
 * leads from: that its holders hold only each other, or that nothing points to
 * it.
 *
 * Invariant: of a block that something may hold it is never said that nothing
 * does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "held/search.h"

#define INDEX_FIRST 4096U
#define NODES_MOST 2000000U
#define LINKS_MOST 4000000U

int seep_held_graph_init(struct seep_held_search *search)
{
    search->index_capacity = INDEX_FIRST;
    search->index = calloc(INDEX_FIRST, sizeof(*search->index));
    return search->index == NULL ? -ENOMEM : 0;
}

void seep_held_graph_fini(struct seep_held_search *search)
{
    free(search->nodes);
    free(search->links);
    free(search->index);
    search->nodes = NULL;
    search->links = NULL;
    search->index = NULL;
    search->node_count = 0;
    search->link_count = 0;
    search->node_capacity = 0;
    search->link_capacity = 0;
}

uint64_t seep_held_node_key(uint32_t tag, uint64_t one, uint64_t other)
{
    const uint64_t words[] = {tag, one, other};

    return seep_hash_words(SEEP_HASH_SEED, words, 3);
}

uint64_t seep_held_hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++) {
        hash = seep_hash_add(hash, (unsigned char)*text);
    }
    return seep_hash_add(hash, 0);
}

static size_t slot_of(const struct seep_held_search *search, uint64_t key)
{
    size_t mask = search->index_capacity - 1;
    size_t slot = seep_hash_mix(key) & mask;

    while (search->index[slot] != 0 &&
           search->nodes[search->index[slot] - 1].key != key) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

uint32_t seep_held_node_find(const struct seep_held_search *search,
                             uint64_t key)
{
    /* Of none it is 0, and 0 - 1 is SEEP_HELD_NOTHING. */
    return search->index[slot_of(search, key)] - 1;
}

static bool grow_index(struct seep_held_search *search)
{
    size_t capacity = 2 * search->index_capacity;
    uint32_t *index = calloc(capacity, sizeof(*index));

    if (index == NULL) {
        return false;
    }
    free(search->index);
    search->index = index;
    search->index_capacity = capacity;
    for (size_t i = 0; i < search->node_count; i++) {
        index[slot_of(search, search->nodes[i].key)] = (uint32_t)i + 1;
    }
    return true;
}

/* @return the array with room for one more, or NULL */
static void *room(void *array, size_t count, size_t *capacity, size_t most,
                  size_t bytes)
{
    size_t wanted = *capacity == 0 ? 1024 : 2 * *capacity;
    void *larger;

    if (count < *capacity) {
        return array;
    }
    larger = count >= most ? NULL : realloc(array, wanted * bytes);
    if (larger != NULL) {
        *capacity = wanted;
    }
    return larger;
}

uint32_t seep_held_node_add(struct seep_held_search *search,
                            const struct seep_held_node *node)
{
    struct seep_held_node *nodes =
        room(search->nodes, search->node_count, &search->node_capacity,
             NODES_MOST, sizeof(*nodes));

    if (nodes == NULL) {
        search->was_cut_short = true;
        return SEEP_HELD_NOTHING;
    }
    search->nodes = nodes;
    if (2 * search->node_count >= search->index_capacity &&
        !grow_index(search)) {
        search->was_cut_short = true;
        return SEEP_HELD_NOTHING;
    }
    nodes[search->node_count] = *node;
    search->node_count++;
    search->index[slot_of(search, node->key)] = (uint32_t)search->node_count;
    return (uint32_t)search->node_count - 1;
}

#define LINKS_MOST_EACH 48U /* to who holds it */
/* Copies of an array that was replaced again and again lie about by the
 * hundred, in what has their place now: of a block, and of what it is of. */
#define LINKS_MOST_NEAR 1024U

static uint16_t links_most(const struct seep_held_node *node)
{
    return node->is_asked || node->level == 1 ? LINKS_MOST_NEAR
                                              : LINKS_MOST_EACH;
}

bool seep_held_is_full(const struct seep_held_node *node)
{
    return node->up_count >= links_most(node);
}

#define TYPE_OFFSET_BYTES 8 /* in an object */

/* Thousands of a type that have the same thing, each by its own word, must not
 * leave out the one that has all of them: half of the links are for others. */
static bool is_crowded(const struct seep_held_node *node)
{
    return node->crowd_count >= links_most(node) / 2;
}

bool seep_held_is_of_crowd(struct seep_held_search *search, uint32_t child,
                           uint64_t at)
{
    struct seep_held_node *node = &search->nodes[child];

    if (!is_crowded(node) ||
        seep_held_word(search->memory,
                       at - node->crowd_offset_bytes + TYPE_OFFSET_BYTES) !=
            node->crowd_type) {
        return false;
    }
    node->was_crowded = true;
    return true;
}

/* The most frequent of them, if there is one (Boyer and Moore 1991). */
static void join_crowd(struct seep_held_node *below,
                       const struct seep_held_node *above, uint64_t at)
{
    bool is_same = above->kind == SEEP_HELD_OBJECT &&
                   above->type == below->crowd_type &&
                   at - above->address == below->crowd_offset_bytes;

    if (is_crowded(below)) {
        return;
    }
    if (is_same) {
        below->crowd_count++;
    } else if (below->crowd_count > 0) {
        below->crowd_count--;
    } else if (above->kind == SEEP_HELD_OBJECT && at >= above->address &&
               at - above->address <= UINT32_MAX) {
        below->crowd_type = above->type;
        below->crowd_offset_bytes = (uint32_t)(at - above->address);
        below->crowd_count = 1;
    }
}

#define RANGE_BYTES_MOST (UINT64_C(64) << 20)

/*
 * Does what begins at @value only lie behind a range? A vector has {begin, end,
 * end of room}: where allocators put no head before a block, the last points to
 * where the next one begins.
 */
static bool is_end_of_range(struct seep_held_search *search,
                            const struct seep_held_node *child,
                            const struct seep_held_node *holder, uint64_t at,
                            uint64_t value)
{
    uint64_t begin = 0;
    uint64_t last = value;

    if (value != child->address ||
        (child->place != SEEP_HELD_NO_BLOCK &&
         child->place != SEEP_HELD_KNOWN) ||
        holder->kind == SEEP_HELD_OBJECT || at < holder->start + 8) {
        return false;
    }
    if (seep_held_word(search->memory, at + 8) == value) {
        begin = seep_held_word(search->memory, at - 8);
    } else if (at >= holder->start + 16) {
        begin = seep_held_word(search->memory, at - 16);
        last = seep_held_word(search->memory, at - 8);
    }
    return begin % 16 == 0 && begin <= last && last <= value && begin < value &&
           value - begin <= RANGE_BYTES_MOST &&
           seep_held_map_at(search->memory, begin) ==
               seep_held_map_at(search->memory, value);
}

/* A table that has one thing over and over must not leave others out. */
#define SAME_LINKS_MOST 8U

uint32_t seep_held_link_add(struct seep_held_search *search, uint32_t child,
                            uint32_t holder, uint64_t at, uint64_t value)
{
    struct seep_held_node *below = &search->nodes[child];
    struct seep_held_node *above = &search->nodes[holder];
    struct seep_held_link *links;
    unsigned same = 0;

    if (seep_held_is_full(below)) {
        return SEEP_HELD_NOTHING;
    }
    for (uint32_t i = below->up; i != 0; i = search->links[i - 1].next_up) {
        same += search->links[i - 1].holder == holder;
        if (same == SAME_LINKS_MOST ||
            (search->links[i - 1].at == at &&
             search->links[i - 1].holder == holder)) {
            return SEEP_HELD_NOTHING;
        }
    }
    links = room(search->links, search->link_count, &search->link_capacity,
                 LINKS_MOST, sizeof(*links));
    if (links == NULL) {
        search->was_cut_short = true;
        return SEEP_HELD_NOTHING;
    }
    search->links = links;
    links[search->link_count] = (struct seep_held_link){
        .at = at,
        .value = value,
        .child = child,
        .holder = holder,
        .next_up = below->up,
        .next_down = above->down,
        .is_stale = above->is_of_allocator,
        .is_end = is_end_of_range(search, below, above, at, value),
    };
    search->link_count++;
    below->up = (uint32_t)search->link_count;
    above->down = (uint32_t)search->link_count;
    below->up_count++;
    join_crowd(below, above, at);
    return (uint32_t)search->link_count - 1;
}

void seep_held_strike_down(struct seep_held_search *search, uint32_t number)
{
    search->nodes[number].is_of_allocator = true;
    for (uint32_t i = search->nodes[number].down; i != 0;
         i = search->links[i - 1].next_down) {
        search->links[i - 1].is_stale = true;
    }
}

static size_t push_unseen(uint8_t *seen, uint32_t *stack, size_t depth,
                          uint32_t node)
{
    if (!seen[node]) {
        seen[node] = 1;
        stack[depth++] = node;
    }
    return depth;
}

size_t seep_held_count_below(const struct seep_held_search *search,
                             const uint32_t *nodes, size_t count)
{
    uint8_t *seen = calloc(search->node_count + 1, 1);
    uint32_t *stack = calloc(search->node_count + 1, sizeof(*stack));
    size_t depth = 0;
    size_t below = 0;

    for (size_t i = 0; seen != NULL && stack != NULL && i < count; i++) {
        depth = push_unseen(seen, stack, depth, nodes[i]);
    }
    while (depth > 0) {
        uint32_t at = stack[--depth];

        below += search->nodes[at].is_asked;
        for (uint32_t i = search->nodes[at].down; i != 0;
             i = search->links[i - 1].next_down) {
            if (!search->links[i - 1].is_stale) {
                depth =
                    push_unseen(seen, stack, depth, search->links[i - 1].child);
            }
        }
    }
    free(seen);
    free(stack);
    return below;
}

#define CLOSURE_MOST 4096U
#define KNOT_MOST 16U /* raw blocks that hold each other and have no head */

/* All that holds @asked, and what holds that. */
struct closure {
    uint32_t nodes[CLOSURE_MOST];
    size_t count;
    bool *is_in;   /* by node */
    bool *is_open; /* those that nobody looked for who holds them */
};

/* @return false where a holder may have been missed */
static bool close_upwards(const struct seep_held_search *search,
                          struct closure *closure)
{
    for (size_t at = 0; at < closure->count; at++) {
        const struct seep_held_node *node = &search->nodes[closure->nodes[at]];

        if (seep_held_is_full(node) || node->was_crowded ||
            closure->is_open[closure->nodes[at]]) {
            return false;
        }
        for (uint32_t i = node->up; i != 0; i = search->links[i - 1].next_up) {
            uint32_t holder = search->links[i - 1].holder;

            if (search->links[i - 1].is_stale ||
                closure->count == CLOSURE_MOST) {
                return false;
            }
            if (!closure->is_in[holder]) {
                closure->is_in[holder] = true;
                closure->nodes[closure->count++] = holder;
            }
        }
    }
    return true;
}

/* Does an object hold one of these, and one of these it? */
static bool has_object(const struct seep_held_search *search,
                       const struct closure *closure)
{
    for (size_t at = 0; at < closure->count; at++) {
        const struct seep_held_node *node = &search->nodes[closure->nodes[at]];

        for (uint32_t i = node->up; i != 0; i = search->links[i - 1].next_up) {
            const struct seep_held_node *holder =
                &search->nodes[search->links[i - 1].holder];

            if (holder->kind == SEEP_HELD_OBJECT && holder->up != 0) {
                return true;
            }
        }
    }
    return false;
}

bool seep_held_is_cycle(const struct seep_held_search *search, uint32_t asked)
{
    struct closure *closure;
    bool is_all;

    if ((search->was_cut_short && !search->is_deep) || search->was_late ||
        search->memory->missing_bytes > 0) {
        return false;
    }
    closure = calloc(1, sizeof(*closure));
    if (closure == NULL) {
        return false;
    }
    closure->is_in = calloc(search->node_count, sizeof(*closure->is_in));
    closure->is_open = calloc(search->node_count, sizeof(*closure->is_open));
    is_all = closure->is_in != NULL && closure->is_open != NULL;
    for (size_t i = 0; is_all && i < search->front_count; i++) {
        closure->is_open[search->front[i]] = true;
    }
    if (is_all) {
        closure->nodes[closure->count++] = asked;
        closure->is_in[asked] = true;
        is_all = close_upwards(search, closure) &&
                 (closure->count <= KNOT_MOST || has_object(search, closure));
    }
    free(closure->is_open);
    free(closure->is_in);
    free(closure);
    return is_all;
}

/*
 * Whether nothing points to a block.
 *
 * Words in free memory point to whatever it was used for, so they hold nothing.
 * But an array that grows is elsewhere each time: a pass comes to where it goes
 * before it is there, or its block is free when it is looked at. What is only
 * left over stays where it is, so a second pass tells the two apart.
 */

#define DROPPED_MOST 65536U

void seep_held_note_dropped(struct seep_held_search *search,
                            const struct seep_held_hit *hit)
{
    if (search->dropped == NULL) {
        search->dropped = calloc(DROPPED_MOST, sizeof(*search->dropped));
    }
    if (search->dropped != NULL && search->dropped_count < DROPPED_MOST) {
        search->dropped[search->dropped_count++] = *hit;
    }
}

int seep_held_compare_words(const void *one, const void *other)
{
    const struct seep_held_hit *a = one;
    const struct seep_held_hit *b = other;

    if (a->at != b->at) {
        return a->at < b->at ? -1 : 1;
    }
    return (a->value > b->value) - (a->value < b->value);
}

static bool was_dropped(const struct seep_held_search *search,
                        const struct seep_held_hit *hit)
{
    return search->dropped_count > 0 &&
           bsearch(hit, search->dropped, search->dropped_count,
                   sizeof(*search->dropped), seep_held_compare_words) != NULL;
}

/* Blocks that nothing points to, but words in free memory. @return how many */
static size_t add_doubtful(struct seep_held_search *search, int *ret_error)
{
    struct seep_held_scan *scan = &search->side;
    size_t count = 0;

    seep_held_scan_clear(scan);
    for (size_t i = 0; i < search->asked_count && *ret_error == 0; i++) {
        uint32_t number = search->asked[i];
        const struct seep_held_node *node = &search->nodes[number];

        if (node->up_count == 0) {
            count++;
            *ret_error = seep_held_add_target(search, scan, number);
        }
    }
    return count;
}

/* Is there one of which no pass saw that it moves? */
static bool is_any_doubtful(const struct seep_held_search *search)
{
    for (size_t i = 0; i < search->asked_count; i++) {
        const struct seep_held_node *node = &search->nodes[search->asked[i]];

        if (node->up_count == 0 && !node->is_moving) {
            return true;
        }
    }
    return false;
}

/*
 * Has somebody the place by now? When the first pass came to it, what is free
 * had been listed before: an array that went there in between was in free
 * memory, and is where it was if its thread did not run since.
 */
static bool is_taken(struct seep_held_search *search, uint64_t at)
{
    uint32_t holder = seep_held_resolve(search, at);

    return holder != SEEP_HELD_NOTHING && holder != SEEP_HELD_ALLOCATOR;
}

/* A pass over what points to what is doubtful: which of it moves? */
static int look(struct seep_held_search *search)
{
    struct seep_held_scan *scan = &search->side;
    int error = seep_held_memory_reload(search->memory);

    /* Pages that had no word may have got one: all are read again. */
    scan->first_pass = true;
    error = error == 0 ? seep_held_scan_run(scan, search->memory) : error;
    if (error == 0 && scan->hit_count > 0) {
        seep_held_memory_forget(search->memory);
        error = seep_held_blocks_again(&search->blocks);
    }
    for (size_t i = 0; error == 0 && i < scan->hit_count; i++) {
        uint32_t owner = scan->ranges[scan->hits[i].range].owner;
        uint64_t at = scan->hits[i].at;

        if (at < search->nodes[owner].start || at >= search->nodes[owner].end) {
            bool moves =
                !was_dropped(search, &scan->hits[i]) || is_taken(search, at);

            search->nodes[owner].is_moving |= moves;
        }
    }
    return error;
}

/* Each pass may miss what goes by: on a busy machine one in thirteen did,
 * where an array moved five times a second. */
#define LOOKS_MOST 4

int seep_held_look_again(struct seep_held_search *search)
{
    int error = 0;

    /* What is too much to keep is not known. */
    if (search->dropped_count == DROPPED_MOST ||
        search->memory->missing_bytes > 0) {
        search->has_first = false;
    }
    if (search->question->core_path != NULL || !search->has_first ||
        add_doubtful(search, &error) == 0) {
        return error;
    }
    if (search->dropped_count > 0) {
        qsort(search->dropped, search->dropped_count, sizeof(*search->dropped),
              seep_held_compare_words);
    }
    error = error == 0 ? look(search) : error;
    /* Only where there is what it may have left behind. */
    for (int i = 1;
         error == 0 && i < LOOKS_MOST && search->dropped_count > 0 &&
         is_any_doubtful(search) && !seep_held_search_is_late(search);
         i++) {
        error = look(search);
    }
    return error;
}

bool seep_held_is_lost(const struct seep_held_search *search, uint32_t asked)
{
    const struct seep_held_node *node = &search->nodes[asked];

    if (!search->has_first || search->was_late || node->is_moving ||
        node->raw_word != 0) {
        return false;
    }
    for (uint32_t i = node->up; i != 0; i = search->links[i - 1].next_up) {
        if (!search->links[i - 1].is_stale || search->links[i - 1].is_odd) {
            return false;
        }
    }
    return true;
}
