/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A wrong option; see say_option.h. Invariant: one error is one line. */
#include "say_option.h"

#include <stdio.h>
#include <string.h>

#include "nearest.h"
#include "say.h"

#define NAMES_MAX 64

static const char *nearest_of(const char *word, const struct option *options)
{
    const char *names[NAMES_MAX];
    size_t count = 0;

    for (; options->name != NULL && count < NAMES_MAX; options++) {
        names[count++] = options->name;
    }
    return seep_nearest(word, names, count);
}

int seep_say_option(const char *verb, int found, const char *word,
                    const struct option *options)
{
    char name[64] = "";
    char remedy[96];
    const char *nearest;

    if (found == ':') {
        return seep_say_usage(verb, word, "needs a value");
    }
    if (strncmp(word, "--", 2) == 0) {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="),
                 word + 2);
    }
    nearest = nearest_of(name, options);
    if (*name == '\0' || nearest == NULL) {
        return seep_say_usage(verb, word, "is no option of it");
    }
    if (strcmp(nearest, name) == 0) {
        return seep_say_usage(verb, word, "takes no value");
    }
    snprintf(remedy, sizeof(remedy), "did you mean --%s?", nearest);
    seep_say(word, "is no option of it", remedy);
    return SEEP_EXIT_USAGE;
}
