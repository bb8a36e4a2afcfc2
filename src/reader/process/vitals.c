/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recorded process in a few figures.
 *
 * Invariant: a time that lies ahead of the clock is of a damaged file and does
 * not count, so that nothing looks fresh for ever.
 */
#include "reader/process/vitals.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/word.h"
#include "format/series.h"
#include "reader/process/cgroup.h"
#include "reader/process/vitals_copy.h"
#include "reader/recording/open.h"
#include "reader/recording/pack.h"
#include "reader/recording/series.h"

/*
 * The part of a recording that vitals are made of.
 *
 * Invariant: what is looked at was read once, into memory of our own, and its
 * header checked there: nobody can change it between a check and a use.
 */

static void copy_fini(struct seep_vitals_copy *copy)
{
    munmap(copy->bytes, copy->mapped_bytes);
    free(copy->others);
}

/* Up to @bytes of a section from @at on. */
static int copy_bytes(const struct seep_vitals_copy *copy,
                      enum seep_section which, uint64_t at, uint64_t bytes)
{
    const struct seep_rec_section *section =
        &copy->view.header->sections[which];
    uint64_t offset = section->offset_bytes + at;

    if (at >= section->bytes) {
        return 0;
    }
    if (bytes > section->bytes - at) {
        bytes = section->bytes - at;
    }
    return seep_snapshot_read(copy->fd, (char *)copy->bytes + offset, offset,
                              bytes);
}

/* Its header, checked, and the name of the program. */
static int copy_init(int fd, uint64_t size_bytes,
                     struct seep_refusal *ret_refusal,
                     struct seep_vitals_copy *ret_copy)
{
    struct seep_vitals_copy copy = {.fd = fd};
    int error = seep_open_copy(fd, size_bytes, ret_refusal, &copy.bytes,
                               &copy.mapped_bytes);

    if (error != 0) {
        return error;
    }
    seep_view_init(&copy.view, copy.bytes);
    /* Of STRINGS nothing but the name of the program. */
    error = copy_bytes(&copy, SEEP_SECTION_STRINGS,
                       copy.view.header->executable, SEEP_VITALS_NAME_BYTES);
    if (error != 0) {
        copy_fini(&copy);
        return seep_open_refuse_read(ret_refusal, error);
    }
    *ret_copy = copy;
    return 0;
}

/* All the rest but sites and series. */
static int copy_fill(struct seep_vitals_copy *copy)
{
    static const enum seep_section wanted[] = {
        SEEP_SECTION_TIMELINE,
        SEEP_SECTION_DEVICES,
        SEEP_SECTION_COUNTERS,
        SEEP_SECTION_SHARDS,
    };
    int error = 0;

    for (size_t i = 0; error == 0 && i < sizeof(wanted) / sizeof(wanted[0]);
         i++) {
        error = copy_bytes(copy, wanted[i], 0, UINT64_MAX);
    }
    return error;
}

int seep_vitals_copy_entries(const struct seep_vitals_copy *copy,
                             enum seep_section which, uint64_t first,
                             uint64_t count, void *to)
{
    const struct seep_rec_section *section =
        &copy->view.header->sections[which];

    return seep_snapshot_read(
        copy->fd, to, section->offset_bytes + first * section->entry_bytes,
        count * section->entry_bytes);
}

static bool read_entry(const struct seep_vitals_copy *copy,
                       enum seep_section which, uint32_t index, void *to)
{
    return index < copy->view.header->sections[which].entry_count &&
           seep_vitals_copy_entries(copy, which, index, 1, to) == 0;
}

bool seep_vitals_copy_series(const struct seep_vitals_copy *copy,
                             uint32_t number,
                             struct seep_rec_series *ret_series)
{
    uint32_t brief_number = number & ~SEEP_SERIES_IS_BRIEF;
    struct seep_rec_brief brief;

    if (brief_number == 0) {
        return false;
    }
    if (brief_number == number) {
        return read_entry(copy, SEEP_SECTION_SERIES, number - 1,
                          (void *)ret_series);
    }
    if (!read_entry(copy, SEEP_SECTION_BRIEFS, brief_number - 1,
                    (void *)&brief)) {
        return false;
    }
    memset((void *)ret_series, 0, sizeof(*ret_series));
    seep_brief_expand(&brief, ret_series);
    return true;
}

/*
 * What a process has left. Invariant: what belongs to
 * another machine or another control group is never taken for its own.
 */

#define CGROUP_ROOT "/sys/fs/cgroup"
#define TEXT_BYTES 8192

static void offer(struct seep_vitals_room *room,
                  enum seep_vitals_room_kind kind, uint64_t left_bytes,
                  uint64_t limit_bytes, bool recorded)
{
    if (limit_bytes != 0 &&
        (room->kind == SEEP_ROOM_UNKNOWN || left_bytes < room->left_bytes)) {
        *room =
            (struct seep_vitals_room){kind, left_bytes, limit_bytes, recorded};
    }
}

static void offer_cgroup(uint32_t pid, struct seep_vitals_room *room)
{
    char text[TEXT_BYTES];
    uint64_t left;
    uint64_t limit;

    if (seep_proc_text_of((pid_t)pid, "cgroup", text, sizeof(text)) > 0) {
        seep_cgroup_room(text, CGROUP_ROOT, &left, &limit);
        offer(room, SEEP_ROOM_CGROUP, left, limit, false);
    }
}

static void offer_machine(struct seep_vitals_room *room)
{
    char text[TEXT_BYTES];
    uint64_t available;
    uint64_t total;

    if (seep_proc_text("/proc/meminfo", text, sizeof(text)) > 0 &&
        seep_proc_find_bytes(text, "\nMemAvailable:", &available) &&
        seep_proc_find_bytes(text, "MemTotal:", &total)) {
        offer(room, SEEP_ROOM_MACHINE, available, total, false);
    }
}

/* The last that it was told of its group. */
static void offer_recorded(const struct seep_view *view,
                           struct seep_vitals_room *room)
{
    uint32_t capacity =
        view->header->sections[SEEP_SECTION_TIMELINE].entry_count;
    const struct seep_rec_moment *last = NULL;

    for (uint32_t i = 0; i < capacity; i++) {
        const struct seep_rec_moment *sample = &view->timeline[i];

        if (seep_word_load(&sample->cgroup_bytes) != 0 &&
            (last == NULL ||
             seep_word_load(&sample->tick) >= seep_word_load(&last->tick))) {
            last = sample;
        }
    }
    if (last != NULL) {
        uint64_t bytes = seep_word_load(&last->cgroup_bytes);
        uint64_t limit = seep_word_load(&last->cgroup_limit_bytes);

        offer(room, SEEP_ROOM_CGROUP, limit > bytes ? limit - bytes : 0, limit,
              true);
    }
}

/* What is left to it on this machine now, else what it knew itself. */
static void vitals_add_room(const struct seep_vitals_copy *copy,
                            enum seep_process_presence presence,
                            struct seep_vitals *vitals)
{
    if (presence == SEEP_PRESENCE_HERE) {
        offer_cgroup(vitals->pid, &vitals->room);
    } else {
        offer_recorded(&copy->view, &vitals->room);
    }
    if (seep_process_boot_of(copy->view.header) > 0) {
        offer_machine(&vitals->room);
    }
}

/*
 * What the GPUs have left.
 *
 * The driver is asked as memory is taken, every tenth of a second at most, and
 * not as it is given back. What calls of the process hold is known at any
 * time: what they took and gave back since then is counted.
 *
 * Invariant: free is never more than total.
 */

static struct seep_rec_device *last_of(struct seep_rec_device *samples,
                                       uint64_t now_tick)
{
    struct seep_rec_device *last = NULL;

    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        uint64_t tick = seep_word_load(&samples[i].tick);

        if (tick != 0 && tick <= now_tick &&
            seep_word_load(&samples[i].total_bytes) != 0 &&
            (last == NULL || tick >= seep_word_load(&last->tick))) {
            last = &samples[i];
        }
    }
    return last;
}

/* What calls of the process held when the driver was asked: as they said, else
 * by the end of that bucket. Of events that were lost one of the two may not
 * know: then the smaller counts. */
static double held_then(const struct seep_vitals_series *series,
                        uint32_t ordinal, const struct seep_rec_device *last,
                        bool lost)
{
    uint64_t bucket = seep_word_load(&last->tick) >> series->width_log2;
    double said = (double)seep_word_load(&last->held_bytes);
    double later =
        series->devices[ordinal]
                       [bucket < series->count ? bucket : series->count - 1];

    if (!(said > 0)) {
        return later;
    }
    return lost ? fmin(said, later) : said;
}

static void add_device(const struct seep_vitals_series *series,
                       uint32_t ordinal, const struct seep_rec_device *last,
                       uint64_t now_tick, struct seep_vitals *vitals)
{
    struct seep_vitals_device *device = &vitals->devices[ordinal];
    double total = (double)seep_word_load(&last->total_bytes);
    double left = (double)seep_word_load(&last->free_bytes) +
                  held_then(series, ordinal, last, vitals->lost_events > 0) -
                  (double)device->live_bytes;

    device->reported = true;
    device->total_bytes = seep_word_load(&last->total_bytes);
    device->free_bytes = (uint64_t)fmax(0, fmin(left, total));
    device->reported_age_s =
        seep_sites_seconds((double)(now_tick - seep_word_load(&last->tick)));
}

/* Figures of the devices, from their timeline and what is held now. */
static void vitals_add_devices(const struct seep_vitals_copy *copy,
                               const struct seep_vitals_series *series,
                               uint64_t now_tick, struct seep_vitals *vitals)
{
    const struct seep_view *view = &copy->view;

    for (uint32_t i = 0; i < SEEP_DEVICES_MAX; i++) {
        struct seep_vitals_device *device = &vitals->devices[i];
        struct seep_rec_device *last =
            i < view->device_count
                ? last_of(&view->devices[(size_t)i * SEEP_BUCKET_COUNT],
                          now_tick)
                : NULL;

        device->growth = seep_vitals_growth_of(series, series->devices[i], 0);
        if (last != NULL) {
            add_device(series, i, last, now_tick, vitals);
        }
    }
}

#define AHEAD_TICKS 2048U /* the target process's clock is coarse; 2 s */
#define UNSEEN_SAMPLES 3U /* that live and were never sampled, at 95 % */

/* Of another boot, or another machine, the wall clock is all there is. */
static uint64_t now_tick_of(const struct seep_rec_header *header)
{
    uint64_t now_ns = seep_clock_ns(CLOCK_REALTIME);
    uint64_t tick;

    if (seep_process_boot_of(header) > 0) {
        tick = seep_process_now_tick(header);
    } else {
        tick = now_ns > header->start_realtime_ns
                   ? (now_ns - header->start_realtime_ns) >> SEEP_TICK_LOG2_NS
                   : 0;
    }
    return tick < SEEP_SITES_TICK_MAX ? tick : SEEP_SITES_TICK_MAX;
}

void seep_vitals_note(struct seep_vitals_when *when, uint64_t tick)
{
    if (tick > when->last_tick && tick <= when->now_tick + AHEAD_TICKS) {
        when->last_tick = tick;
    }
}

static uint64_t lost_events(const struct seep_view *view)
{
    static const enum seep_counter lost[] = {
        SEEP_COUNT_DROPPED_ALLOCS, SEEP_COUNT_DROPPED_FREES,
        SEEP_COUNT_NESTED,         SEEP_COUNT_TORN,
        SEEP_COUNT_LIVE_FULL,      SEEP_COUNT_RESTORE_LOST,
        SEEP_COUNT_START_MISSED,   SEEP_COUNT_CUDA_FULL,
        SEEP_COUNT_CUDA_BUSY,      SEEP_COUNT_CUDA_SATURATED,
        SEEP_COUNT_CUDA_NEST_FULL, SEEP_COUNT_RANGES_FULL,
    };
    uint64_t sum = 0;

    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
        sum += seep_word_load(&view->counters[lost[i]]);
    }
    return sum;
}

static void add_process(struct seep_vitals *vitals,
                        const struct seep_vitals_copy *copy,
                        enum seep_process_presence presence)
{
    struct seep_rec_header *header = copy->view.header;

    vitals->pid = header->pid;
    vitals->state = seep_process_state_of(header, presence);
    vitals->inert = header->inert < SEEP_INERT_COUNT
                        ? (enum seep_inert_reason)header->inert
                        : SEEP_INERT_NONE;
    vitals->start_realtime_ns = header->start_realtime_ns;
    vitals->sample_bytes = UINT64_C(1)
                           << (seep_word_load(&header->sample_log2) & 63);
    if (header->executable < copy->view.string_bytes) {
        size_t bytes = copy->view.string_bytes - header->executable;

        bytes = bytes < sizeof(vitals->executable) ? bytes
                                                   : sizeof(vitals->executable);
        snprintf(vitals->executable, bytes, "%.*s", (int)bytes - 1,
                 copy->view.strings + header->executable);
    }
}

/* Of a damaged recording a sum may be more than a word has. */
static uint64_t bytes_of(double bytes)
{
    if (!(bytes > 0)) {
        return 0;
    }
    return bytes < 0x1p64 ? (uint64_t)bytes : UINT64_MAX;
}

static void add_totals(struct seep_vitals *vitals,
                       const struct seep_vitals_totals *totals)
{
    double host = 0;

    for (uint32_t i = 0; i < SEEP_SPACE_COUNT; i++) {
        vitals->live_bytes[i] = bytes_of(totals->live_bytes[i]);
        host += seep_view_is_on_host(i) ? totals->live_bytes[i] : 0;
    }
    vitals->host_bytes = bytes_of(host);
    for (uint32_t i = 0; i < SEEP_DEVICES_MAX; i++) {
        vitals->devices[i].live_bytes = bytes_of(totals->device_bytes[i]);
    }
}

static void add_growth(struct seep_vitals *vitals,
                       const struct seep_vitals_copy *copy,
                       const struct seep_vitals_when *when)
{
    uint64_t end_tick = seep_process_end_tick(copy->view.header, vitals->state,
                                              when->now_tick, when->last_tick);
    struct seep_vitals_series series;

    vitals->duration_s = seep_sites_seconds((double)end_tick);
    seep_vitals_sum(copy, end_tick, &series);
    vitals->host_growth = seep_vitals_growth_of(
        &series, series.host,
        vitals->sample_bytes > 1 ? UNSEEN_SAMPLES * (double)vitals->sample_bytes
                                 : 0);
    vitals->private_growth = seep_vitals_private_growth(copy, end_tick);
    vitals_add_devices(copy, &series, when->now_tick, vitals);
}

static int add_figures(struct seep_vitals *vitals,
                       struct seep_vitals_copy *copy,
                       enum seep_process_presence presence)
{
    struct seep_vitals_totals totals = {.when.now_tick =
                                            now_tick_of(copy->view.header)};
    struct seep_vitals_when *when = &totals.when;
    int error = seep_vitals_fold_pending(copy);

    if (error == 0) {
        error = seep_vitals_add_sites(copy, &totals);
    }
    if (error != 0) {
        return error;
    }
    seep_vitals_note(when, seep_sites_last_sample(
                               &copy->view, when->now_tick + AHEAD_TICKS));
    vitals->age_s =
        when->now_tick > when->last_tick
            ? seep_sites_seconds((double)(when->now_tick - when->last_tick))
            : 0;
    vitals->lost_events = lost_events(&copy->view);
    vitals->room_refused =
        seep_word_load(&copy->view.counters[SEEP_COUNT_ROOM_REFUSED]);
    add_totals(vitals, &totals);
    add_growth(vitals, copy, when);
    vitals_add_room(copy, presence, vitals);
    return 0;
}

bool seep_vitals_is_alive(enum seep_process_state state)
{
    return state == SEEP_STATE_RUNNING || state == SEEP_STATE_UNKNOWN;
}

int seep_vitals_read(int fd, uint64_t size_bytes, bool only_alive,
                     struct seep_refusal *ret_refusal,
                     struct seep_vitals *ret_vitals)
{
    struct seep_vitals vitals = {.stopped = false};
    struct seep_vitals_copy copy;
    enum seep_process_presence presence;
    int error = copy_init(fd, size_bytes, ret_refusal, &copy);

    if (error != 0) {
        return error;
    }
    presence = seep_process_presence_of(copy.view.header, &vitals.stopped);
    add_process(&vitals, &copy, presence);
    if (!only_alive || seep_vitals_is_alive(vitals.state)) {
        error = copy_fill(&copy);
        if (error == 0) {
            error = add_figures(&vitals, &copy, presence);
        }
        error = error == 0 ? 0 : seep_open_refuse_read(ret_refusal, error);
    }
    copy_fini(&copy);
    if (error == 0) {
        *ret_vitals = vitals;
    }
    return error;
}

int seep_vitals_open(const char *path, bool only_alive,
                     struct seep_refusal *ret_refusal,
                     struct seep_vitals *ret_vitals)
{
    struct seep_pack *pack = NULL;
    uint64_t size_bytes;
    int fd;
    int error = seep_open_file(path, ret_refusal, &fd, &size_bytes);
    bool is_pack =
        error == 0
            ? seep_pack_begins(fd)
            : error == -ENOTDIR && seep_pack_open(path, NULL, &pack, NULL) == 0;

    if (is_pack) {
        if (error == 0) {
            close(fd);
        }
        seep_pack_close(pack);
        return seep_open_refuse(
            ret_refusal, -ENOTSUP, "is a pack, of which no process lives on",
            "give the recording of a process that runs, or its folder");
    }
    if (error == 0) {
        error = seep_vitals_read(fd, size_bytes, only_alive, ret_refusal,
                                 ret_vitals);
        close(fd);
    }
    return error;
}
