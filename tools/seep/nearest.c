/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which word was meant. The distance is Levenshtein's, in one row: no word of
 * ours is longer than it.
 */
#include "nearest.h"

#include <string.h>

#define WORD_MAX 31

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *from, const char *to)
{
    size_t row[WORD_MAX + 1];
    size_t columns = strlen(to);

    for (size_t j = 0; j <= columns; j++) {
        row[j] = j;
    }
    for (size_t i = 0; from[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < columns; j++) {
            size_t change = diagonal + (from[i] != to[j]);
            diagonal = row[j + 1];
            row[j + 1] = least(change, least(row[j], row[j + 1]) + 1);
        }
    }
    return row[columns];
}

const char *seep_nearest(const char *word, const char *const *names,
                         size_t count)
{
    const char *nearest = NULL;
    size_t best = 3; /* two slips of the finger, not another word */

    if (strlen(word) > WORD_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        size_t steps = distance(word, names[i]);
        if (steps < best && steps < strlen(names[i])) {
            best = steps;
            nearest = names[i];
        }
    }
    return nearest;
}
