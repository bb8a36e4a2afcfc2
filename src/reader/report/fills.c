/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which of the mappings that grew, as seen from outside, are blocks that were
 * allocated before: what grows is what is written to them. What of a fork is
 * copied, since it is written to: its own resident memory is the same, and that
 * of both is more. And how many threads there are: each has a stack.
 *
 * Invariant: it is said of a mapping only if nearly all of its addresses are
 * such blocks, and most of them one site's.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/word.h"
#include "format/live.h"
#include "reader/recording/rewind.h"
#include "reader/recording/series.h"
#include "reader/report/build.h"

/* Of the addresses of a mapping. */
#define BLOCKS_SHARE 0.8
#define SITE_SHARE 0.5

/* What was put back, since its process freed it at the end, has no address; but
 * malloc() maps a large block by itself, with its size in front of it; whoever
 * asks for huge pages cuts the first one off; and the kernel joins it to a
 * small neighbour, such as the 12 KiB that the loader has for itself below
 * libc. */
#define BESIDE_BYTES (16 * 4096U)

/* What of a mapping is large blocks; .sum is of one site alone, once that is
 * known. */
struct part {
    uint64_t sum;
    uint64_t largest;
    uint32_t site;
};

struct search {
    const struct seep_view *view;
    const struct seep_report_memory *memory;
    struct part *parts; /* of each mapping */
    double until_s;     /* born later, they are no reason to fill */
};

static uint64_t extent_of(const struct seep_report_mapping *mapping)
{
    return mapping->end - mapping->start;
}

/* Of @block, how much lies in @mapping. */
static uint64_t bytes_in(const struct seep_block *block,
                         const struct seep_report_mapping *mapping)
{
    uint64_t extent = extent_of(mapping);
    uint64_t end = block->address + block->size;
    uint64_t from =
        block->address > mapping->start ? block->address : mapping->start;
    uint64_t to = end < mapping->end ? end : mapping->end;

    if (seep_rewind_is_put_back(block->address)) {
        return block->size <= extent + BESIDE_BYTES &&
                       extent <= block->size + BESIDE_BYTES
                   ? (block->size < extent ? block->size : extent)
                   : 0;
    }
    return from < to ? to - from : 0;
}

static bool is_old_and_large(const struct search *search,
                             const struct seep_block *block)
{
    uint32_t space;

    if (block->address == 0 || block->size < SEEP_TOUCHED_LEAST_BYTES ||
        block->site >= search->view->site_capacity ||
        seep_sites_seconds(block->birth_tick) > search->until_s) {
        return false;
    }
    space = search->view->sites[block->site].space;
    return space == SEEP_SPACE_HEAP || space == SEEP_SPACE_PYTHON ||
           space == SEEP_SPACE_MAPPED;
}

/* All blocks by the mapping that they are in; @add is asked of each. */
static void visit(struct search *search,
                  void (*add)(struct part *part, uint32_t site, uint64_t bytes))
{
    for (uint32_t i = 0; i < search->view->live_capacity; i++) {
        struct seep_block block = seep_live_read(&search->view->live[i]);

        if (!is_old_and_large(search, &block)) {
            continue;
        }
        for (size_t j = 0; j < search->memory->mapping_count; j++) {
            uint64_t bytes = bytes_in(&block, &search->memory->mappings[j]);

            if (bytes > 0) {
                add(&search->parts[j], block.site, bytes);
            }
        }
    }
}

static void add_any(struct part *part, uint32_t site, uint64_t bytes)
{
    part->sum += bytes;
    if (bytes > part->largest) {
        part->largest = bytes;
        part->site = site;
    }
}

static void add_of_site(struct part *part, uint32_t site, uint64_t bytes)
{
    part->sum += site == part->site ? bytes : 0;
}

static const struct seep_site_work *
find_row(const struct seep_report_build *build, uint32_t index)
{
    for (size_t i = 0; i < build->sites.count; i++) {
        const struct seep_site_work *work = &build->sites.works[i];

        if (work->index == index) {
            return work;
        }
        for (size_t j = 0; j < work->member_count; j++) {
            if (build->sites.members[work->member_first + j].index == index) {
                return work;
            }
        }
    }
    return NULL;
}

static void tell(const struct seep_report_build *build, const struct part *part,
                 struct seep_report_mapping *mapping)
{
    const struct seep_site_work *row = find_row(build, part->site);

    if (row != NULL &&
        (double)part->sum >= SITE_SHARE * (double)extent_of(mapping)) {
        mapping->tracked = true;
        mapping->filled_of_bytes = (double)part->sum;
        snprintf(mapping->filled_id, sizeof(mapping->filled_id), "%016" PRIx64,
                 row->id);
    }
}

static void judge(const struct seep_report_build *build, struct search *search,
                  struct seep_report_mapping *mappings)
{
    size_t wanted = 0;

    visit(search, add_any);
    for (size_t i = 0; i < search->memory->mapping_count; i++) {
        struct part *part = &search->parts[i];
        bool is_full =
            (double)part->sum >= BLOCKS_SHARE * (double)extent_of(&mappings[i]);

        part->site = is_full && part->largest > 0 ? part->site : UINT32_MAX;
        part->sum = 0;
        wanted += part->site != UINT32_MAX;
    }
    if (wanted == 0) {
        return;
    }
    visit(search, add_of_site);
    for (size_t i = 0; i < search->memory->mapping_count; i++) {
        if (search->parts[i].site != UINT32_MAX) {
            tell(build, &search->parts[i], &mappings[i]);
        }
    }
}

/* What is 0 in all samples is not known, or nothing to be told. */
static struct seep_report_extent
extent_of_samples(const struct seep_report_build *build,
                  const struct seep_external_samples *samples,
                  uint64_t (*value_of)(const struct seep_external_sample *))
{
    struct seep_window_series series = {.count = 0};

    for (size_t i = 0; i < samples->count; i++) {
        seep_window_add(&series, samples->samples[i].t_s,
                        (double)value_of(&samples->samples[i]));
    }
    return seep_balance_extent_if_any(&series, build->report.begin.from_s,
                                      build->report.duration_s);
}

static uint64_t forked_bytes_of(const struct seep_external_sample *sample)
{
    return sample->forked_bytes;
}

static uint64_t thread_count_of(const struct seep_external_sample *sample)
{
    return sample->thread_count;
}

static uint64_t held_bytes_of(const struct seep_external_sample *sample)
{
    return sample->cgroup_held_bytes;
}

static uint64_t shmem_bytes_of(const struct seep_external_sample *sample)
{
    return sample->cgroup_shmem_bytes;
}

static uint64_t open_file_bytes_of(const struct seep_external_sample *sample)
{
    return sample->open_file_bytes;
}

static void add_open_files(struct seep_report_build *build,
                           const struct seep_external_samples *samples)
{
    struct seep_report *report = &build->report;
    struct seep_window_series series = {.count = 0};
    const char *name = "";

    for (size_t i = 0; i < samples->count; i++) {
        const struct seep_external_sample *sample = &samples->samples[i];

        seep_window_add(&series, sample->t_s, (double)sample->open_file_bytes);
        name = sample->open_file[0] != '\0' ? sample->open_file : name;
    }
    report->memory.open_files =
        extent_of_samples(build, samples, open_file_bytes_of);
    name = seep_store_text(&build->store, name);
    report->memory.open_file = name != NULL ? name : "";
    seep_drift_of(&series, report->begin.from_s, report->duration_s,
                  seep_drift_floor_bytes(report->memory.rss.last_bytes),
                  &build->open_files_drift);
}

static void add_seen(struct seep_report_build *build,
                     const struct seep_external_samples *samples)
{
    struct seep_report_memory *memory = &build->report.memory;

    memory->threads = extent_of_samples(build, samples, thread_count_of);
    memory->cgroup_held = extent_of_samples(build, samples, held_bytes_of);
    memory->cgroup_shmem = extent_of_samples(build, samples, shmem_bytes_of);
    add_open_files(build, samples);
    if (build->report.is_fork) {
        memory->forked = extent_of_samples(build, samples, forked_bytes_of);
    }
}

int seep_report_find_fills(struct seep_report_build *build,
                           const struct seep_external_samples *samples,
                           double until_s, struct seep_report_mapping *mappings)
{
    struct search search = {
        .view = &build->snapshot.view,
        .memory = &build->report.memory,
        .until_s = until_s,
    };

    add_seen(build, samples);
    if (search.memory->mapping_count == 0) {
        return 0;
    }
    search.parts = calloc(search.memory->mapping_count, sizeof(*search.parts));
    if (search.parts == NULL) {
        return -ENOMEM;
    }
    judge(build, &search, mappings);
    free(search.parts);
    return 0;
}

/* All of @row in the mappings. */
static struct seep_verdict_fill fill_of(const struct seep_report_memory *memory,
                                        const struct seep_site_work *row)
{
    struct seep_verdict_fill fill = {.site = &row->site};
    char id[sizeof(memory->mappings->filled_id)];

    snprintf(id, sizeof(id), "%016" PRIx64, row->id);
    for (size_t i = 0; i < memory->mapping_count; i++) {
        const struct seep_report_mapping *mapping = &memory->mappings[i];

        if (strcmp(mapping->filled_id, id) == 0) {
            fill.bytes_per_s += mapping->slope_bytes_per_s;
            fill.used_bytes += mapping->last_bytes;
            fill.of_bytes += mapping->filled_of_bytes;
        }
    }
    return fill;
}

struct seep_verdict_fill seep_report_fill(const struct seep_report_build *build)
{
    const struct seep_report_memory *memory = &build->report.memory;
    struct seep_verdict_fill most = {.site = NULL};
    bool is_any = false;

    for (size_t i = 0; i < memory->mapping_count; i++) {
        is_any = is_any || *memory->mappings[i].filled_id != '\0';
    }
    /* There may be very many rows, and mostly nothing fills. */
    for (size_t i = 0; is_any && i < build->sites.count; i++) {
        struct seep_verdict_fill fill = fill_of(memory, &build->sites.works[i]);

        most = fill.bytes_per_s > most.bytes_per_s ? fill : most;
    }
    return most;
}
