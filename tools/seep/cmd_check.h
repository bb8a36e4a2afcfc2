/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The options of `seep check`, which `seep run --check` takes as one text.
 *
 * A limit is LIMIT, SPACE=LIMIT or KEY=VALUE=LIMIT: of the process, of what it
 * holds in one space, or of the processes with a label in the place of the
 * others' limit.
 */
#ifndef SEEP_TOOL_CMD_CHECK_H
#define SEEP_TOOL_CMD_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "read/gather.h"
#include "reader/compare/limits.h"
#include "text/page.h"

struct seep_check_arguments {
    struct seep_check_limit *limits;
    size_t count;
    double warmup_s;
    const char *warmup_mark; /* in the place of that; NULL */
    const char *baseline;    /* recording or folder; NULL */
    const char *junit;       /* where to, each; NULL: not */
    const char *sarif;
    bool github;
    bool json;
    bool quiet;
    bool no_symbols;
    enum seep_color color;
    struct seep_knowledge knowledge;
    int first; /* index of what is no option */
};

/**
 * @return 0; SEEP_OPTIONS_HELP; the exit code after saying what is wrong. To be
 *         closed in any case
 */
int seep_check_options_parse(int argc, char **argv,
                             struct seep_check_arguments *ret_arguments);
void seep_check_options_close(struct seep_check_arguments *arguments);

/**
 * "--max-growth 1MiB/min --junit 'out x.xml'" in words, as a shell parts them
 * by blanks, quotes and backslashes; nothing is expanded.
 *
 * @param ret_words  one allocation, to be freed; the first is "seep", the last
 *                   NULL
 * @return -EINVAL: a quote is not closed; -ENOMEM
 */
int seep_check_options_split(const char *text, char ***ret_words,
                             int *ret_count);

/*
 * A check from recordings to an exit code: for `seep check` and for
 * `seep run --check`.
 */

/**
 * Read @paths, hold them against the limits, print and write what is asked
 * for.
 *
 * @param file  where text, JSON and annotations go
 * @return the exit code
 */
int seep_gate(char *const *paths, size_t count,
              struct seep_check_arguments *arguments, FILE *file);

#endif
