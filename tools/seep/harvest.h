/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Which recordings a run made, and the child's status in its own.
 *
 * They are the files that the pattern can name and that were not there
 * before; another run into the same folder at the same time is not told apart.
 */
#ifndef SEEP_TOOL_HARVEST_H
#define SEEP_TOOL_HARVEST_H

#include <stdbool.h>
#include <stddef.h>

#include "child.h"
#include "seep/recording.h"

struct seep_harvest;

/** Remember what is there already. @pattern is an absolute SEEP_OUT. */
int seep_harvest_open(const char *pattern, struct seep_harvest **ret_harvest);
void seep_harvest_close(struct seep_harvest *harvest);

/** Look again. @return the new files, NULL-terminated, owned by @harvest */
int seep_harvest_collect(struct seep_harvest *harvest, char ***ret_paths,
                         size_t *ret_count);

/**
 * While the run lasts: every new file that can be a recording, valid or not,
 * once or more often.
 */
void seep_harvest_visit(const struct seep_harvest *harvest,
                        void (*visit)(void *context, const char *path),
                        void *context);

/** The header of the recording at @path. @return false if it is not valid */
bool seep_harvest_read_header(const char *path,
                              struct seep_rec_header *ret_header);

/**
 * Write the status of @child into the recording of its last image: the two
 * words that the format leaves to `seep run`, and only into a valid recording
 * of that very process.
 *
 * @return 0; -ENOENT if it has none
 */
int seep_harvest_put_status(char *const *paths, size_t count,
                            const struct seep_child *child);

/** The glob that matches what @pattern can name. To be freed. */
char *seep_harvest_glob(const char *pattern);

#endif
