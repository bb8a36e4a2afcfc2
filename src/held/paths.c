/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From links to ways: which root has a block, by the least odd way, and what
 * all blocks have in common on theirs.
 *
 * The way is the cheapest, not the shortest: a field that a rule knows costs 1,
 * a pointer into the middle 2, an offset that nothing names 5 and more, so a
 * stale word that happens to lead to a root does not win. A way that says
 * something impossible strikes its link out, and the ways are found again
 * (Dijkstra 1959, once from all roots).
 *
 * Invariant: what was struck out is in no way.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "held/search.h"

#define ROUNDS_MOST 40U
#define FAR UINT32_MAX
#define STEPS_MOST 1024U   /* of a way, in words */
#define STEPS_A_LOOK 4096U /* at the clock */

/* What a root costs by its rank, in hundredths. A function that runs may have
 * for a moment what an attribute has for ever. */
static const uint16_t rank_costs[SEEP_HELD_RANKS] = {100, 300, 1200, 6100,
                                                     9100};
#define OPERAND_COST 3000U
#define ODD_COST 7000U   /* more than that of a stack */
#define BOOK_COST 12000U /* more than that of what keeps the books */
#define COST_KNOWN 300U  /* of a field that is known, at most */

/* Is the time over that there is for words? */
static bool is_over(struct seep_held_search *search)
{
    if (!seep_held_memory_is_late(search->memory)) {
        return false;
    }
    search->was_cut_short = true;
    search->was_late = true;
    return true;
}

/* Types whose every field is known: raw memory is in none of them. */
static bool is_closed(const struct seep_held_type *type)
{
    switch (type->species) {
    case SEEP_HELD_IS_FUNCTION:
    case SEEP_HELD_IS_MODULE:
    case SEEP_HELD_IS_CELL:
    case SEEP_HELD_IS_METHOD:
    case SEEP_HELD_IS_TUPLE:
    case SEEP_HELD_IS_LIST:
    case SEEP_HELD_IS_DICT:
    case SEEP_HELD_IS_SET:
    case SEEP_HELD_IS_FROZENSET:
    case SEEP_HELD_IS_TRACEBACK:
    case SEEP_HELD_IS_BUILTIN:
    case SEEP_HELD_IS_PROPERTY:
    case SEEP_HELD_IS_STATIC_METHOD:
    case SEEP_HELD_IS_CLASS_METHOD:
        return true;
    default:
        return (type->flags & SEEP_HELD_FLAG_TYPE) != 0;
    }
}

static uint16_t object_cost(struct seep_held_search *search,
                            const struct seep_held_link *link)
{
    const struct seep_held_node *holder = &search->nodes[link->holder];
    struct seep_held_node *child = &search->nodes[link->child];
    bool is_raw = child->kind == SEEP_HELD_RAW;
    unsigned cost = 100;
    struct seep_held_step step;

    if (is_raw && seep_held_owns(search, holder, link->at)) {
        return 100;
    }
    seep_held_edge_of(search, holder, link->at, NULL, 0, &step);
    if (step.edge == SEEP_HELD_EDGE_OPERAND) {
        /* While it runs its slots may be of before, and of anybody. */
        cost = seep_held_frame_runs(&search->python, holder->address) ? ODD_COST
                                                                      : 500;
    } else if (step.edge == SEEP_HELD_EDGE_OFFSET) {
        /* As an extension's object has that of C++ which it stands for. */
        seep_held_read_class(search, child);
        cost = is_raw && child->type != 0 ? 200 : 500;
    }
    if (is_raw) {
        cost += is_closed(seep_held_type_at(&search->python, holder->type))
                    ? 600
                    : 100;
    }
    return (uint16_t)cost;
}

/* Does another word point to where it begins, that is no end of a range? */
static bool is_begun(const struct seep_held_search *search, uint32_t child)
{
    for (uint32_t i = search->nodes[child].up; i != 0;
         i = search->links[i - 1].next_up) {
        const struct seep_held_link *link = &search->links[i - 1];

        if (!link->is_stale && !link->is_end &&
            link->value == search->nodes[child].address &&
            search->nodes[link->holder].rank != SEEP_HELD_RANK_MAPPING) {
            return true;
        }
    }
    return false;
}

/* Is it by @link that a list, a dict, a set or a deque has what it consists of?
 * Nobody else has that. */
static bool is_owner(struct seep_held_search *search,
                     const struct seep_held_link *link)
{
    const struct seep_held_node *holder = &search->nodes[link->holder];
    const struct seep_held_type *type;

    if (link->is_stale || holder->kind != SEEP_HELD_OBJECT) {
        return false;
    }
    type = seep_held_type_at(&search->python, holder->type);
    return ((type->flags & (SEEP_HELD_FLAG_LIST | SEEP_HELD_FLAG_DICT)) != 0 ||
            type->species == SEEP_HELD_IS_SET ||
            type->species == SEEP_HELD_IS_DEQUE) &&
           seep_held_owns(search, holder, link->at);
}

/* Is what it points to part of an object that is not the holder? Then the word
 * is from before that, in a cache of what was free. */
static bool is_of_another(struct seep_held_search *search,
                          const struct seep_held_link *link)
{
    const struct seep_held_node *child = &search->nodes[link->child];
    bool found = false;

    if (child->kind != SEEP_HELD_RAW || is_owner(search, link)) {
        return false;
    }
    for (uint32_t i = child->up; !found && i != 0;
         i = search->links[i - 1].next_up) {
        found = search->links[i - 1].value == child->address &&
                is_owner(search, &search->links[i - 1]);
    }
    return found;
}

/* Is what it points to an array of an allocator of a device? Such are books,
 * and what else points there did so before they were. */
static bool is_of_a_book(struct seep_held_search *search,
                         const struct seep_held_link *link)
{
    const struct seep_held_node *child = &search->nodes[link->child];
    bool found = false;

    if (!search->question->is_of_driver || child->kind != SEEP_HELD_RAW ||
        seep_held_keeps_books(&search->nodes[link->holder])) {
        return false;
    }
    for (uint32_t i = child->up; !found && i != 0;
         i = search->links[i - 1].next_up) {
        found =
            search->links[i - 1].value == child->address &&
            !search->links[i - 1].is_stale &&
            seep_held_keeps_books(&search->nodes[search->links[i - 1].holder]);
    }
    return found;
}

/* By how odd it is. */
static uint16_t link_cost(struct seep_held_search *search, uint32_t number)
{
    struct seep_held_link *link = &search->links[number];
    const struct seep_held_node *holder = &search->nodes[link->holder];

    if (link->cost != 0) {
        return link->cost;
    }
    if (link->is_chain) {
        link->cost = 1;
    } else if (is_of_a_book(search, link)) {
        link->cost = BOOK_COST;
    } else if ((link->is_end && (search->nodes[link->child].is_guessed ||
                                 is_begun(search, link->child))) ||
               is_of_another(search, link)) {
        link->cost = ODD_COST;
    } else if (holder->kind == SEEP_HELD_ROOT) {
        link->cost =
            holder->words == SEEP_HELD_KIND_FRAME && *holder->name == '\0'
                ? OPERAND_COST
                : rank_costs[holder->rank];
    } else if (holder->kind == SEEP_HELD_OBJECT) {
        link->cost = object_cost(search, link);
    } else {
        link->cost =
            (uint16_t)((link->value == search->nodes[link->child].address
                            ? 100
                            : 200) +
                       (holder->is_guessed ? 50 : 0));
    }
    return link->cost;
}

/* A word of an object of a type that C made, where that says that it has
 * fields: such are written when it is. */
static bool is_of_c(struct seep_held_search *search,
                    const struct seep_held_link *link)
{
    const struct seep_held_node *holder = &search->nodes[link->holder];
    const struct seep_held_type *type;

    if (holder->kind != SEEP_HELD_OBJECT || link->at < holder->address) {
        return false;
    }
    type = seep_held_type_at(&search->python, holder->type);
    return link->at - holder->address <
               seep_held_bytes_of_c(&search->python, type) &&
           !seep_held_has_frame(type);
}

static size_t count_named(struct seep_held_search *search, uint8_t rank,
                          bool with_fields_of_c)
{
    uint8_t *seen = calloc(search->node_count + 1, 1);
    uint32_t *stack = calloc(search->node_count + 1, sizeof(*stack));
    size_t depth = 0;
    size_t named = 0;

    for (size_t i = 0; seen != NULL && stack != NULL && i < search->node_count;
         i++) {
        if (search->nodes[i].rank <= rank) {
            seen[i] = 1;
            stack[depth++] = (uint32_t)i;
        }
    }
    while (depth > 0) {
        uint32_t at = stack[--depth];

        for (uint32_t i = search->nodes[at].down; i != 0;
             i = search->links[i - 1].next_down) {
            const struct seep_held_link *link = &search->links[i - 1];

            if (!link->is_stale && !seen[link->child] &&
                (search->nodes[at].kind == SEEP_HELD_ROOT ||
                 link_cost(search, i - 1) <= COST_KNOWN ||
                 (with_fields_of_c && is_of_c(search, link)))) {
                seen[link->child] = 1;
                stack[depth++] = link->child;
            }
        }
    }
    for (size_t i = 0; seen != NULL && i < search->asked_count; i++) {
        named += seen[search->asked[i]];
    }
    free(seen);
    free(stack);
    return named;
}

size_t seep_held_count_named(struct seep_held_search *search, uint8_t rank)
{
    return count_named(search, rank, false);
}

size_t seep_held_count_nearly_named(struct seep_held_search *search,
                                    uint8_t rank)
{
    return count_named(search, rank, true);
}

/*
 * What is nearest first: a binary heap.
 *
 * Invariant: no item is nearer than the one above it.
 */

struct entry {
    uint32_t distance;
    uint32_t node;
};

struct heap {
    struct entry *items;
    size_t count;
    size_t capacity;
};

/* @return false: no memory; then what was there stays */
static bool push(struct heap *heap, struct entry entry)
{
    size_t at = heap->count;

    if (at == heap->capacity) {
        size_t capacity = at == 0 ? 1024 : 2 * at;
        struct entry *items = realloc(heap->items, capacity * sizeof(*items));

        if (items == NULL) {
            return false;
        }
        heap->items = items;
        heap->capacity = capacity;
    }
    heap->count++;
    while (at > 0 && heap->items[(at - 1) / 2].distance > entry.distance) {
        heap->items[at] = heap->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->items[at] = entry;
    return true;
}

/* The nearest, of one at least. */
static struct entry pop(struct heap *heap)
{
    struct entry first = heap->items[0];
    struct entry last = heap->items[--heap->count];
    size_t at = 0;

    for (;;) {
        size_t below = 2 * at + 1;

        if (below >= heap->count) {
            break;
        }
        below += below + 1 < heap->count &&
                 heap->items[below + 1].distance < heap->items[below].distance;
        if (heap->items[below].distance >= last.distance) {
            break;
        }
        heap->items[at] = heap->items[below];
        at = below;
    }
    heap->items[at] = last;
    return first;
}

/* Of what has a rank; links of a root have it in their costs. */
static uint32_t distance_of(const struct seep_held_node *node)
{
    return node->kind == SEEP_HELD_ROOT || node->rank < SEEP_HELD_RANK_MAPPING
               ? 0
               : rank_costs[node->rank];
}

static int find_ways(struct seep_held_ways *ways)
{
    struct seep_held_search *search = ways->search;
    struct heap heap = {0};
    bool has_room = true;
    uint32_t steps = 0;

    for (size_t i = 0; i < search->node_count; i++) {
        ways->distance[i] = FAR;
        ways->link[i] = SEEP_HELD_NO_LINK;
        if (search->nodes[i].rank != SEEP_HELD_NO_RANK) {
            ways->distance[i] = distance_of(&search->nodes[i]);
            has_room &=
                push(&heap, (struct entry){ways->distance[i], (uint32_t)i});
        }
    }
    while (heap.count > 0 && has_room) {
        struct entry at = pop(&heap);

        if (++steps % STEPS_A_LOOK == 0 && is_over(search)) {
            break;
        }
        if (at.distance > ways->distance[at.node]) {
            continue;
        }
        for (uint32_t i = search->nodes[at.node].down; i != 0;
             i = search->links[i - 1].next_down) {
            const struct seep_held_link *link = &search->links[i - 1];
            uint32_t child = link->child;
            uint32_t distance;

            if (link->is_stale) {
                continue;
            }
            distance = at.distance + link_cost(search, i - 1);
            if (distance < ways->distance[child]) {
                ways->distance[child] = distance;
                ways->link[child] = i - 1;
                has_room &= push(&heap, (struct entry){distance, child});
            }
        }
    }
    free(heap.items);
    return has_room ? 0 : -ENOMEM;
}

static bool same_shape(struct seep_held_search *search, uint32_t one,
                       uint32_t other)
{
    struct seep_held_node *a = &search->nodes[one];
    struct seep_held_node *b = &search->nodes[other];

    seep_held_read_class(search, a);
    seep_held_read_class(search, b);
    return a->kind == b->kind && a->type == b->type &&
           (a->end - a->start == b->end - b->start ||
            (a->is_guessed && b->is_guessed));
}

static bool has_rank(const struct seep_held_search *search, uint32_t node)
{
    return search->nodes[node].rank != SEEP_HELD_NO_RANK;
}

static bool is_kind(const struct seep_held_search *search, uint32_t node,
                    enum seep_held_node_kind kind)
{
    return search->nodes[node].kind == kind;
}

static bool is_dict(struct seep_held_search *search, uint32_t node)
{
    return is_kind(search, node, SEEP_HELD_OBJECT) &&
           (seep_held_type_at(&search->python, search->nodes[node].type)
                ->flags &
            SEEP_HELD_FLAG_DICT) != 0;
}

static bool same_edge(const struct seep_held_told *a,
                      const struct seep_held_told *b)
{
    return a->step.edge == b->step.edge &&
           (a->step.edge_name == b->step.edge_name ||
            strcmp(a->step.edge_name, b->step.edge_name) == 0) &&
           a->step.offset_bytes == b->step.offset_bytes;
}

static int push_step(struct seep_held_way *way,
                     const struct seep_held_told *told)
{
    if (way->count == STEPS_MOST) {
        return -E2BIG;
    }
    if (way->count == way->capacity) {
        size_t capacity = way->capacity == 0 ? 16 : 2 * way->capacity;
        struct seep_held_told *steps =
            realloc(way->steps, capacity * sizeof(*steps));

        if (steps == NULL) {
            return -ENOMEM;
        }
        way->steps = steps;
        way->capacity = capacity;
    }
    way->steps[way->count++] = *told;
    return 0;
}

#define LIKE_BYTES_MOST 1024U /* of raw blocks that are links of one chain */

/* Add a step; what repeats on the way up is one step. */
static int add_step(struct seep_held_search *search, struct seep_held_way *way,
                    const struct seep_held_told *told)
{
    struct seep_held_told *last =
        way->count > 0 ? &way->steps[way->count - 1] : NULL;
    uint32_t node = told->node;
    bool is_free = !has_rank(search, node);

    if (last != NULL && last->step.edge == SEEP_HELD_EDGE_KEY &&
        *last->step.edge_name != '\0' && is_dict(search, last->node) &&
        ((told->step.edge == SEEP_HELD_EDGE_ATTRIBUTE &&
          strcmp(told->step.edge_name, "__dict__") == 0) ||
         (!is_free && search->nodes[node].words == SEEP_HELD_KIND_CLASS))) {
        const char *name = last->step.edge_name;

        *last = *told;
        last->step.edge = SEEP_HELD_EDGE_ATTRIBUTE;
        last->step.edge_name = name;
        return 0;
    }
    if (last != NULL && is_free && is_kind(search, node, SEEP_HELD_RAW) &&
        is_kind(search, last->node, SEEP_HELD_RAW) &&
        same_shape(search, last->node, node) &&
        search->nodes[node].end - search->nodes[node].start <=
            LIKE_BYTES_MOST) {
        last->step.edge = SEEP_HELD_EDGE_CHAIN;
        return 0;
    }
    if (way->count >= 2 && is_free && same_shape(search, last->node, node) &&
        same_shape(search, last[-1].node, node) && same_edge(last, told) &&
        is_kind(search, node, SEEP_HELD_OBJECT)) {
        return 0;
    }
    if (way->count >= 3 && is_free && !has_rank(search, last[-1].node) &&
        same_shape(search, last[-1].node, node) && same_edge(&last[-1], told) &&
        same_shape(search, last[-2].node, last->node)) {
        way->count--;
        return 0;
    }
    return push_step(way, told);
}

static bool is_item(enum seep_held_edge edge)
{
    return edge == SEEP_HELD_EDGE_ITEM || edge == SEEP_HELD_EDGE_KEY ||
           edge == SEEP_HELD_EDGE_KEY_ITSELF || edge == SEEP_HELD_EDGE_MEMBER ||
           edge == SEEP_HELD_EDGE_ATTRIBUTE;
}

/* The buffers below the object of a step, on the way up to it. */
struct buffers {
    uint32_t first_link; /* by which the lowest of these like ones was found */
    uint32_t last_link;  /* the highest */
    uint32_t last;       /* its node; SEEP_HELD_NOTHING: none */
    size_t first_step;   /* in the way */
};

static void note_buffer(struct seep_held_search *search,
                        const struct seep_held_way *way, uint32_t link,
                        struct buffers *buffers)
{
    uint32_t node = search->links[link].holder;

    if (buffers->last == SEEP_HELD_NOTHING ||
        !same_shape(search, buffers->last, node)) {
        buffers->first_link = link;
        buffers->first_step = way->count;
    }
    buffers->last = node;
    buffers->last_link = link;
}

/* One step up by @link. @return 0, -ENOMEM, or -ESTALE with way->bad */
static int tell_step(struct seep_held_search *search, struct seep_held_way *way,
                     uint32_t number, struct buffers *buffers)
{
    const struct seep_held_link *link = &search->links[number];
    struct seep_held_node *holder = &search->nodes[link->holder];
    struct seep_held_told told = {.node = link->holder, .link = number};
    const struct seep_held_node *buffer = NULL;
    bool is_fresh;

    told.step.edge_name = "";
    told.step.edge_function = "";
    if (holder->kind == SEEP_HELD_OBJECT) {
        if (buffers->last != SEEP_HELD_NOTHING &&
            seep_held_owns(search, holder, link->at)) {
            buffer = &search->nodes[buffers->last];
        }
        is_fresh = seep_held_edge_of(
            search, holder, link->at, buffer,
            buffer == NULL ? 0 : search->links[buffers->last_link].at,
            &told.step);
        if (buffer != NULL) {
            const struct seep_held_link *first =
                &search->links[buffers->first_link];

            /* Items are objects: raw memory below one is what lay there. */
            if (is_item(told.step.edge) &&
                !is_kind(search, first->child, SEEP_HELD_OBJECT) &&
                !seep_held_joins(search, holder, &search->nodes[first->holder],
                                 first->at)) {
                way->bad = buffers->first_link;
                search->links[way->bad].is_odd = true;
                return -ESTALE;
            }
            if (!is_fresh) {
                way->bad = buffers->last_link;
                return -ESTALE;
            }
            way->count = buffers->first_step;
        }
        buffers->last = SEEP_HELD_NOTHING;
    } else if (holder->kind == SEEP_HELD_RAW) {
        note_buffer(search, way, number, buffers);
        told.step.edge = SEEP_HELD_EDGE_OFFSET;
        told.step.offset_bytes = (int64_t)(link->at - holder->start);
    } else {
        told.step.edge = SEEP_HELD_EDGE_NONE;
        told.step.offset_bytes = (int64_t)(link->at - holder->start);
        buffers->last = SEEP_HELD_NOTHING;
    }
    return add_step(search, way, &told);
}

/* The way of one block, from what was found. */
static int tell_way(const struct seep_held_ways *ways,
                    struct seep_held_way *way)
{
    struct seep_held_search *search = ways->search;
    struct buffers buffers = {.last = SEEP_HELD_NOTHING};
    uint32_t at = way->asked;
    uint32_t steps = 0;
    int error = 0;

    way->count = 0;
    way->bad = SEEP_HELD_NO_LINK;
    way->root = SEEP_HELD_NOTHING;
    if (ways->distance[at] == FAR) {
        return 0;
    }
    while (error == 0 && ways->link[at] != SEEP_HELD_NO_LINK) {
        error = tell_step(search, way, ways->link[at], &buffers);
        at = search->links[ways->link[at]].holder;
        if (++steps % STEPS_A_LOOK == 0 && is_over(search)) {
            error = -ETIME;
        }
    }
    if (error == -ETIME || error == -E2BIG) {
        search->was_cut_short = true;
        way->count = 0;
        return 0;
    }
    way->root = at;
    return error == -ESTALE ? 0 : error;
}

int seep_held_tell_all(struct seep_held_ways *ways, struct seep_held_way *all,
                       size_t count)
{
    struct seep_held_search *search = ways->search;
    int error = 0;

    for (uint32_t round = 0; error == 0 && round < ROUNDS_MOST; round++) {
        bool is_clean = true;

        error = find_ways(ways);
        for (size_t i = 0; error == 0 && i < count; i++) {
            error = tell_way(ways, &all[i]);
            if (all[i].bad != SEEP_HELD_NO_LINK) {
                search->links[all[i].bad].is_stale = true;
                is_clean = false;
            }
        }
        if (is_clean || is_over(search)) {
            break;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (all[i].bad != SEEP_HELD_NO_LINK) {
            all[i].count = 0;
            all[i].root = SEEP_HELD_NOTHING;
        }
    }
    return error;
}

/* Without a root: upwards until nothing is new. Blocks that are linked both
 * ways have each other, whoever has the first: three of one shape are no cycle.
 */
int seep_held_tell_unrooted(struct seep_held_search *search,
                            struct seep_held_way *way, bool *ret_is_cycle)
{
    struct buffers buffers = {.last = SEEP_HELD_NOTHING};
    uint32_t seen[64];
    size_t seen_count = 0;
    uint32_t at = way->asked;
    bool is_ring = false;
    bool is_mutual = false;
    size_t more_like = 0;
    int error = 0;

    way->count = 0;
    while (error == 0 && seen_count < 64) {
        uint32_t best = SEEP_HELD_NO_LINK;

        seen[seen_count++] = at;
        for (uint32_t i = search->nodes[at].up; i != 0;
             i = search->links[i - 1].next_up) {
            const struct seep_held_link *link = &search->links[i - 1];
            size_t k = 0;

            while (k < seen_count && seen[k] != link->holder) {
                k++;
            }
            if (link->is_stale) {
                continue;
            }
            is_mutual |= k + 2 == seen_count;
            is_ring |= k < seen_count && k + 2 != seen_count;
            more_like += k == seen_count &&
                         is_kind(search, at, SEEP_HELD_RAW) &&
                         same_shape(search, at, link->holder);
            if (k == seen_count &&
                (best == SEEP_HELD_NO_LINK ||
                 link_cost(search, i - 1) < link_cost(search, best))) {
                best = i - 1;
            }
        }
        if (best == SEEP_HELD_NO_LINK) {
            break;
        }
        error = tell_step(search, way, best, &buffers);
        at = search->links[best].holder;
    }
    *ret_is_cycle = (is_ring || (is_mutual && more_like < 2)) &&
                    seep_held_is_cycle(search, way->asked);
    return error == -ESTALE ? 0 : error;
}

int seep_held_ways_open(struct seep_held_search *search,
                        struct seep_held_ways *ret_ways)
{
    size_t nodes = search->node_count + 1;

    *ret_ways = (struct seep_held_ways){
        .search = search,
        .distance = calloc(nodes, sizeof(uint32_t)),
        .link = calloc(nodes, sizeof(uint32_t)),
    };
    return ret_ways->distance == NULL || ret_ways->link == NULL ? -ENOMEM : 0;
}

void seep_held_ways_close(struct seep_held_ways *ways)
{
    free(ways->distance);
    free(ways->link);
}

int seep_held_strike(struct seep_held_search *search)
{
    struct seep_held_way *all = calloc(search->asked_count + 1, sizeof(*all));
    struct seep_held_ways ways;
    int error = seep_held_ways_open(search, &ways);

    error = all == NULL ? -ENOMEM : error;
    for (size_t i = 0; error == 0 && i < search->asked_count; i++) {
        all[i].asked = search->asked[i];
    }
    error = error == 0 ? seep_held_tell_all(&ways, all, search->asked_count)
                       : error;
    for (size_t i = 0; all != NULL && i < search->asked_count; i++) {
        free(all[i].steps);
    }
    free(all);
    seep_held_ways_close(&ways);
    return error;
}
