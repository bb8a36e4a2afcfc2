/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The ELF headers of an object as they lie in memory.
 *
 * Invariant: nothing is read but the first page of the image and what the
 * program headers there say is loaded, inside [start, end). What does not add
 * up is answered as "not there".
 */
#ifndef SEEP_CAPTURE_ELF_IMAGE_H
#define SEEP_CAPTURE_ELF_IMAGE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A loaded object, before anything is read from it. */
struct seep_elf_image {
    uintptr_t start;
    uintptr_t end;
    uintptr_t bias;
    const ElfW(Phdr) * headers; /* NULL: none that can be trusted */
    size_t header_count;
    const char *path;
    const void *eh_frame_hdr;
};

/** Find the program headers behind the ELF header at image->start. */
void seep_elf_headers(struct seep_elf_image *image);

/** The loaded segment around @address. @return false if there is none */
bool seep_elf_segment(const struct seep_elf_image *image, uintptr_t address,
                      uintptr_t *ret_low, uintptr_t *ret_high);

/** Does @address lie in a segment that may be executed? */
bool seep_elf_is_code(const struct seep_elf_image *image, uintptr_t address);

/** The GNU build-id in the notes. @return its bytes, or NULL */
const uint8_t *seep_elf_build_id(const struct seep_elf_image *image,
                                 size_t *ret_bytes);

#endif
