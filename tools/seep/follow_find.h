/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a word on the command line means to one who follows: a recording, the
 * recordings of a folder now, or those of a process.
 */
#ifndef SEEP_TOOL_FOLLOW_FIND_H
#define SEEP_TOOL_FOLLOW_FIND_H

#include <stdbool.h>

#include "reader/report.h"

/** Is @word a process id: a number, and not the name of a file? */
bool seep_follow_is_pid(const char *word);

/** Is @word a folder? Then what is found in it was not named itself. */
bool seep_follow_is_folder(const char *word);

/**
 * The recordings that @word means now.
 *
 * @param ret_paths  NULL-terminated; give it to seep_report_list_free()
 * @return 0, also when it is a folder without any; -ENOENT, -ESRCH and others
 *         with @ret_refusal filled
 */
int seep_follow_find(const char *word, struct seep_refusal *ret_refusal,
                     char ***ret_paths);

#endif
