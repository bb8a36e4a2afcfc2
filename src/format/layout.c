/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sizes of a recording's sections, and whether some bytes are a recording.
 *
 * Bounds, all of them: what a file takes of the disk is what is in use. Fixed
 * shares for all that a target process cannot do without; the series, the
 * largest part, take what is left. The exact mode, in which every block is in
 * the live table, has longer rings and more live slots.
 *
 * Invariant: what is made here passes the check.
 */
#include "format/layout.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "base/word.h"
#include "format/view.h"

#define SEEP_LAYOUT_DENSE_LOG2 16U /* 64 KiB, and that is one */

/* Of sampled events there are few at once; each shard costs pages of its own.
 */
#define SAMPLED_SHARDS 8U
#define EXACT_SHARDS 64U

const uint32_t seep_layout_entry_bytes[SEEP_SECTION_COUNT]
    __attribute__((visibility("hidden"))) = {
#define ENTRY_BYTES(symbol, type, pointer, size) \
    [SEEP_SECTION_##symbol] = sizeof(type),
        SEEP_VIEW_SECTIONS(ENTRY_BYTES, ENTRY_BYTES)
#undef ENTRY_BYTES
};

static uint32_t clamp(uint64_t value, uint32_t least, uint32_t most)
{
    if (value < least) {
        return least;
    }
    return value > most ? most : (uint32_t)value;
}

static uint32_t power_of_two_below(uint32_t value)
{
    uint32_t power = 1;

    while ((uint64_t)power * 2 <= value) {
        power *= 2;
    }
    return power;
}

uint64_t seep_layout_default_bytes(unsigned sample_log2)
{
    if (sample_log2 == 0) {
        return SEEP_LAYOUT_EXACT_BYTES;
    }
    return sample_log2 == SEEP_LAYOUT_PACED ||
                   sample_log2 <= SEEP_LAYOUT_DENSE_LOG2
               ? SEEP_LAYOUT_DENSE_BYTES
               : SEEP_LAYOUT_DEFAULT_BYTES;
}

/* Of all but the series. @units: sixteenths of a MiB, so 256 for 16 MiB. */
static void count_entries(uint64_t units, bool exact,
                          struct seep_rec_header *header, uint64_t *counts)
{
    uint32_t sites =
        power_of_two_below(clamp(units * (exact ? 16 : 32), 512, 1 << 20));
    /* In the smallest exact recordings the series come first: a table that is
     * full is thinned, a site without a series cannot be judged. */
    uint64_t live_slots = exact && units < 64 ? 8 : exact ? 16 : 32;

    header->shard_count = exact ? EXACT_SHARDS : SAMPLED_SHARDS;
    header->ring_slots = power_of_two_below(
        clamp(units * (exact ? 4 : 1), 64, exact ? 4096 : 512));
    header->live_slots =
        power_of_two_below(clamp(units * live_slots, 64, 1 << 24));
    /* The kernel gives a process 65,530 mappings, if not told otherwise. */
    header->range_slots = power_of_two_below(clamp(units * 32, 1024, 1 << 16));
    counts[SEEP_SECTION_SHARDS] = header->shard_count + 1;
    counts[SEEP_SECTION_TIMELINE] = SEEP_BUCKET_COUNT;
    counts[SEEP_SECTION_STRINGS] = clamp(units * 2048, 64 << 10, 4 << 20);
    counts[SEEP_SECTION_MODULES] = clamp(units * 4, 512, 4096);
    counts[SEEP_SECTION_CODES] =
        power_of_two_below(clamp(units * 32, 512, 1 << 16));
    /* Those that a stack does not share: 3 of 43 of python3's. */
    counts[SEEP_SECTION_FRAMES] = (uint64_t)sites * 24;
    counts[SEEP_SECTION_STACKS] = sites;
    counts[SEEP_SECTION_SITES] = sites;
    counts[SEEP_SECTION_BRIEFS] = sites / 4;
    counts[SEEP_SECTION_DEVICES] =
        (uint64_t)SEEP_BUCKET_COUNT * clamp(units / 32, 1, SEEP_DEVICES_MAX);
    counts[SEEP_SECTION_MARKS] = clamp(units, 128, 512);
    counts[SEEP_SECTION_RINGS] =
        counts[SEEP_SECTION_SHARDS] * header->ring_slots;
    counts[SEEP_SECTION_LIVE] =
        (uint64_t)header->shard_count * header->live_slots +
        header->range_slots;
}

static void set_sections(struct seep_rec_header *header, const uint64_t *counts)
{
    header->file_bytes = SEEP_PAGE_BYTES;
    for (unsigned i = 0; i < SEEP_SECTION_COUNT; i++) {
        struct seep_rec_section *section = &header->sections[i];

        section->offset_bytes = header->file_bytes;
        section->entry_bytes = seep_layout_entry_bytes[i];
        section->entry_count = (uint32_t)counts[i];
        section->bytes = section->entry_bytes * counts[i];
        header->file_bytes += (section->bytes + SEEP_PAGE_BYTES - 1) &
                              ~(uint64_t)(SEEP_PAGE_BYTES - 1);
    }
}

int seep_layout_make(uint64_t size_bytes, bool exact, bool inert,
                     struct seep_rec_header *ret_header)
{
    uint64_t counts[SEEP_SECTION_COUNT] = {
        [SEEP_SECTION_COUNTERS] = SEEP_COUNTER_COUNT,
        [SEEP_SECTION_STRINGS] = 16 << 10,
    };
    uint64_t series;

    if (size_bytes < SEEP_LAYOUT_LEAST_BYTES ||
        size_bytes > SEEP_LAYOUT_MOST_BYTES) {
        return -EINVAL;
    }
    ret_header->shard_count = 0;
    ret_header->ring_slots = 0;
    ret_header->live_slots = 0;
    ret_header->range_slots = 0;
    if (!inert) {
        count_entries(size_bytes >> 16, exact, ret_header, counts);
    }
    set_sections(ret_header, counts);
    /* Not tested: a size of which nothing is left. count_entries() makes none;
     * without this a mistake there would be a number below 0. */
    if (!inert && ret_header->file_bytes + SEEP_PAGE_BYTES <= size_bytes) {
        /* A page is for the rounding of their own section. */
        series = (size_bytes - ret_header->file_bytes - SEEP_PAGE_BYTES) /
                 sizeof(struct seep_rec_series);
        counts[SEEP_SECTION_SERIES] = series < counts[SEEP_SECTION_SITES]
                                          ? series
                                          : counts[SEEP_SECTION_SITES];
        set_sections(ret_header, counts);
    }
    memcpy(ret_header->magic, SEEP_MAGIC, sizeof(ret_header->magic));
    ret_header->format_major = SEEP_FORMAT_MAJOR;
    ret_header->format_minor = SEEP_FORMAT_MINOR;
    ret_header->byte_order = SEEP_BYTE_ORDER;
    ret_header->header_bytes = sizeof(*ret_header);
    ret_header->fixed_bytes = offsetof(struct seep_rec_header, sample_log2);
    ret_header->exact = exact;
    return 0;
}

uint64_t seep_layout_start_bytes(const struct seep_rec_header *header)
{
    return header->inert != SEEP_INERT_NONE
               ? header->file_bytes
               : header->sections[SEEP_SECTION_STRINGS].offset_bytes;
}

uint64_t seep_layout_fixed_hash(const struct seep_rec_header *header)
{
    union {
        unsigned char bytes[offsetof(struct seep_rec_header, sample_log2)];
        uint64_t align;
    } fixed;
    uint64_t zero = 0;

    memcpy(fixed.bytes, header, sizeof(fixed.bytes));
    memcpy(fixed.bytes + offsetof(struct seep_rec_header, fixed_hash), &zero,
           sizeof(zero));
    return seep_hash_bytes(fixed.bytes, sizeof(fixed.bytes));
}

void seep_layout_start(struct seep_rec_header *header)
{
    const struct seep_rec_section *parts =
        &header->sections[SEEP_SECTION_SHARDS];
    struct seep_rec_shard *shards =
        (void *)((char *)header + parts->offset_bytes);

    for (uint32_t i = 0; i < parts->entry_count; i++) {
        shards[i].live_first = (uint64_t)i * header->live_slots;
        shards[i].live_slots =
            i == header->shard_count ? header->range_slots : header->live_slots;
        shards[i].live_group_log2 = SEEP_LIVE_GROUP_LOG2;
        seep_word_store(&shards[i].flow_width_log2, SEEP_FIRST_WIDTH_LOG2);
    }
    /* Offset 0 of STRINGS is the empty string. */
    seep_word_store(&header->string_bytes_used, 1);
    header->fixed_hash = seep_layout_fixed_hash(header);
}

/*
 * Is this a recording? The validity conditions 1 to 4 of seep/recording.h, in
 * their order: nothing is read before what says that it is there was checked.
 */

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
