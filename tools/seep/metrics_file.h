/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** The file for node_exporter's textfile collector. */
#ifndef SEEP_TOOL_METRICS_FILE_H
#define SEEP_TOOL_METRICS_FILE_H

#include <stddef.h>

/**
 * Replace the file at @path at once: who reads it sees the old text or the new
 * one. Its mode is 0644 less the umask.
 *
 * @return 0 or negative errno; then the old file stands, and nothing beside it
 */
int seep_metrics_file_write(const char *path, const char *text, size_t length);

#endif
