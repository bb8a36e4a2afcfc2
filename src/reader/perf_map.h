/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The perf map of a JIT: /tmp/perf-PID.map, lines "START SIZE name" in
 * hexadecimal, later ones replacing earlier ones.
 *
 * Anyone can write into /tmp: only a regular file of ours or of root is read,
 * and a line that makes no sense is passed over.
 */
#ifndef SEEP_READER_PERF_MAP_H
#define SEEP_READER_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>

struct seep_perf_map;

/** @return 0; -EPERM for a stranger's file or a special one; else -errno */
int seep_perf_map_open(const char *path, struct seep_perf_map **ret_map);

/** The name of the code at @address; NULL if unknown. Lives with the map. */
const char *seep_perf_map_find(const struct seep_perf_map *map,
                               uint64_t address);

/** NULL is fine. */
void seep_perf_map_close(struct seep_perf_map *map);

#endif
