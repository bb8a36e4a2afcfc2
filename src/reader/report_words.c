/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The names of what a report holds. Invariant: any value has one, also that of
 * a damaged recording.
 */
#include <errno.h>
#include <string.h>

#include "reader/report.h"

static const char *const grouping_names[] = {
#define GROUPING_NAME(symbol, name) [SEEP_BY_##symbol] = (name),
    SEEP_GROUPINGS(GROUPING_NAME)
#undef GROUPING_NAME
};

static const char *const state_words[] = {
#define STATE_WORDS(symbol, value, words) [value] = (words),
    SEEP_PYTHON_STATES(STATE_WORDS)
#undef STATE_WORDS
};

static const char *const objects_words[] = {
#define OBJECTS_WORDS(symbol, value, words) [value] = (words),
    SEEP_PYTHON_OBJECTS(OBJECTS_WORDS)
#undef OBJECTS_WORDS
};

const char *seep_grouping_name(enum seep_grouping by)
{
    return grouping_names[(unsigned)by < SEEP_GROUPING_COUNT ? by
                                                             : SEEP_BY_STACK];
}

int seep_grouping_parse(const char *name, enum seep_grouping *ret_by)
{
    for (unsigned i = 0; i < SEEP_GROUPING_COUNT; i++) {
        if (strcmp(grouping_names[i], name) == 0) {
            *ret_by = (enum seep_grouping)i;
            return 0;
        }
    }
    return -EINVAL;
}

const char *seep_python_state_words(enum seep_python_state state)
{
    return (unsigned)state < SEEP_PYTHON_STATE_COUNT ? state_words[state]
                                                     : "unknown";
}

const char *seep_python_objects_words(enum seep_python_objects objects)
{
    return (unsigned)objects < SEEP_PYTHON_OBJECTS_COUNT
               ? objects_words[objects]
               : "unknown";
}
