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

/* "--a, --b", those that begin so. @return how many */
static size_t list_beginning(const char *beginning,
                             const struct option *options, char *text,
                             size_t size)
{
    size_t count = 0;
    size_t used = 0;

    *text = '\0';
    for (; options->name != NULL; options++) {
        if (strncmp(options->name, beginning, strlen(beginning)) == 0 &&
            used < size) {
            used += (size_t)snprintf(text + used, size - used, "%s--%s",
                                     count == 0 ? "" : ", ", options->name);
            count++;
        }
    }
    return count;
}

int seep_say_option(const char *verb, int found, const char *word,
                    const struct option *options)
{
    char name[64] = "";
    char reason[96];
    char remedy[256] = "did you mean ";
    size_t length = strlen(remedy);
    const char *nearest;

    if (found == ':') {
        return seep_say_usage(verb, word, "needs a value");
    }
    if (strncmp(word, "--", 2) == 0) {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="),
                 word + 2);
    }
    snprintf(reason, sizeof(reason), "is no option of `seep %s`", verb);
    nearest = *name == '\0' ? NULL : nearest_of(name, options);
    if (nearest != NULL && strcmp(nearest, name) == 0) {
        return seep_say_usage(verb, word, "takes no value");
    }
    if (*name != '\0' && list_beginning(name, options, remedy + length,
                                        sizeof(remedy) - length - 1) > 1) {
        strcat(remedy, "?");
    } else if (nearest != NULL) {
        snprintf(remedy + length, sizeof(remedy) - length, "--%s?", nearest);
    } else {
        return seep_say_usage(verb, word, reason);
    }
    seep_say(word, reason, remedy);
    return SEEP_EXIT_USAGE;
}
