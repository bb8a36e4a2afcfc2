/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The validity conditions 1 to 4 of seep/recording.h, in their order: nothing
 * is read before what says that it is there was checked. */
#include "format/check.h"

#include <stdbool.h>
#include <string.h>

#include "base/word.h"
#include "format/layout.h"
#include "seep/recording.h"

static const struct {
    const char *reason;
    const char *remedy;
} words[] = {
#define WORDS(symbol, reason, remedy) {reason, remedy},
    SEEP_RECORDING_CHECKS(WORDS)
#undef WORDS
};

static bool is_power_of_two(uint32_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

static bool sections_fit(const struct seep_rec_header *header)
{
    uint64_t at = SEEP_PAGE_BYTES;

    for (unsigned i = 0; i < SEEP_SECTION_COUNT; i++) {
        const struct seep_rec_section *section = &header->sections[i];

        if (section->entry_bytes != seep_layout_entry_bytes[i] ||
            section->bytes !=
                (uint64_t)section->entry_bytes * section->entry_count ||
            section->offset_bytes % SEEP_PAGE_BYTES != 0 ||
            section->offset_bytes < at ||
            section->offset_bytes > header->file_bytes ||
            section->bytes > header->file_bytes - section->offset_bytes) {
            return false;
        }
        at = section->offset_bytes + section->bytes;
    }
    return header->sections[SEEP_SECTION_COUNTERS].entry_count >=
               SEEP_COUNTER_COUNT &&
           header->sections[SEEP_SECTION_STRINGS].entry_count > 0;
}

static uint32_t count_of(const struct seep_rec_header *header,
                         enum seep_section which)
{
    return header->sections[which].entry_count;
}

/* The counts that index hash tables and rings, and agree with each other. */
static bool counts_agree(const struct seep_rec_header *header)
{
    uint64_t shards = count_of(header, SEEP_SECTION_SHARDS);

    /* What only says why nothing is recorded has counters and strings alone. */
    if (header->inert != SEEP_INERT_NONE) {
        for (unsigned i = SEEP_SECTION_COUNTERS + 1; i < SEEP_SECTION_COUNT;
             i++) {
            if (i != SEEP_SECTION_STRINGS && count_of(header, i) != 0) {
                return false;
            }
        }
        return true;
    }
    return is_power_of_two(header->shard_count) &&
           is_power_of_two(header->ring_slots) &&
           is_power_of_two(header->live_slots) &&
           is_power_of_two(header->range_slots) &&
           header->live_slots >= SEEP_WINDOW_SLOTS &&
           header->range_slots >= SEEP_WINDOW_SLOTS &&
           count_of(header, SEEP_SECTION_SITES) > 0 &&
           count_of(header, SEEP_SECTION_STACKS) > 0 &&
           count_of(header, SEEP_SECTION_CODES) > 0 &&
           count_of(header, SEEP_SECTION_MODULES) <= SEEP_MODULES_MAX &&
           shards == (uint64_t)header->shard_count + 1 &&
           count_of(header, SEEP_SECTION_TIMELINE) == SEEP_BUCKET_COUNT &&
           count_of(header, SEEP_SECTION_DEVICES) % SEEP_BUCKET_COUNT == 0 &&
           count_of(header, SEEP_SECTION_DEVICES) <=
               SEEP_DEVICES_MAX * SEEP_BUCKET_COUNT &&
           count_of(header, SEEP_SECTION_MARKS) <= SEEP_MARKS_MAX &&
           count_of(header, SEEP_SECTION_RINGS) ==
               shards * header->ring_slots &&
           count_of(header, SEEP_SECTION_LIVE) ==
               (uint64_t)header->shard_count * header->live_slots +
                   header->range_slots;
}

enum seep_recording_check seep_check(const void *bytes, size_t size)
{
    const struct seep_rec_header *header = bytes;

    if (size == 0) {
        return SEEP_CHECK_EMPTY;
    }
    if (size < sizeof(*header)) {
        return memcmp(bytes, SEEP_MAGIC, size < 8 ? size : 8) == 0
                   ? SEEP_CHECK_TRUNCATED
                   : SEEP_CHECK_NOT_A_RECORDING;
    }
    if (memcmp(header->magic, SEEP_MAGIC, sizeof(header->magic)) != 0) {
        return SEEP_CHECK_NOT_A_RECORDING;
    }
    if (header->byte_order != SEEP_BYTE_ORDER) {
        return header->byte_order == __builtin_bswap32(SEEP_BYTE_ORDER)
                   ? SEEP_CHECK_BYTE_ORDER
                   : SEEP_CHECK_DAMAGED;
    }
    if (header->format_major > SEEP_FORMAT_MAJOR) {
        return SEEP_CHECK_NEWER;
    }
    if (header->format_major > 0 && header->format_major < SEEP_FORMAT_MAJOR) {
        return SEEP_CHECK_OLDER; /* its hash is not of the same fields */
    }
    if (header->fixed_hash != seep_layout_fixed_hash(header) ||
        header->format_major != SEEP_FORMAT_MAJOR ||
        header->header_bytes != sizeof(*header)) {
        return SEEP_CHECK_DAMAGED;
    }
    if (header->file_bytes > SEEP_LAYOUT_MOST_BYTES) {
        return SEEP_CHECK_DAMAGED; /* whatever of it is there */
    }
    if (header->file_bytes > size) {
        return SEEP_CHECK_TRUNCATED;
    }
    if (!sections_fit(header) || !counts_agree(header)) {
        return SEEP_CHECK_DAMAGED;
    }
    if (seep_word_load(&header->ready) != SEEP_PUBLISHED) {
        return SEEP_CHECK_UNFINISHED;
    }
    return SEEP_CHECK_VALID;
}

const char *seep_check_reason(enum seep_recording_check result)
{
    return words[result].reason;
}

const char *seep_check_remedy(enum seep_recording_check result)
{
    return words[result].remedy;
}
