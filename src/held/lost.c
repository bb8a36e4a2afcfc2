/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether what holds a block is lost: it has holders, and to the topmost of
 * these nothing points. An array of which a library took a reference that it
 * never gives back is that, and so is an exception, with all that the frames of
 * its traceback have.
 *
 * What moves while memory is read looks the same in one pass. So it is looked
 * at twice more: words that point to it and lie in what is free must be the
 * same ones both times, and none may lie in anything else. And then all above
 * the block must hold it as before.
 *
 * Invariant: where a holder may have been missed, nothing is said to be lost.
 */
#include <errno.h>
#include <stdlib.h>

#include "held/search.h"

#define ABOVE_MOST 256U /* things above a block */
#define TOPS_MOST 4096U

/* What is above a block. */
struct above {
    uint32_t nodes[ABOVE_MOST];
    size_t count;
    uint32_t tops[ABOVE_MOST];
    size_t top_count;
};

/* The blocks of one call site, among those that are asked for. */
struct part {
    size_t first;
    size_t end;
};

static bool contains(const struct above *above, uint32_t node)
{
    for (size_t i = 0; i < above->count; i++) {
        if (above->nodes[i] == node) {
            return true;
        }
    }
    return false;
}

/* @param is_open  by node: nobody looked for who holds it
 * @return false where a holder may have been missed, or is a root */
static bool add_holders(const struct seep_held_search *search,
                        const bool *is_open, struct above *above,
                        uint32_t number)
{
    const struct seep_held_node *node = &search->nodes[number];
    bool is_top = true;

    if (node->kind == SEEP_HELD_ROOT || seep_held_is_full(node) ||
        node->was_crowded || node->is_moving || node->raw_word != 0 ||
        is_open[number]) {
        return false;
    }
    for (uint32_t i = node->up; i != 0; i = search->links[i - 1].next_up) {
        const struct seep_held_link *link = &search->links[i - 1];

        if (link->is_stale && !link->is_odd) {
            continue;
        }
        is_top = false;
        if (link->is_stale ||
            (!contains(above, link->holder) && above->count == ABOVE_MOST)) {
            return false;
        }
        if (!contains(above, link->holder)) {
            above->nodes[above->count++] = link->holder;
        }
    }
    if (is_top) {
        above->tops[above->top_count++] = number;
    }
    return true;
}

/* All that is above @asked. @return false where that is not all, has a root,
 * or has no top: a cycle is told as one, and a block that is a top itself is
 * for seep_held_is_lost() */
static bool look_up(const struct seep_held_search *search, const bool *is_open,
                    uint32_t asked, struct above *above)
{
    above->nodes[0] = asked;
    above->count = 1;
    above->top_count = 0;
    if (!search->has_first || search->was_cut_short || search->was_late) {
        return false;
    }
    for (size_t i = 0; i < above->count; i++) {
        if (!add_holders(search, is_open, above, above->nodes[i])) {
            return false;
        }
    }
    return above->top_count > 0 && above->count > 1;
}

/* The tops of all blocks, each once. @return how many, or negative errno */
static int add_tops(struct seep_held_search *search, const bool *is_open,
                    struct above *above)
{
    struct seep_held_scan *scan = &search->side;
    bool *is_added = calloc(search->node_count + 1, sizeof(*is_added));
    size_t count = 0;
    int error = is_added == NULL ? -ENOMEM : 0;

    seep_held_scan_clear(scan);
    for (size_t i = 0; error == 0 && i < search->asked_count; i++) {
        if (!look_up(search, is_open, search->asked[i], above)) {
            continue;
        }
        for (size_t k = 0; error == 0 && k < above->top_count; k++) {
            uint32_t top = above->tops[k];

            if (is_added[top]) {
                continue;
            }
            is_added[top] = true;
            error = count++ == TOPS_MOST
                        ? -E2BIG
                        : seep_held_add_target(search, scan, top);
        }
    }
    free(is_added);
    return error == 0 ? (int)count : error;
}

/* A pass: whose words lie in what is not free is held after all. */
static int pass(struct seep_held_search *search)
{
    struct seep_held_scan *scan = &search->side;
    int error;

    scan->first_pass = true;
    error = seep_held_memory_reload(search->memory);
    error = error == 0 ? seep_held_scan_run(scan, search->memory) : error;
    for (size_t i = 0; error == 0 && i < scan->hit_count; i++) {
        const struct seep_held_hit *hit = &scan->hits[i];
        uint32_t number = scan->ranges[hit->range].owner;
        uint32_t holder;

        if (hit->at >= search->nodes[number].start &&
            hit->at < search->nodes[number].end) {
            continue;
        }
        holder = seep_held_resolve(search, hit->at);
        if (holder < SEEP_HELD_ALLOCATOR && holder != number &&
            seep_held_is_link(search, number, holder, hit)) {
            search->nodes[number].is_moving = true;
        }
    }
    return error == 0 && scan->lost_count > 0 ? -ENOMEM : error;
}

/* Words that were not there before: what they point to moves. */
static void mark_new(struct seep_held_search *search,
                     const struct seep_held_hit *before, size_t count)
{
    const struct seep_held_scan *scan = &search->side;

    for (size_t i = 0; i < scan->hit_count; i++) {
        if (count == 0 ||
            bsearch(&scan->hits[i], before, count, sizeof(*before),
                    seep_held_compare_words) == NULL) {
            search->nodes[scan->ranges[scan->hits[i].range].owner].is_moving =
                true;
        }
    }
}

/* Two passes over what points to the tops. */
static int look_twice(struct seep_held_search *search)
{
    struct seep_held_scan *scan = &search->side;
    struct seep_held_hit *before;
    size_t count;
    int error = pass(search);

    count = scan->hit_count;
    before = error == 0 ? malloc((count + 1) * sizeof(*before)) : NULL;
    if (before == NULL) {
        return error < 0 ? error : -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        before[i] = scan->hits[i];
    }
    qsort(before, count, sizeof(*before), seep_held_compare_words);
    error = pass(search);
    if (error == 0) {
        mark_new(search, before, count);
    }
    free(before);
    return error;
}

/* Does all that is above a block still hold what it held? An array that grows
 * is elsewhere since, and what it was is free: to that nothing points. What is
 * lost nobody changes. */
static bool still_holds(struct seep_held_search *search,
                        const struct above *above)
{
    for (size_t i = 0; i < above->count; i++) {
        for (uint32_t at = search->nodes[above->nodes[i]].up; at != 0;
             at = search->links[at - 1].next_up) {
            struct seep_held_link link = search->links[at - 1];

            if (!link.is_stale &&
                (seep_held_word(search->memory, link.at) != link.value ||
                 seep_held_resolve(search, link.at) != link.holder)) {
                return false;
            }
        }
    }
    return true;
}

/* What is free is listed anew, and what was read is read again. */
static int refresh(struct seep_held_search *search)
{
    int error = seep_held_memory_reload(search->memory);

    return error == 0 ? seep_held_blocks_again(&search->blocks) : error;
}

/*
 * A top above most of the blocks of a call site is not lost, though nothing in
 * memory points to it: what is lost gets nothing more, and this has got blocks
 * of all ages. A register has it, of a thread that waits for the kernel.
 *
 * @param below  by node: how many of the call site's lost blocks it is above
 */
static void take_back(struct seep_held_search *search, const bool *is_open,
                      struct above *above, const uint32_t *below,
                      struct part part)
{
    for (size_t i = part.first; i < part.end; i++) {
        struct seep_held_node *node = &search->nodes[search->asked[i]];

        if (!node->is_below_lost ||
            !look_up(search, is_open, search->asked[i], above)) {
            continue;
        }
        for (size_t k = 0; k < above->top_count; k++) {
            node->is_below_lost &=
                2 * (size_t)below[above->tops[k]] <= part.end - part.first;
        }
    }
}

/* What is above each block of a call site, by now. What a pass that the time
 * ended did not come to is not known. */
static int decide_part(struct seep_held_search *search, const bool *is_open,
                       struct above *above, struct part part)
{
    /* What is resolved may be a node more, and is no top. */
    uint32_t *below = calloc(search->node_count + 1, sizeof(*below));

    if (below == NULL) {
        return -ENOMEM;
    }
    for (size_t i = part.first;
         i < part.end && !seep_held_search_is_late(search); i++) {
        bool is_lost = look_up(search, is_open, search->asked[i], above) &&
                       still_holds(search, above);

        search->nodes[search->asked[i]].is_below_lost = is_lost;
        for (size_t k = 0; is_lost && k < above->top_count; k++) {
            below[above->tops[k]]++;
        }
    }
    take_back(search, is_open, above, below, part);
    free(below);
    return 0;
}

static int decide(struct seep_held_search *search, const bool *is_open,
                  struct above *above)
{
    struct part part = {0, 0};
    int error = refresh(search);

    for (size_t i = 0; error == 0 && i < search->part_count; i++) {
        part = (struct part){part.end, search->part_ends[i]};
        error = decide_part(search, is_open, above, part);
    }
    return error;
}

int seep_held_find_lost(struct seep_held_search *search)
{
    bool *is_open = calloc(search->node_count + 1, sizeof(*is_open));
    struct above *above = malloc(sizeof(*above));
    int tops = is_open == NULL || above == NULL ? -ENOMEM : 0;
    int error = 0;

    for (size_t i = 0; tops == 0 && i < search->front_count; i++) {
        is_open[search->front[i]] = true;
    }
    tops = tops == 0 ? add_tops(search, is_open, above) : tops;
    error = tops > 0 ? look_twice(search) : tops == -E2BIG ? 0 : tops;
    if (tops > 0 && error == 0) {
        error = decide(search, is_open, above);
    }
    free(is_open);
    free(above);
    return error;
}
