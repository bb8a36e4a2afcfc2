/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Ways from blocks up to their roots; between paths.c, which finds them, and
 * groups.c, which says what they have in common.
 *
 * Errors: 0 or -ENOMEM. Threads: one at a time.
 */
#ifndef SEEP_HELD_PATHS_H
#define SEEP_HELD_PATHS_H

#include "held/search.h"

#define SEEP_HELD_NO_LINK UINT32_MAX

struct seep_held_ways {
    struct seep_held_search *search;
    uint32_t *distance; /* of each node, from its root */
    uint32_t *link; /* by which it goes up; SEEP_HELD_NO_LINK: it is a root, or
                       has none */
};

/* A way in words: steps with their nodes. */
struct seep_held_told {
    struct seep_held_step step;
    uint32_t node;
    uint32_t link;
};

struct seep_held_way {
    uint32_t asked; /* the block's node */
    struct seep_held_told *steps;
    size_t count;
    size_t capacity;
    uint32_t root;
    uint32_t bad; /* a link that says something impossible; SEEP_HELD_NO_LINK:
                     none */
    bool is_live;
};

/** The ways of @count blocks, each of which has .asked. */
int seep_held_tell_all(struct seep_held_ways *ways, struct seep_held_way *all,
                       size_t count);

/** Without a root: upwards until nothing is new. */
int seep_held_tell_unrooted(struct seep_held_search *search,
                            struct seep_held_way *way, bool *ret_is_cycle);

/** Room for the ways of @search. @return -ENOMEM: there is none; to be closed
 * all the same */
int seep_held_ways_open(struct seep_held_search *search,
                        struct seep_held_ways *ret_ways);
void seep_held_ways_close(struct seep_held_ways *ways);

#endif
