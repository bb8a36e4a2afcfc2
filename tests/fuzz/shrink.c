/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recording shrunk: its largest call sites with what belongs to them, in
 * tables of a few entries each, made by the code that writes recordings.
 *
 * Invariant: the recording may be of a version with other counters, of another
 * format it is refused. It is one of ours, and not hostile.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/layout.h"
#include "format/live.h"
#include "small.h"

#define SITES 5U /* each takes a tenth of a millisecond to judge */
#define FRAMES 10U
#define LIVE_MOST 30U /* of a shard: of 64 slots half at most */

static const uint32_t counts[SEEP_SECTION_COUNT] = {
    [SEEP_SECTION_COUNTERS] = SEEP_COUNTER_COUNT,
    [SEEP_SECTION_SHARDS] = 2,
    [SEEP_SECTION_TIMELINE] = SEEP_BUCKET_COUNT,
    [SEEP_SECTION_STRINGS] = 8192,
    [SEEP_SECTION_MODULES] = 32,
    [SEEP_SECTION_CODES] = 64,
    [SEEP_SECTION_FRAMES] = 512,
    [SEEP_SECTION_STACKS] = 32,
    [SEEP_SECTION_SITES] = 32,
    [SEEP_SECTION_BRIEFS] = 8,
    [SEEP_SECTION_SERIES] = 5,
    [SEEP_SECTION_DEVICES] = SEEP_BUCKET_COUNT,
    [SEEP_SECTION_MARKS] = 8,
    [SEEP_SECTION_RINGS] = 2 * 16,
    [SEEP_SECTION_LIVE] = 2 * SEEP_WINDOW_SLOTS,
};

struct shrink {
    struct seep_view from;
    struct recording_builder *to;
    uint32_t *sites; /* what of it a site became; 0: nothing */
    uint32_t *modules;
    uint32_t *codes;
};

static void lay_out(struct seep_rec_header *header)
{
    header->shard_count = 1;
    header->ring_slots = 16;
    header->live_slots = SEEP_WINDOW_SLOTS;
    header->range_slots = SEEP_WINDOW_SLOTS;
    header->file_bytes = SEEP_PAGE_BYTES;
    for (unsigned i = 0; i < SEEP_SECTION_COUNT; i++) {
        struct seep_rec_section *part = &header->sections[i];

        part->entry_bytes = seep_layout_entry_bytes[i];
        part->entry_count = counts[i];
        part->bytes = (uint64_t)part->entry_bytes * counts[i];
        part->offset_bytes = header->file_bytes;
        header->file_bytes += (part->bytes + SEEP_PAGE_BYTES - 1) /
                              SEEP_PAGE_BYTES * SEEP_PAGE_BYTES;
    }
}

/* As it is but for what is elsewhere now. */
static void copy_header(struct shrink *shrink)
{
    const struct seep_rec_header *from = shrink->from.header;
    struct recording_builder *to = shrink->to;
    struct seep_rec_header *header = to->view.header;
    uint64_t string_bytes = seep_word_load(&header->string_bytes_used);
    const size_t fixed = offsetof(struct seep_rec_header, start_realtime_ns);
    const size_t changing = offsetof(struct seep_rec_header, sample_log2);

    memcpy((char *)header + fixed, (const char *)from + fixed,
           offsetof(struct seep_rec_header, shard_count) - fixed);
    memcpy((char *)header + changing, (const char *)from + changing,
           sizeof(*header) - changing);
    header->first_sample_log2 = from->first_sample_log2;
    header->settled_sample_log2 = from->settled_sample_log2;
    header->budget = from->budget;
    seep_word_store(&header->string_bytes_used, string_bytes);
    seep_word_store(&header->frames_used, 0);
    seep_word_store(&header->module_count, 0);
    seep_word_store(&header->code_count, 0);
    seep_word_store(&header->stack_count, 0);
    seep_word_store(&header->site_count, 0);
    seep_word_store(&header->series_count, 0);
    seep_word_store(&header->brief_count, 0);
    seep_word_store(&header->mark_count, 0);
    seep_word_store(&header->title, 0);
    header->labels =
        builder_string(to, seep_view_string(&shrink->from, from->labels));
}

static const char *text_of(const struct shrink *shrink, seep_string string)
{
    return seep_view_string(&shrink->from, string);
}

/* The same frame in what it is shrunk to. */
static uint64_t take_frame(struct shrink *shrink, uint64_t frame)
{
    uint64_t module = frame >> SEEP_FRAME_OFFSET_BITS;
    uint64_t number = (frame & ~SEEP_FRAME_IS_CODE) >> SEEP_FRAME_LINE_BITS;

    if ((frame & SEEP_FRAME_IS_CODE) != 0) {
        const struct seep_rec_code *code = &shrink->from.codes[number];

        if (number != 0 && shrink->codes[number] == 0) {
            shrink->codes[number] = builder_code(
                shrink->to, code->kind, text_of(shrink, code->file),
                text_of(shrink, code->name), code->first_line);
            shrink->to->view.codes[shrink->codes[number]].traits = code->traits;
        }
        return builder_code_frame(shrink->codes[number],
                                  (uint32_t)(frame & SEEP_FRAME_LINE_MASK));
    }
    if (module != 0 && shrink->modules[module] == 0) {
        const struct seep_rec_module *from = &shrink->from.modules[module - 1];

        shrink->modules[module] =
            builder_module(shrink->to, text_of(shrink, from->path), 0x33);
    }
    return builder_frame(shrink->modules[module],
                         frame & SEEP_FRAME_OFFSET_MASK);
}

/* Outer frames that are those of the stack before are shared with it. */
static uint32_t take_stack(struct shrink *shrink, uint32_t stack)
{
    static uint64_t last[FRAMES];
    static uint32_t last_count;
    uint64_t frames[SEEP_STACK_FRAMES_MAX];
    uint32_t count = seep_view_frames(&shrink->from, stack, frames);
    uint32_t shared = 0;
    uint32_t index;

    count = count < FRAMES ? count : FRAMES;
    for (uint32_t i = 0; i < count; i++) {
        frames[i] = take_frame(shrink, frames[i]);
    }
    index = seep_word_load(&shrink->to->view.header->stack_count);
    while (index > 0 && shared + 1 < count && shared < last_count &&
           last[last_count - 1 - shared] == frames[count - 1 - shared]) {
        shared++;
    }
    memcpy(last, frames, count * sizeof(*frames));
    last_count = count;
    index = builder_stack(shrink->to, frames, count - shared);
    shrink->to->view.stacks[index].shared_stack = shared > 0 ? index - 1 : 0;
    shrink->to->view.stacks[index].shared_count = (uint16_t)shared;
    shrink->to->view.stacks[index].cut = shrink->from.stacks[stack].cut;
    seep_word_store(&shrink->to->view.stacks[index].frame_count, count);
    return index;
}

static void take_series(struct shrink *shrink, uint32_t number, uint32_t site)
{
    const struct seep_view *to = &shrink->to->view;
    uint32_t brief = number & ~SEEP_SERIES_IS_BRIEF;
    bool is_brief = brief != number;
    _Atomic uint32_t *used =
        is_brief ? &to->header->brief_count : &to->header->series_count;
    uint32_t at = seep_word_load(used);

    seep_word_store(&to->sites[site].series, 0);
    if (brief == 0 ||
        at >= (is_brief ? to->brief_capacity : to->series_capacity)) {
        return;
    }
    if (is_brief) {
        memcpy((void *)&to->briefs[at], (void *)&shrink->from.briefs[brief - 1],
               sizeof(*to->briefs));
        seep_word_store(&to->briefs[at].site, site);
    } else {
        memcpy((void *)&to->series[at], (void *)&shrink->from.series[brief - 1],
               sizeof(*to->series));
        seep_word_store(&to->series[at].site, site);
    }
    seep_word_store(used, at + 1);
    seep_word_store(&to->sites[site].series,
                    (at + 1) | (number & SEEP_SERIES_IS_BRIEF));
}

static void take_site(struct shrink *shrink, uint32_t from)
{
    struct seep_rec_site *site = &shrink->from.sites[from];
    uint32_t stack = take_stack(shrink, site->stack);
    uint32_t index =
        builder_site(shrink->to, stack, (enum seep_space)site->space);
    struct seep_rec_site *to = &shrink->to->view.sites[index];

    shrink->sites[from] = index;
    memcpy((void *)to, (void *)site, sizeof(*to));
    to->stack = stack;
    take_series(shrink, seep_word_load(&site->series), index);
}

/* The largest of all, as many as there is room for. */
static void take_sites(struct shrink *shrink)
{
    const struct seep_view *from = &shrink->from;

    for (uint32_t i = 0; i < SITES; i++) {
        uint32_t largest = 0;
        uint64_t most = 0;

        for (uint32_t j = 1; j < from->site_capacity; j++) {
            uint64_t bytes = seep_word_load(&from->sites[j].allocated_bytes);

            if (shrink->sites[j] == 0 && bytes > most &&
                seep_word_load(&from->sites[j].state) == SEEP_PUBLISHED) {
                largest = j;
                most = bytes;
            }
        }
        if (largest == 0) {
            break;
        }
        take_site(shrink, largest);
    }
}

static void take_live(struct shrink *shrink)
{
    const struct seep_view *from = &shrink->from;

    for (uint32_t i = 0; i < from->live_capacity; i++) {
        struct seep_block block = seep_live_read(&from->live[i]);
        bool is_range =
            i >= from->header->shard_count * from->header->live_slots;
        struct seep_live live;

        if (block.address != 0 && block.site < from->site_capacity &&
            shrink->sites[block.site] != 0 &&
            seep_live_init(&live, &shrink->to->view, is_range) &&
            seep_word_load(&live.shard->live_count) < LIVE_MOST) {
            block.site = shrink->sites[block.site];
            seep_live_insert(&live, &block);
        }
    }
}

/* Of the process: what is as long in every recording. */
static void take_rest(struct shrink *shrink)
{
    const struct seep_view *from = &shrink->from;
    const struct seep_view *to = &shrink->to->view;
    uint32_t counters =
        from->header->sections[SEEP_SECTION_COUNTERS].entry_count;

    counters = counters < SEEP_COUNTER_COUNT ? counters : SEEP_COUNTER_COUNT;
    memcpy((void *)to->counters, (void *)from->counters, counters * 8);
    memcpy((void *)to->timeline, (void *)from->timeline,
           SEEP_BUCKET_COUNT * sizeof(*to->timeline));
    if (from->device_count > 0) {
        memcpy((void *)to->devices, (void *)from->devices,
               SEEP_BUCKET_COUNT * sizeof(*to->devices));
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct seep_rec_shard *shard =
            &from->shards[i == 0 ? 0 : from->shard_count - 1];

        memcpy((void *)to->shards[i].flow, (const void *)shard->flow,
               sizeof(shard->flow));
        seep_word_copy(&to->shards[i].flow_width_log2, &shard->flow_width_log2);
    }
    for (uint32_t i = 0; i < from->mark_capacity && i < to->mark_capacity;
         i++) {
        const struct seep_rec_mark *mark = &from->marks[i];

        if (seep_word_load(&mark->state) == SEEP_PUBLISHED) {
            builder_mark(shrink->to, (enum seep_mark_kind)mark->kind,
                         seep_word_load(&mark->tick),
                         text_of(shrink, mark->name),
                         text_of(shrink, mark->text));
        }
    }
}

/* Events that nobody has folded: one of each kind. */
static void add_pending(struct recording_builder *to)
{
    uint32_t tick = seep_word_load(&to->view.header->exit_tick);
    uint64_t at = UINT64_C(0x7e0000000000);

    builder_alloc(to, at, 4096, 1, tick);
    builder_push(to, SEEP_EVENT_REALLOC_OUT, at, 0, 0, tick);
    builder_push(to, SEEP_EVENT_RESTORE, at, 0, 0, tick);
    builder_free(to, at, tick);
    builder_push(to, SEEP_EVENT_MAP, at, 1 << 20, 1, tick);
    builder_push(to, SEEP_EVENT_UNMAP, at + 8192, 4096, 0, tick);
    builder_push(to, SEEP_EVENT_REMAP_OUT, at, 4096, 0, tick);
}

static bool shrink_view(const struct seep_view *from,
                        struct recording_builder *to)
{
    struct seep_rec_header layout = *from->header;
    struct shrink shrink = {
        .from = *from,
        .to = to,
        .sites = calloc(from->site_capacity, sizeof(*shrink.sites)),
        .modules = calloc(SEEP_MODULES_MAX + 1, sizeof(*shrink.modules)),
        .codes = calloc(from->code_capacity, sizeof(*shrink.codes)),
    };
    bool has_memory =
        shrink.sites != NULL && shrink.modules != NULL && shrink.codes != NULL;

    if (has_memory) {
        lay_out(&layout);
        builder_init_layout(to, &layout, -1);
        copy_header(&shrink);
        take_sites(&shrink);
        take_live(&shrink);
        take_rest(&shrink);
        add_pending(to);
        builder_seal(to);
    }
    free(shrink.sites);
    free(shrink.modules);
    free(shrink.codes);
    return has_memory;
}

/* Is it laid out as ours are? Counters may have been fewer. */
static bool is_of_this_format(const struct seep_rec_header *header, size_t size)
{
    if (size < sizeof(*header) ||
        memcmp(header->magic, SEEP_MAGIC, sizeof(header->magic)) != 0 ||
        header->format_major != SEEP_FORMAT_MAJOR ||
        header->file_bytes > size) {
        return false;
    }
    for (unsigned i = 0; i < SEEP_SECTION_COUNT; i++) {
        if (header->sections[i].entry_bytes != seep_layout_entry_bytes[i]) {
            return false;
        }
    }
    return true;
}

bool small_shrink(const char *path, struct recording_builder *to)
{
    struct recording_builder sample;
    struct seep_view from;
    struct stat status;
    bool done = false;
    void *bytes;
    int fd;

    if (path == NULL) {
        builder_init_sample(&sample);
        done = shrink_view(&sample.view, to);
        builder_fini(&sample);
        return done;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    if (fstat(fd, &status) == 0 && status.st_size > 0) {
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            if (is_of_this_format(bytes, (size_t)status.st_size)) {
                seep_view_init(&from, bytes);
                done = shrink_view(&from, to);
            }
            munmap(bytes, (size_t)status.st_size);
        }
    }
    close(fd);
    return done;
}
