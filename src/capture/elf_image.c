/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Program headers and notes of a loaded object.
 *
 * Invariant: every address is checked against [start, end) before it is read,
 * and a note against its own segment.
 */
#include "capture/elf_image.h"

#include <elf.h>
#include <string.h>

#define FIRST_PAGE_BYTES 4096U
#define BUILD_ID_BYTES_MAX 64U

void seep_elf_headers(struct seep_elf_image *image)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)image->start;
    size_t table_bytes;

    image->headers = NULL;
    image->header_count = 0;
    if (image->end - image->start < FIRST_PAGE_BYTES ||
        memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phentsize != sizeof(ElfW(Phdr))) {
        return;
    }
    table_bytes = (size_t)header->e_phnum * sizeof(ElfW(Phdr));
    if (header->e_phoff > FIRST_PAGE_BYTES ||
        table_bytes > FIRST_PAGE_BYTES - header->e_phoff ||
        header->e_phoff % _Alignof(ElfW(Phdr)) != 0) {
        return;
    }
    image->headers = (const ElfW(Phdr) *)(image->start + header->e_phoff);
    image->header_count = header->e_phnum;
}

/* Clip a header's memory to the image. @return false if it lies outside */
static bool loaded_range(const struct seep_elf_image *image,
                         const ElfW(Phdr) * header, uintptr_t *ret_low,
                         uintptr_t *ret_high)
{
    uintptr_t low = image->bias + header->p_vaddr;

    if (low < image->start || low >= image->end ||
        header->p_memsz > image->end - low) {
        return false;
    }
    *ret_low = low;
    *ret_high = low + header->p_memsz;
    return true;
}

bool seep_elf_segment(const struct seep_elf_image *image, uintptr_t address,
                      uintptr_t *ret_low, uintptr_t *ret_high)
{
    for (size_t i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];
        uintptr_t low;
        uintptr_t high;

        if (header->p_type == PT_LOAD && (header->p_flags & PF_R) != 0 &&
            loaded_range(image, header, &low, &high) && address >= low &&
            address < high) {
            *ret_low = low;
            *ret_high = high;
            return true;
        }
    }
    return false;
}

bool seep_elf_is_code(const struct seep_elf_image *image, uintptr_t address)
{
    for (size_t i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];
        uintptr_t low;
        uintptr_t high;

        if (header->p_type == PT_LOAD && (header->p_flags & PF_X) != 0 &&
            loaded_range(image, header, &low, &high) && address >= low &&
            address < high) {
            return true;
        }
    }
    return false;
}

/* Walk one note segment. @return the build-id in it, or NULL */
static const uint8_t *search_notes(uintptr_t low, uintptr_t high,
                                   size_t alignment, size_t *ret_bytes)
{
    while (high - low >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)low;
        size_t name_bytes = (note->n_namesz + 3U) & ~(size_t)3U;
        size_t head_bytes = sizeof(*note) + name_bytes;
        size_t note_bytes;

        head_bytes = (head_bytes + alignment - 1) & ~(alignment - 1);
        if (note->n_namesz > high - low || note->n_descsz > high - low ||
            head_bytes > high - low ||
            note->n_descsz > high - low - head_bytes) {
            return NULL;
        }
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
            memcmp(note + 1, "GNU", 4) == 0 && note->n_descsz > 0 &&
            note->n_descsz <= BUILD_ID_BYTES_MAX) {
            *ret_bytes = note->n_descsz;
            return (const uint8_t *)(low + head_bytes);
        }
        note_bytes = head_bytes + note->n_descsz;
        note_bytes = (note_bytes + alignment - 1) & ~(alignment - 1);
        if (note_bytes > high - low) {
            return NULL;
        }
        low += note_bytes;
    }
    return NULL;
}

const uint8_t *seep_elf_build_id(const struct seep_elf_image *image,
                                 size_t *ret_bytes)
{
    for (size_t i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];
        uintptr_t low;
        uintptr_t high;
        uintptr_t segment_low;
        uintptr_t segment_high;
        const uint8_t *found;

        if (header->p_type != PT_NOTE ||
            !loaded_range(image, header, &low, &high) || low % 4 != 0 ||
            !seep_elf_segment(image, low, &segment_low, &segment_high) ||
            high > segment_high) {
            continue;
        }
        found =
            search_notes(low, high, header->p_align == 8 ? 8 : 4, ret_bytes);
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}
