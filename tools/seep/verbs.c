/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which verb was meant.
 */
#include "verbs.h"

#include <stddef.h>

#include "nearest.h"

static const char *const names[] = {
#define VERB_NAME(name, summary) #name,
    SEEP_VERBS(VERB_NAME)
#undef VERB_NAME
};

const char *seep_verbs_nearest(const char *word)
{
    return seep_nearest(word, names, sizeof(names) / sizeof(names[0]));
}
