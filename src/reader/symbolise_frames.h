/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Which names and lines an answer shows, out of all that are known.
 */
#ifndef SEEP_READER_SYMBOLISE_FRAMES_H
#define SEEP_READER_SYMBOLISE_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "reader/symbolise.h"
#include "reader/symbolise_dwarf.h"
#include "reader/symbolise_elf.h"
#include "reader/symbolise_strings.h"

/**
 * Frames of @offset from its @places, of which there is at least one (empty
 * where DWARF knows nothing); the last one also gets the symbol table's name.
 *
 * @param ret_frames  @count of them; they live as long as @strings
 * @return 0 or -ENOMEM
 */
int seep_symbolise_frames_make(struct seep_symbolise_strings *strings,
                               const struct seep_symbolise_elf *elf,
                               uint64_t offset,
                               const struct seep_symbolise_place *places,
                               size_t count,
                               const struct seep_symbol_frame **ret_frames);

#endif
