/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The unwind tables of large objects, in mappings of our own that are given
 * back.
 *
 * A fault in a table maps up to 16 pages around it, and the process is charged
 * for them: 27 MiB of torch's libraries, for rules that the caches hold by
 * then. Pages of the object's own cannot be given back: somebody may have
 * written there, and at the address of an object that has just gone there may
 * be anything.
 *
 * Invariant: of an object with a mapping here nothing is touched but its first
 * page. A mapping is made here, read only, never written to and never unmapped,
 * so that what is given back is its pages and nobody else's. Of an object that
 * was unloaded the file goes, and the addresses stay ours.
 *
 * Threads: any number; nobody waits.
 */
#ifndef SEEP_CAPTURE_NATIVE_TABLES_H
#define SEEP_CAPTURE_NATIVE_TABLES_H

#include <stdint.h>

#include "capture/native/cfi.h"
#include "capture/native/elf.h"

/**
 * Have the tables of @image read in a mapping of ours, if there is one.
 *
 * @param section  of the object itself, .shift 0; it may be moved
 */
void seep_tables_move(const struct seep_elf_image *image,
                      struct seep_cfi_section *section);

/** Give back the pages of those that were read since the last time, and the
 * files of objects that were unloaded. */
void seep_tables_give_back(void);

/** In the child of a fork: who made one in the parent is gone. */
void seep_tables_after_fork(void);

/** System calls are no longer welcome: what is mapped stays as it is. */
void seep_tables_restrict(void);

#endif
