/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Where the data files lie that seep is installed with.
 *
 * Errors: 0 or negative errno; ret_* untouched on failure.
 */
#ifndef SEEP_TOOL_SHARE_H
#define SEEP_TOOL_SHARE_H

/**
 * patterns.json: $SEEP_PATTERNS, else beside this program's own installation
 * or build, else where it was configured to be installed. A file that the
 * variable names is returned whether it can be read or not: who named it is
 * told by who opens it.
 *
 * @param ret_path  to be freed
 * @return -ENOENT: there is none; a report goes on without
 */
int seep_share_patterns(char **ret_path);

#endif
