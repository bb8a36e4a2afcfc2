/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The validity conditions 1 to 4 of recording.h; see check.h. */
#include "format/check.h"

#include <stdbool.h>
#include <string.h>

#include "format/layout.h"
#include "seep/recording.h"

static const struct {
    const char *reason;
    const char *remedy;
} words[] = {
#define WORDS(symbol, reason, remedy) {reason, remedy},
    SEEP_CHECKS(WORDS)
#undef WORDS
};

static bool is_power_of_two(uint32_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

static bool section_fits(const struct seep_rec_header *header,
                         enum seep_section which, uint64_t *at,
                         uint32_t entry_bytes)
{
    const struct seep_rec_section *section = &header->sections[which];

    if (section->entry_bytes != entry_bytes ||
        section->bytes != (uint64_t)entry_bytes * section->entry_count ||
        section->offset_bytes % SEEP_PAGE_BYTES != 0 ||
        section->offset_bytes < *at ||
        section->offset_bytes > header->file_bytes ||
        section->bytes > header->file_bytes - section->offset_bytes) {
        return false;
    }
    *at = section->offset_bytes + section->bytes;
    return true;
}

static bool sections_fit(const struct seep_rec_header *header)
{
    static const uint32_t entry_bytes[SEEP_SECTION_COUNT] = {
        [SEEP_SECTION_COUNTERS] = 8,
        [SEEP_SECTION_STRINGS] = 1,
        [SEEP_SECTION_MODULES] = sizeof(struct seep_rec_module),
        [SEEP_SECTION_CODES] = sizeof(struct seep_rec_code),
        [SEEP_SECTION_FRAMES] = 8,
        [SEEP_SECTION_STACKS] = sizeof(struct seep_rec_stack),
        [SEEP_SECTION_SITES] = sizeof(struct seep_rec_site),
        [SEEP_SECTION_SERIES] = sizeof(struct seep_rec_series),
        [SEEP_SECTION_TIMELINE] = sizeof(struct seep_rec_moment),
        [SEEP_SECTION_DEVICES] = sizeof(struct seep_rec_device),
        [SEEP_SECTION_MARKS] = sizeof(struct seep_rec_mark),
        [SEEP_SECTION_SHARDS] = sizeof(struct seep_rec_shard),
        [SEEP_SECTION_RINGS] = sizeof(struct seep_rec_event),
        [SEEP_SECTION_LIVE] = sizeof(struct seep_rec_live),
    };
    uint64_t at = SEEP_PAGE_BYTES;

    for (enum seep_section i = 0; i < SEEP_SECTION_COUNT; i++) {
        if (!section_fits(header, i, &at, entry_bytes[i])) {
            return false;
        }
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

    if (header->inert != SEEP_INERT_NONE) {
        return count_of(header, SEEP_SECTION_SITES) == 0 && shards == 0 &&
               count_of(header, SEEP_SECTION_STACKS) == 0 &&
               count_of(header, SEEP_SECTION_CODES) == 0 &&
               count_of(header, SEEP_SECTION_RINGS) == 0 &&
               count_of(header, SEEP_SECTION_LIVE) == 0 &&
               count_of(header, SEEP_SECTION_TIMELINE) == 0 &&
               count_of(header, SEEP_SECTION_DEVICES) == 0 &&
               count_of(header, SEEP_SECTION_MARKS) == 0;
    }
    return is_power_of_two(header->shard_count) &&
           is_power_of_two(header->ring_slots) &&
           is_power_of_two(header->live_slots) &&
           is_power_of_two(header->range_slots) &&
           is_power_of_two(count_of(header, SEEP_SECTION_SITES)) &&
           is_power_of_two(count_of(header, SEEP_SECTION_STACKS)) &&
           is_power_of_two(count_of(header, SEEP_SECTION_CODES)) &&
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

enum seep_check_result seep_check(const void *bytes, size_t size)
{
    const struct seep_rec_header *header = bytes;

    if (size == 0) {
        return SEEP_CHECK_EMPTY;
    }
    if (size < sizeof(*header)) {
        return size >= 8 && memcmp(bytes, SEEP_MAGIC, 8) == 0
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
    if (header->fixed_hash != seep_layout_fixed_hash(header) ||
        header->format_major != SEEP_FORMAT_MAJOR ||
        header->header_bytes != sizeof(*header)) {
        return SEEP_CHECK_DAMAGED;
    }
    if (header->file_bytes > size) {
        return SEEP_CHECK_TRUNCATED;
    }
    if (!sections_fit(header) || !counts_agree(header)) {
        return SEEP_CHECK_DAMAGED;
    }
    if (atomic_load_explicit(&header->ready, memory_order_relaxed) !=
        SEEP_PUBLISHED) {
        return SEEP_CHECK_UNFINISHED;
    }
    return SEEP_CHECK_VALID;
}

const char *seep_check_reason(enum seep_check_result result)
{
    return words[result].reason;
}

const char *seep_check_remedy(enum seep_check_result result)
{
    return words[result].remedy;
}
