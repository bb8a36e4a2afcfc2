/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Options; see option.h. Invariant: what is not taken was said, in one line.
 */
#include "option.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"
#include "say.h"
#include "say_option.h"

/* A letter may stand within a word of several, of which getopt() is not
 * through: it alone knows which one it is. A byte that is none of ASCII may be
 * a part of a letter, so that the word is shown. */
static const char *wrong_word(int found, char **argv, const char *shorts,
                              char *letter)
{
    const char *next = argv[optind];

    if (found == '?' && optopt > 0 && optopt < 128 &&
        strchr(shorts, optopt) == NULL) {
        snprintf(letter, 3, "-%c", optopt);
        return letter;
    }
    if (optopt < 0 && next != NULL && strchr(next, optopt) != NULL) {
        return next;
    }
    return argv[optind - 1];
}

int seep_option_next(const char *verb, int argc, char **argv,
                     const char *shorts, const struct option *options)
{
    char letter[3];

    opterr = 0;
    int found = getopt_long(argc, argv, shorts, options, NULL);
    if (found == '?' || found == ':') {
        seep_say_option(verb, found, wrong_word(found, argv, shorts, letter),
                        options);
        return SEEP_OPTION_WRONG;
    }
    return found;
}

int seep_option_choose(const char *verb, const char *text,
                       const char *const *names, size_t count,
                       size_t *ret_index)
{
    char reason[160] = "is none of ";
    char remedy[64];
    const char *nearest = seep_nearest(text, names, count);

    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(reason);

        if (strcmp(text, names[i]) == 0) {
            *ret_index = i;
            return 0;
        }
        snprintf(reason + length, sizeof(reason) - length, "%s%s",
                 i == 0 ? "" : ", ", names[i]);
    }
    if (nearest == NULL) {
        return seep_say_usage(verb, text, reason);
    }
    snprintf(remedy, sizeof(remedy), "did you mean %s?", nearest);
    seep_say(text, reason, remedy);
    return SEEP_EXIT_USAGE;
}

int seep_option_number(const char *verb, const char *text, size_t *ret_number)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0') {
        return seep_say_usage(verb, text, "is no number");
    }
    *ret_number = value;
    return 0;
}

int seep_option_color(const char *verb, const char *text,
                      enum seep_color *ret_color)
{
    return seep_page_parse_color(text, ret_color) == 0
               ? 0
               : seep_say_usage(verb, text, "is none of auto, always, never");
}
