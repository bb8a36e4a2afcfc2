/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What is wrong with an option that getopt_long() did not take, with the one
 * that was meant, or those that it may begin. Verbs use option.h, which has the
 * word in question.
 */
#ifndef SEEP_TOOL_SAY_OPTION_H
#define SEEP_TOOL_SAY_OPTION_H

#include <getopt.h>

/** @param found  what getopt_long() returned, '?' or ':'
 * @return SEEP_EXIT_USAGE */
int seep_say_option(const char *verb, int found, const char *word,
                    const struct option *options);

#endif
