/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** Files that lie beside this program, wherever it was moved to. */
#ifndef SEEP_TOOL_BESIDE_H
#define SEEP_TOOL_BESIDE_H

#include <limits.h>

/**
 * The path of @name, relative to the folder that this program lies in. Whether
 * there is such a file is not looked at.
 *
 * @return 0; -errno of /proc/self/exe; -ENAMETOOLONG
 */
int seep_beside_path(const char *name, char ret_path[PATH_MAX]);

#endif
