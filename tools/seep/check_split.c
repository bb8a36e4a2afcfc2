/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A text in words; see check_options.h. Invariant: words never need more room
 * than the text and an end for each.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check_options.h"

static const char program[] = "seep";

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n';
}

/* One word from *text on. @return its end in @out, NULL if it has none */
static char *take_word(const char **text, char *out)
{
    const char *at = *text;
    char quote = '\0';

    for (; *at != '\0' && (quote != '\0' || !is_blank(*at)); at++) {
        if (quote == '\0' && (*at == '\'' || *at == '"')) {
            quote = *at;
        } else if (quote != '\0' && *at == quote) {
            quote = '\0';
        } else if (*at == '\\' && quote != '\'' && at[1] != '\0') {
            *out++ = *++at;
        } else {
            *out++ = *at;
        }
    }
    *text = at;
    *out++ = '\0';
    return quote == '\0' ? out : NULL;
}

int seep_check_options_split(const char *text, char ***ret_words,
                             int *ret_count)
{
    /* A word takes a blank at least: half of the bytes, and three more. */
    size_t most = strlen(text) / 2 + 3;
    size_t bytes = strlen(text) + most + sizeof(program);
    char **words = malloc(most * sizeof(*words) + bytes);
    char *out = (char *)(words + most);
    int count = 0;

    if (words == NULL) {
        return -ENOMEM;
    }
    words[count++] = memcpy(out, program, sizeof(program));
    out += sizeof(program);
    for (;;) {
        text += strspn(text, " \t\n");
        if (*text == '\0') {
            break;
        }
        words[count++] = out;
        out = take_word(&text, out);
        if (out == NULL) {
            free(words);
            return -EINVAL;
        }
    }
    words[count] = NULL;
    *ret_words = words;
    *ret_count = count;
    return 0;
}
