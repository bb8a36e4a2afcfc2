/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A bounded list of looks. Invariant: by time, never more than
 * SEEP_LOOK_LIMIT, and the first and the last that came are in it.
 */
#include "reader/look.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void seep_look_fini(struct seep_look *look)
{
    for (size_t i = 0; i < look->mapping_count; i++) {
        free(look->mappings[i].name);
    }
    free(look->mappings);
    memset(look, 0, sizeof(*look));
}

void seep_look_name_own(struct seep_look *look, uint64_t inode)
{
    for (size_t i = 0; i < look->mapping_count; i++) {
        struct seep_look_mapping *mapping = &look->mappings[i];
        char *name = NULL;

        if (mapping->inode == inode && inode != 0 &&
            (name = strdup(SEEP_LOOK_OWN)) != NULL) {
            free(mapping->name);
            mapping->name = name;
        }
    }
}

void seep_looks_fini(struct seep_looks *looks)
{
    for (size_t i = 0; i < looks->count; i++) {
        seep_look_fini(&looks->looks[i]);
    }
    free(looks->looks);
    looks->looks = NULL;
    looks->count = 0;
}

/* Drop the one whose neighbours are nearest to each other: what was looked at
 * often, the beginning, is thinned first, and then all evenly. */
static void thin(struct seep_looks *looks)
{
    size_t victim = 1;
    double least_s = looks->looks[2].t_s - looks->looks[0].t_s;

    for (size_t i = 2; i + 1 < looks->count; i++) {
        double width_s = looks->looks[i + 1].t_s - looks->looks[i - 1].t_s;
        if (width_s < least_s) {
            least_s = width_s;
            victim = i;
        }
    }
    seep_look_fini(&looks->looks[victim]);
    memmove(&looks->looks[victim], &looks->looks[victim + 1],
            (looks->count - victim - 1) * sizeof(*looks->looks));
    looks->count--;
}

int seep_looks_add(struct seep_looks *looks, struct seep_look *look)
{
    if (looks->count > 0 &&
        !(look->t_s >= looks->looks[looks->count - 1].t_s)) {
        return -EINVAL;
    }
    if (looks->looks == NULL) {
        looks->looks = calloc(SEEP_LOOK_LIMIT + 1, sizeof(*looks->looks));
        if (looks->looks == NULL) {
            return -ENOMEM;
        }
    }
    looks->looks[looks->count++] = *look;
    memset(look, 0, sizeof(*look));
    if (looks->count > SEEP_LOOK_LIMIT) {
        thin(looks);
    }
    return 0;
}
