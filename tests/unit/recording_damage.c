/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See recording_damage.h. */
#include "recording_damage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reader/process/vitals.h"

#define FIELDS RECORDING_DAMAGE_FIELDS
#define MARK_FIELDS 13
#define GROWTH_FIELDS 15

void recording_damage_init(struct recording_damage *damage)
{
    const uint64_t *words;
    size_t count;

    builder_init_sample(&damage->builder);
    count = damage->builder.size_bytes / 8;
    damage->whole = malloc(damage->builder.size_bytes);
    damage->used = malloc(count * sizeof(*damage->used));
    damage->used_count = 0;
    damage->by = 0;
    damage->fd = memfd_create("seep-test", MFD_CLOEXEC);
    if (damage->whole == NULL || damage->used == NULL || damage->fd < 0) {
        abort();
    }
    memcpy(damage->whole, damage->builder.bytes, damage->builder.size_bytes);
    words = damage->whole;
    for (size_t i = 0; i < count; i++) {
        if (words[i] != 0) {
            damage->used[damage->used_count++] = i * 8;
        }
    }
}

void recording_damage_fini(struct recording_damage *damage)
{
    builder_fini(&damage->builder);
    free(damage->whole);
    free(damage->used);
    close(damage->fd);
}

void recording_damage_reset(struct recording_damage *damage)
{
    memcpy(damage->builder.bytes, damage->whole, damage->builder.size_bytes);
}

void recording_damage_word(struct recording_damage *damage, uint64_t at,
                           uint64_t value)
{
    size_t offset = (at >> 3) % (damage->builder.size_bytes / 8) * 8;

    /* Most of the file is ring and table that nothing was ever put in; and
     * what is in it is mostly ring. One in four goes to the header. */
    if (at % 8 < 5) {
        offset = damage->used[(at >> 3) % damage->used_count];
    } else if (at % 8 < 7) {
        offset = (at >> 3) % (SEEP_PAGE_BYTES / 8 / 4) * 8;
    }
    memcpy((char *)damage->builder.bytes + offset, &value, sizeof(value));
}

/* Of what the program said. */
static void damage_mark(struct recording_damage *damage, int field,
                        uint64_t value)
{
    struct seep_view *v = &damage->builder.view;
    struct seep_rec_header *h = v->header;
    const struct {
        void *at;
        size_t bytes;
    } fields[MARK_FIELDS] = {
        {&h->sections[SEEP_SECTION_MARKS].entry_count, 4},
        {&h->mark_count, 4},
        {&v->marks[0].state, 4},
        {&v->marks[0].kind, 4},
        {&v->marks[0].tick, 4},
        {&v->marks[0].order, 4},
        {&v->marks[0].name, 4},
        {&v->marks[0].text, 4},
        {&v->marks[1].kind, 4},
        {&v->marks[1].order, 4},
        {&v->marks[1].name, 4},
        {&v->marks[1].text, 4},
        {&v->marks[2].name, 4},
    };

    memcpy(fields[field].at, &value, fields[field].bytes);
}

/* What tells how far a recording has grown, and what is kept short in it. */
static void damage_growth(struct recording_damage *damage, int field,
                          uint64_t value)
{
    struct seep_view *v = &damage->builder.view;
    struct seep_rec_header *h = v->header;
    const struct {
        void *at;
        size_t bytes;
    } fields[GROWTH_FIELDS] = {
        {&v->stacks[0].frame_count, 4},
        {&v->stacks[0].first_frame, 4},
        {&v->stacks[0].cut, 2},
        {&v->series[0].width_log2, 4},
        {&v->series[0].last, 4},
        {&v->series[0].first_tick, 4},
        {&v->stacks[0].shared_stack, 4},
        {&v->stacks[0].shared_count, 2},
        {&v->shards[0].live_windows, 4},
        {&v->shards[0].live_end, 4},
        {&h->brief_count, 4},
        {&v->briefs[0].width_log2, 4},
        {&v->briefs[0].last, 4},
        {&v->briefs[0].numbers, 8},
        {&v->briefs[0].died[0].bucket, 4},
    };

    memcpy(fields[field].at, &value, fields[field].bytes);
}

void recording_damage_field(struct recording_damage *damage, int field,
                            uint64_t value)
{
    const struct seep_view *v = &damage->builder.view;
    struct seep_rec_header *h = v->header;
    const struct {
        void *at;
        size_t bytes;
    } fields[FIELDS - MARK_FIELDS - GROWTH_FIELDS] = {
        {&h->shard_count, 4},
        {&h->ring_slots, 4},
        {&h->live_slots, 4},
        {&h->range_slots, 4},
        {&h->arguments, 4},
        {&h->argument_count, 4},
        {&h->executable, 4},
        {&h->sections[SEEP_SECTION_SITES].entry_count, 4},
        {&h->sections[SEEP_SECTION_LIVE].offset_bytes, 8},
        {&h->sections[SEEP_SECTION_STRINGS].bytes, 8},
        {&h->string_bytes_used, 8},
        {&h->frames_used, 8},
        {&h->sample_log2, 4},
        {&h->exit_tick, 4},
        {&v->sites[1].stack, 4},
        {&v->sites[1].space, 4},
        {&v->sites[1].series, 4},
        {&v->sites[1].last_tick, 4},
        {&v->modules[0].path, 4},
        {&v->codes[1].state, 4},
        {&v->codes[1].kind, 4},
        {&v->codes[1].file, 4},
        {&v->codes[1].name, 4},
        {&v->codes[2].kind, 4},
        {&v->frames[4], 8},
        {&v->frames[5], 8},
        {&h->python_state, 4},
        {&h->python_objects, 4},
        {&v->modules[0].build_id_bytes, 4},
        {&v->shards[0].live_first, 8},
        {&v->shards[0].flow_width_log2, 4},
        {&v->sites[5].device, 4},
        {&v->sites[6].device, 4},
        {&v->sites[1].device, 4},
        {&h->sections[SEEP_SECTION_DEVICES].entry_count, 4},
        {&v->devices[0].tick, 8},
        {&v->devices[50].tick, 8},
        {&v->devices[50].free_bytes, 8},
        {&v->devices[50].total_bytes, 8},
        {&v->devices[50].tensor_reserved_bytes, 8},
    };

    if (field >= FIELDS - MARK_FIELDS) {
        damage_mark(damage, field - (FIELDS - MARK_FIELDS), value);
        return;
    }
    if (field >= FIELDS - MARK_FIELDS - GROWTH_FIELDS) {
        damage_growth(damage, field - (FIELDS - MARK_FIELDS - GROWTH_FIELDS),
                      value);
        return;
    }
    memcpy(fields[field].at, &value, fields[field].bytes);
}

static uint64_t sum_of(const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        sum += at[i];
    }
    return sum;
}

static uint64_t sum_of_text(const char *text)
{
    return sum_of(text, strlen(text));
}

static uint64_t read_site(const struct seep_report_site *site)
{
    uint64_t sum =
        sum_of_text(site->id) + sum_of_text(site->class_reason) +
        sum_of_text(site->where) + sum_of_text(site->thread) +
        sum_of(site->series, site->point_count * sizeof(*site->series));

    if ((unsigned)site->space >= SEEP_SPACE_COUNT ||
        (unsigned)site->class >= SEEP_CLASS_COUNT ||
        (unsigned)site->cut >= SEEP_CUT_COUNT) {
        abort();
    }
    for (size_t i = 0; i < site->frame_count; i++) {
        const struct seep_report_frame *frame = site->frames[i];

        sum += sum_of_text(frame->function) + sum_of_text(frame->file) +
               sum_of_text(frame->module) + sum_of_text(frame->build_id);
    }
    return sum;
}

static void must_be_finite(const struct seep_report_extent *extent)
{
    if (!isfinite(extent->first_bytes) || !isfinite(extent->last_bytes) ||
        !isfinite(extent->slope_bytes_per_s) ||
        !isfinite(extent->slope_error)) {
        abort();
    }
}

static uint64_t read_device(const struct seep_report_device *device)
{
    if (device->ordinal >= SEEP_DEVICES_MAX ||
        device->free_bytes > device->total_bytes ||
        device->low_free_bytes > device->free_bytes) {
        abort();
    }
    must_be_finite(&device->used);
    must_be_finite(&device->tracked);
    must_be_finite(&device->unexplained);
    must_be_finite(&device->tensor_reserved);
    must_be_finite(&device->tensor_allocated);
    return sum_of(device, sizeof(*device)) + sum_of_text(device->forecast.what);
}

static void read_report(const struct seep_report *report)
{
    volatile uint64_t sum =
        sum_of_text(report->executable) + sum_of_text(report->labels) +
        sum_of_text(report->host) + sum_of_text(report->version) +
        sum_of_text(report->allocator) + sum_of_text(report->rejected) +
        sum_of_text(report->verdict.reason) +
        sum_of(report->spaces, report->space_count * sizeof(*report->spaces));

    for (size_t i = 0; i < report->argument_count; i++) {
        sum += sum_of_text(report->arguments[i]);
    }
    for (size_t i = 0; i < report->mark_count; i++) {
        if (!(report->marks[i].at_s >= 0)) {
            abort();
        }
        sum += sum_of_text(report->marks[i].name);
    }
    for (size_t i = 0; i < report->device_count; i++) {
        sum += read_device(&report->devices[i]);
    }
    for (size_t i = 0; i < report->site_count; i++) {
        sum += read_site(&report->sites[i]);
    }
    sum += sum_of_text(seep_python_state_words(report->python_state)) +
           sum_of_text(seep_python_objects_words(report->python_objects));
    for (size_t i = 0; i < report->counter_count; i++) {
        sum += sum_of_text(report->counters[i].name) +
               sum_of_text(report->counters[i].words);
    }
    (void)sum;
}

/* By the same bytes, a second reader; what it tells of them must be a number.
 */
static void read_vitals(int fd, size_t size_bytes)
{
    struct seep_refusal refusal = {.error = 0};
    struct seep_vitals vitals;

    if (seep_vitals_read(fd, size_bytes, false, &refusal, &vitals) != 0) {
        if (refusal.reason[0] == '\0' || refusal.error == 0) {
            abort();
        }
        return;
    }
    if (!isfinite(vitals.duration_s) || vitals.duration_s < 0 ||
        memchr(vitals.executable, '\0', sizeof(vitals.executable)) == NULL ||
        isnan(vitals.host_growth.bytes_per_s.estimate)) {
        abort();
    }
    for (size_t i = 0; i < SEEP_DEVICES_MAX; i++) {
        const struct seep_vitals_device *device = &vitals.devices[i];

        if (device->reported && (device->free_bytes > device->total_bytes ||
                                 isnan(device->reported_age_s))) {
            abort();
        }
    }
}

struct seep_report *
recording_damage_open(struct recording_damage *damage, size_t size_bytes,
                      bool sealed, const struct seep_report_options *options)
{
    struct seep_refusal refusal = {.error = 0};
    struct seep_report *report = NULL;
    size_t written = size_bytes < damage->builder.size_bytes
                         ? size_bytes
                         : damage->builder.size_bytes;
    char path[64];

    if (sealed) {
        builder_seal(&damage->builder);
    }
    if (ftruncate(damage->fd, 0) != 0 ||
        ftruncate(damage->fd, (off_t)size_bytes) != 0 ||
        pwrite(damage->fd, damage->builder.bytes, written, 0) !=
            (ssize_t)written) {
        abort();
    }
    read_vitals(damage->fd, size_bytes);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", damage->fd);
    if (seep_report_open(path, options, &refusal, &report) != 0 &&
        (refusal.reason[0] == '\0' || refusal.error == 0)) {
        abort();
    }
    return report;
}

void recording_damage_read(struct recording_damage *damage, size_t size_bytes,
                           bool sealed)
{
    const struct seep_report_options options = {
        .symbols = false,
        .by = (enum seep_grouping)(damage->by++ % SEEP_GROUPING_COUNT),
    };
    struct seep_report *report =
        recording_damage_open(damage, size_bytes, sealed, &options);

    if (report != NULL) {
        read_report(report);
        seep_report_close(report);
    }
}
