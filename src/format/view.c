/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Typed pointers into a recording; see view.h. */
#include "format/view.h"

#include "base/hash.h"

static void *section(struct seep_rec_header *header, enum seep_section which)
{
    return (char *)header + header->sections[which].offset_bytes;
}

void seep_view_init(struct seep_view *ret_view, void *recording)
{
    struct seep_rec_header *header = recording;
    const struct seep_rec_section *sections = header->sections;

    ret_view->header = header;
    ret_view->counters = section(header, SEEP_SECTION_COUNTERS);
    ret_view->strings = section(header, SEEP_SECTION_STRINGS);
    ret_view->modules = section(header, SEEP_SECTION_MODULES);
    ret_view->codes = section(header, SEEP_SECTION_CODES);
    ret_view->frames = section(header, SEEP_SECTION_FRAMES);
    ret_view->stacks = section(header, SEEP_SECTION_STACKS);
    ret_view->sites = section(header, SEEP_SECTION_SITES);
    ret_view->series = section(header, SEEP_SECTION_SERIES);
    ret_view->timeline = section(header, SEEP_SECTION_TIMELINE);
    ret_view->devices = section(header, SEEP_SECTION_DEVICES);
    ret_view->marks = section(header, SEEP_SECTION_MARKS);
    ret_view->shards = section(header, SEEP_SECTION_SHARDS);
    ret_view->rings = section(header, SEEP_SECTION_RINGS);
    ret_view->live = section(header, SEEP_SECTION_LIVE);
    ret_view->string_bytes = sections[SEEP_SECTION_STRINGS].entry_count;
    ret_view->module_capacity = sections[SEEP_SECTION_MODULES].entry_count;
    ret_view->code_capacity = sections[SEEP_SECTION_CODES].entry_count;
    ret_view->frame_capacity = sections[SEEP_SECTION_FRAMES].entry_count;
    ret_view->stack_capacity = sections[SEEP_SECTION_STACKS].entry_count;
    ret_view->site_capacity = sections[SEEP_SECTION_SITES].entry_count;
    ret_view->series_capacity = sections[SEEP_SECTION_SERIES].entry_count;
    ret_view->device_count =
        sections[SEEP_SECTION_DEVICES].entry_count / SEEP_BUCKET_COUNT;
    ret_view->mark_capacity = sections[SEEP_SECTION_MARKS].entry_count;
    ret_view->shard_count = sections[SEEP_SECTION_SHARDS].entry_count;
    ret_view->ring_slots = header->ring_slots;
    ret_view->live_capacity = sections[SEEP_SECTION_LIVE].entry_count;
}

const char *seep_view_string(const struct seep_view *view, seep_string string)
{
    /* The last byte of the section is 0 in every valid recording: it is never
     * written. A damaged one is made so by who copies it. */
    return string < view->string_bytes ? view->strings + string : "";
}

uint32_t seep_view_shard_of(const struct seep_view *view, uint64_t address)
{
    return (uint32_t)(seep_hash_mix(address >> 12) >> 32) &
           (view->header->shard_count - 1);
}
