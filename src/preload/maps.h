/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** The mapping hooks: what the constructor tells them. */
#ifndef SEEP_PRELOAD_MAPS_H
#define SEEP_PRELOAD_MAPS_H

/** Code between @start and @end is the allocator: its mappings are its own
 * affair, what it hands out is counted by malloc's hooks. */
void seep_maps_init(const void *start, const void *end);

#endif
