/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sizes of a recording's sections.
 *
 * Fixed shares for everything that a worker cannot do without; the series,
 * the largest part, take what is left. The exact mode, in which every
 * block is in the live table, has longer rings and more live slots.
 */
#include "format/layout.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/hash.h"

#define HEAP_SHARDS 64U

struct counts {
    uint32_t strings;
    uint32_t modules;
    uint32_t codes;
    uint32_t devices;
    uint32_t marks;
    uint32_t frames;
    uint32_t stacks;
    uint32_t sites;
    uint32_t ring_slots;
    uint32_t live_slots;
    uint32_t range_slots;
};

static uint32_t clamp(uint64_t value, uint32_t least, uint32_t most)
{
    if (value < least) {
        return least;
    }
    return value > most ? most : (uint32_t)value;
}

static uint32_t power_of_two_below(uint64_t value)
{
    uint32_t power = 1;

    while (power < (UINT32_C(1) << 30) && (uint64_t)power * 2 <= value) {
        power *= 2;
    }
    return power;
}

/* @units: sixteenths of a MiB, so 256 for 16 MiB. */
static struct counts counts_for(uint64_t units, bool exact)
{
    struct counts c;
    uint64_t live_slots;

    c.strings = clamp(units * 1024, 64 << 10, 4 << 20);
    c.modules = clamp(units * 4, 512, 4096);
    c.codes = power_of_two_below(clamp(units * 16, 512, 1 << 16));
    c.devices = clamp(units / 32, 1, SEEP_DEVICES_MAX);
    c.marks = clamp(units, 128, 512);
    c.sites =
        power_of_two_below(clamp(units * (exact ? 16 : 32), 512, 1 << 20));
    c.stacks = c.sites;
    c.frames = c.sites * 64;
    c.ring_slots = power_of_two_below(
        clamp(units * (exact ? 4 : 1), 32, exact ? 4096 : 1024));
    /* In the smallest exact recordings the series come first: a table that is
     * full is thinned, a site without a series cannot be judged. */
    live_slots = units * (units < 64 ? 8 : 16);
    c.live_slots =
        power_of_two_below(clamp(exact ? live_slots : units * 4, 64, 1 << 24));
    c.range_slots = power_of_two_below(clamp(units * 32, 1024, 8192));
    return c;
}

static void set_section(struct seep_rec_header *header, enum seep_section which,
                        size_t entry_bytes, uint64_t count)
{
    struct seep_rec_section *section = &header->sections[which];

    section->offset_bytes = header->file_bytes;
    section->entry_bytes = (uint32_t)entry_bytes;
    section->entry_count = (uint32_t)count;
    section->bytes = entry_bytes * count;
    header->file_bytes += (section->bytes + SEEP_PAGE_BYTES - 1) &
                          ~(uint64_t)(SEEP_PAGE_BYTES - 1);
}

/* All sections but the series are set by their counts; @series is theirs. */
static void set_sections(struct seep_rec_header *header, const struct counts *c,
                         uint64_t series)
{
    uint64_t shards = c->ring_slots != 0 ? HEAP_SHARDS + 1 : 0;

    header->file_bytes = SEEP_PAGE_BYTES;
    set_section(header, SEEP_SECTION_COUNTERS, 8, SEEP_COUNTER_COUNT);
    set_section(header, SEEP_SECTION_STRINGS, 1, c->strings);
    set_section(header, SEEP_SECTION_MODULES, sizeof(struct seep_rec_module),
                c->modules);
    set_section(header, SEEP_SECTION_CODES, sizeof(struct seep_rec_code),
                c->codes);
    set_section(header, SEEP_SECTION_FRAMES, 8, c->frames);
    set_section(header, SEEP_SECTION_STACKS, sizeof(struct seep_rec_stack),
                c->stacks);
    set_section(header, SEEP_SECTION_SITES, sizeof(struct seep_rec_site),
                c->sites);
    set_section(header, SEEP_SECTION_SERIES, sizeof(struct seep_rec_series),
                series);
    set_section(header, SEEP_SECTION_TIMELINE, sizeof(struct seep_rec_moment),
                c->sites != 0 ? SEEP_BUCKET_COUNT : 0);
    set_section(header, SEEP_SECTION_DEVICES, sizeof(struct seep_rec_device),
                (uint64_t)c->devices * SEEP_BUCKET_COUNT);
    set_section(header, SEEP_SECTION_MARKS, sizeof(struct seep_rec_mark),
                c->marks);
    set_section(header, SEEP_SECTION_SHARDS, sizeof(struct seep_rec_shard),
                shards);
    set_section(header, SEEP_SECTION_RINGS, sizeof(struct seep_rec_event),
                shards * c->ring_slots);
    set_section(header, SEEP_SECTION_LIVE, sizeof(struct seep_rec_live),
                shards != 0
                    ? (uint64_t)HEAP_SHARDS * c->live_slots + c->range_slots
                    : 0);
}

int seep_layout_make(uint64_t size_bytes, bool exact, bool inert,
                     struct seep_rec_header *ret_header)
{
    struct counts c = {.strings = 16 << 10};
    uint64_t series = 0;

    if (size_bytes < SEEP_LAYOUT_LEAST_BYTES ||
        size_bytes > SEEP_LAYOUT_MOST_BYTES) {
        return -EINVAL;
    }
    if (!inert) {
        c = counts_for(size_bytes >> 16, exact);
    }
    set_sections(ret_header, &c, 0);
    if (!inert && ret_header->file_bytes + SEEP_PAGE_BYTES <= size_bytes) {
        /* A page is for the rounding of their own section. */
        series = (size_bytes - ret_header->file_bytes - SEEP_PAGE_BYTES) /
                 sizeof(struct seep_rec_series);
        series = series > c.sites ? c.sites : series;
        set_sections(ret_header, &c, series);
    }
    memcpy(ret_header->magic, SEEP_MAGIC, sizeof(ret_header->magic));
    ret_header->format_major = SEEP_FORMAT_MAJOR;
    ret_header->format_minor = SEEP_FORMAT_MINOR;
    ret_header->byte_order = SEEP_BYTE_ORDER;
    ret_header->header_bytes = sizeof(*ret_header);
    ret_header->fixed_bytes = offsetof(struct seep_rec_header, sample_log2);
    ret_header->exact = exact;
    ret_header->shard_count = HEAP_SHARDS;
    ret_header->ring_slots = c.ring_slots;
    ret_header->live_slots = c.live_slots;
    ret_header->range_slots = c.range_slots;
    return 0;
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
        atomic_store_explicit(&shards[i].flow_width_log2, SEEP_FIRST_WIDTH_LOG2,
                              memory_order_relaxed);
    }
    /* Offset 0 of STRINGS is the empty string. */
    atomic_store_explicit(&header->string_bytes_used, 1, memory_order_relaxed);
    header->fixed_hash = seep_layout_fixed_hash(header);
}
