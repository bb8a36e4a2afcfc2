/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the two unwinders need of objects.c beside its public part.
 *
 * Invariant: as in objects.h; nothing here takes a lock.
 */
#ifndef SEEP_CAPTURE_OBJECT_MAP_H
#define SEEP_CAPTURE_OBJECT_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/elf_image.h"

/** The object of @address, its program headers included. The caller knows that
 * it stays: the address is one of the calling thread's code. */
bool seep_object_map_find(uintptr_t address, struct seep_elf_image *ret_image);

/**
 * As above, and nothing of the object itself is read: of any address, also one
 * whose object may go at this very moment.
 *
 * @param ret_image  has no program headers, but of the program itself
 */
bool seep_object_map_locate(uintptr_t address,
                            struct seep_elf_image *ret_image);

/**
 * From now on seep_objects_iterate() answers this thread with the one object
 * that holds @pc, which is on its stack; 0: serve no longer.
 */
void seep_object_map_serve(uintptr_t pc);

/** Go without _dl_find_object, as on glibc before 2.35. For tests. */
void seep_object_map_use_snapshot(void);

/** In the child of a fork: a dlclose that was under way elsewhere is gone. */
void seep_object_map_after_fork(void);

#endif
