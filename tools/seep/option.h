/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The options of every verb are taken through here, so that what is wrong
 * with one is said alike by all, with the one that was meant.
 */
#ifndef SEEP_TOOL_OPTION_H
#define SEEP_TOOL_OPTION_H

#include <getopt.h>
#include <stddef.h>

#include "page.h"

/** What seep_option_next() returns after saying what is wrong. */
#define SEEP_OPTION_WRONG '?'

/**
 * getopt_long() without its messages. A verb whose words are parsed twice in
 * one process sets optind to 0 before.
 *
 * @param shorts  as for getopt(); begins with ":" or "+:"
 * @return the option; -1 behind the last; SEEP_OPTION_WRONG: one line was said,
 *         and the verb ends with SEEP_EXIT_USAGE
 */
int seep_option_next(const char *verb, int argc, char **argv,
                     const char *shorts, const struct option *options);

/**
 * Which of @names is @text, the value of an option.
 *
 * @return 0; SEEP_EXIT_USAGE after naming them all, and the one that was meant
 */
int seep_option_choose(const char *verb, const char *text,
                       const char *const *names, size_t count,
                       size_t *ret_index);

/** A number that is not negative. @return 0; SEEP_EXIT_USAGE after saying why
 */
int seep_option_number(const char *verb, const char *text, size_t *ret_number);

/** auto, always or never. @return 0; SEEP_EXIT_USAGE after saying why */
int seep_option_color(const char *verb, const char *text,
                      enum seep_color *ret_color);

#endif
