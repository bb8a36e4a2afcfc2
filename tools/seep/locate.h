/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Where libseep.so and the allocators lie.
 *
 * Errors: 0 or negative errno. Strings are to be freed.
 */
#ifndef SEEP_TOOL_LOCATE_H
#define SEEP_TOOL_LOCATE_H

/**
 * libseep.so: $SEEP_PRELOAD, else beside this program's own installation or
 * build, else where it was configured to be installed.
 *
 * @return -ENOENT; -EINVAL if its path cannot stand in LD_PRELOAD
 */
int seep_locate_preload(char **ret_path);

/**
 * The library of allocator @name: jemalloc, tcmalloc, mimalloc.
 *
 * @return -EINVAL if the name is none of them; -ENOENT if it is not installed
 */
int seep_locate_allocator(const char *name, char **ret_path);

#endif
