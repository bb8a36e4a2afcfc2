/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer's entry for the checker: what it calls valid lies inside the file,
 * with room for all that is read without a further check.
 */
#include <stdlib.h>

#include "format/layout.h"
#include "small.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed)
{
    size = small_mutate(data, size, most, seed);
    for (size_t at = 2; at < size; at += sizeof(struct small_patch)) {
        data[at] = SEEP_SECTION_COUNT; /* it looks at nothing but the header */
    }
    if (size > 1) {
        data[1] |= SMALL_KEEPS_LAYOUT;
    }
    return size;
}

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void must_be_inside(const struct small *small, size_t size)
{
    struct seep_view view;

    seep_view_init(&view, small->bytes);
    for (unsigned i = 0; i < SEEP_SECTION_COUNT; i++) {
        const struct seep_rec_section *part = &view.header->sections[i];

        must(part->offset_bytes <= size &&
             part->bytes <= size - part->offset_bytes);
    }
    must((const char *)(view.timeline + SEEP_BUCKET_COUNT) <=
             (const char *)small->bytes + size ||
         view.header->inert != SEEP_INERT_NONE);
    must(view.header->inert != SEEP_INERT_NONE ||
         (size_t)view.shard_count * view.ring_slots ==
             view.header->sections[SEEP_SECTION_RINGS].entry_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum seep_recording_check result;
    struct small small;
    size_t kept;

    if (!small_damage(data, size, &small)) {
        return 0;
    }
    kept = small.size_bytes >> (small.first & 31);
    result = seep_check(small.bytes, kept);
    if (result == SEEP_CHECK_VALID) {
        must_be_inside(&small, kept);
    } else {
        must(seep_check_reason(result)[0] != '\0');
    }
    return 0;
}
