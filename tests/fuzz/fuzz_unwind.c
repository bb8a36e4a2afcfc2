/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer's entry for unwind tables, as a hook meets them in any library: the
 * input is a segment, 8 bytes of what is asked, then the bytes, in a block of
 * their own so that a byte too far is seen. The first of those 8 says whether
 * it is an object with its ELF header, or .eh_frame_hdr with .eh_frame.
 */
#include <stdlib.h>
#include <string.h>

#include "capture/native/cfi.h"
#include "capture/native/elf.h"
#include "capture/native/rule.h"

#define HEAD_BYTES 8U
#define PAGE_BYTES 4096U
#define ASKED 32U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_tables(const uint8_t *head, const uint8_t *bytes, size_t size)
{
    struct seep_cfi_section section = {.low = bytes, .high = bytes + size};
    uint32_t step;

    memcpy(&step, head + 4, sizeof(step));
    section.hdr = bytes + (size_t)(head[1] | head[2] << 8) % size;
    for (uint32_t i = 0; i < ASKED; i++) {
        /* Tables tell of code that lies before them, as a rule. */
        uintptr_t pc = (uintptr_t)section.hdr + head[3] - i * (step & 0xfff);
        struct seep_cfi_entry entry;
        struct seep_cfi_row row;

        if (seep_cfi_find(&section, pc, &entry) == SEEP_CUT_NONE) {
            if (pc < entry.pc_low || pc >= entry.pc_high) {
                abort();
            }
            if (seep_cfi_run(&entry, pc, &row) == SEEP_CUT_NONE &&
                seep_rule_pack(&row, entry.signal_frame) == SEEP_RULE_NONE) {
                abort();
            }
        }
    }
}

static void read_object(const uint8_t *bytes, size_t size)
{
    struct seep_elf_image image = {.start = (uintptr_t)bytes,
                                   .end = (uintptr_t)bytes + size,
                                   .bias = (uintptr_t)bytes,
                                   .path = ""};
    struct seep_elf_symbols symbols;
    const uint8_t *build_id;
    size_t build_id_bytes = 0;
    uintptr_t low;
    uintptr_t high;
    volatile uint8_t sum = 0;

    seep_elf_headers(&image);
    (void)seep_elf_segment(&image, image.start + size / 2, &low, &high);
    (void)seep_elf_is_code(&image, image.start + size / 2);
    build_id = seep_elf_build_id(&image, &build_id_bytes);
    for (size_t i = 0; build_id != NULL && i < build_id_bytes; i++) {
        sum = (uint8_t)(sum + build_id[i]);
    }
    if (seep_elf_symbols_open(&image, &symbols)) {
        (void)seep_elf_symbols_find(&symbols, "malloc", NULL);
        (void)seep_elf_symbols_find(&symbols, "keep", NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool is_object;
    size_t bytes;
    uint8_t *copy;

    if (size <= HEAD_BYTES) {
        return 0;
    }
    is_object = data[0] % 2 == 1;
    bytes = size - HEAD_BYTES;
    if (is_object && bytes < PAGE_BYTES) {
        bytes = PAGE_BYTES; /* what is loaded has a page at least */
    }
    copy = aligned_alloc(8, (bytes + 7) & ~(size_t)7);
    if (copy == NULL) {
        abort();
    }
    memset(copy, 0, (bytes + 7) & ~(size_t)7);
    memcpy(copy, data + HEAD_BYTES, size - HEAD_BYTES);
    if (is_object) {
        read_object(copy, bytes);
    } else {
        read_tables(data, copy, bytes);
    }
    free(copy);
    return 0;
}
