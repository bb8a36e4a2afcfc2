/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether nothing points to a block.
 *
 * Words in free memory point to whatever it was used for, so they hold nothing.
 * But an array that grows is elsewhere each time: a pass comes to where it goes
 * before it is there, or its block is free when it is looked at. What is only
 * left over stays where it is, so a second pass tells the two apart.
 *
 * Invariant: of a block that something may hold it is never said that nothing
 * does.
 */
#include <errno.h>
#include <stdlib.h>

#include "held/search.h"

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

static int compare_words(const void *one, const void *other)
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
                   sizeof(*search->dropped), compare_words) != NULL;
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
            *ret_error = seep_held_scan_add(
                scan, node->address,
                node->kind == SEEP_HELD_OBJECT ? node->address + 1 : node->end,
                number);
        }
    }
    return count;
}

int seep_held_look_again(struct seep_held_search *search)
{
    struct seep_held_scan *scan = &search->side;
    int error = 0;

    /* What is too much to keep is not known. */
    if (search->dropped_count == DROPPED_MOST) {
        search->has_first = false;
    }
    if (search->question->core_path != NULL || !search->has_first ||
        add_doubtful(search, &error) == 0) {
        return error;
    }
    if (search->dropped_count > 0) {
        qsort(search->dropped, search->dropped_count, sizeof(*search->dropped),
              compare_words);
    }
    /* Pages that had no word may have got one: all are read again. */
    scan->first_pass = true;
    error = error == 0 ? seep_held_memory_reload(search->memory) : error;
    error = error == 0 ? seep_held_scan_run(scan, search->memory) : error;
    for (size_t i = 0; error == 0 && i < scan->hit_count; i++) {
        struct seep_held_node *node =
            &search->nodes[scan->ranges[scan->hits[i].range].owner];
        uint64_t at = scan->hits[i].at;

        if (at < node->start || at >= node->end) {
            node->is_moving |= !was_dropped(search, &scan->hits[i]);
        }
    }
    return error;
}

bool seep_held_is_lost(const struct seep_held_search *search, uint32_t asked)
{
    const struct seep_held_node *node = &search->nodes[asked];

    if (!search->has_first || search->was_late || node->is_moving) {
        return false;
    }
    for (uint32_t i = node->up; i != 0; i = search->links[i - 1].next_up) {
        if (!search->links[i - 1].is_stale || search->links[i - 1].is_odd) {
            return false;
        }
    }
    return true;
}
