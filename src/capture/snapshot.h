/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A list of the loaded objects, for a loader that has no _dl_find_object.
 *
 * Readers take no lock and may run at any time; they see the list before or
 * after a refresh, or nothing while one is under way.
 */
#ifndef SEEP_CAPTURE_SNAPSHOT_H
#define SEEP_CAPTURE_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/elf_image.h"

/** Look up the real dl_iterate_phdr and list for the first time. */
void seep_snapshot_init(void);

/** List again. Takes the loader's lock: only where dlclose itself may. */
void seep_snapshot_refresh(void);

/** Find the object of @address in the last list. */
bool seep_snapshot_find(uintptr_t address, struct seep_elf_image *ret_image);

/** In the child of a fork: a refresh that was under way elsewhere is gone. */
void seep_snapshot_after_fork(void);

#endif
