/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recorded process in a few figures; see vitals.h.
 *
 * Invariant: a time that lies ahead of the clock is of a damaged file and does
 * not count, so that nothing looks fresh for ever.
 */
#include "reader/vitals.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/word.h"
#include "format/account.h"
#include "reader/open.h"
#include "reader/vitals_parts.h"

#define TICK_MOST UINT64_C(0xffffffff)
#define AHEAD_TICKS 2048U /* the worker's clock is coarse; 2 s */
#define UNSEEN_SAMPLES 3U /* that live and were never sampled, at 95 % */

struct when {
    uint64_t now_tick;  /* by the clock that both have; TICK_MOST: by none */
    uint64_t last_tick; /* of anything that was written */
};

static uint32_t load32(const _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

/* Of another boot, or another machine, the wall clock is all there is. */
static uint64_t now_tick_of(const struct seep_rec_header *header)
{
    uint64_t now_ns = seep_clock_ns(CLOCK_REALTIME);
    uint64_t tick;

    if (seep_process_is_our_boot(header)) {
        tick = seep_process_now_tick(header);
    } else {
        tick = now_ns > header->start_realtime_ns
                   ? (now_ns - header->start_realtime_ns) >> SEEP_TICK_LOG2_NS
                   : 0;
    }
    return tick < TICK_MOST ? tick : TICK_MOST;
}

static void note(struct when *when, uint64_t tick)
{
    if (tick > when->last_tick && tick <= when->now_tick + AHEAD_TICKS) {
        when->last_tick = tick;
    }
}

static void note_moments(struct when *when, const struct seep_view *view)
{
    uint32_t moments =
        view->header->sections[SEEP_SECTION_TIMELINE].entry_count;

    for (uint32_t i = 0; i < moments; i++) {
        note(when, seep_word_load(&view->timeline[i].tick));
    }
    for (uint32_t i = 0; i < view->device_count * SEEP_BUCKET_COUNT; i++) {
        note(when, seep_word_load(&view->devices[i].tick));
    }
}

static void add_site(struct seep_vitals *vitals, struct when *when,
                     const struct seep_rec_site *site)
{
    uint64_t live = seep_account_live_bytes(site);
    int device = seep_vitals_device_of(site);

    if (site->space >= SEEP_SPACE_COUNT) {
        return;
    }
    vitals->live_bytes[site->space] += live;
    if (seep_vitals_is_on_host(site->space)) {
        vitals->host_bytes += live;
    }
    if (device >= 0) {
        vitals->devices[device].live_bytes += live;
    }
    note(when, load32(&site->last_tick));
}

/* Entry 0 is no call site, and counts when anything happened at it. */
static void add_sites(struct seep_vitals *vitals, struct when *when,
                      const struct seep_view *view)
{
    for (uint32_t i = 0; i < view->site_capacity; i++) {
        const struct seep_rec_site *site = &view->sites[i];

        if (i == 0 ? seep_word_load(&site->event_count) != 0
                   : load32(&site->state) == SEEP_PUBLISHED) {
            add_site(vitals, when, site);
        }
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
        SEEP_COUNT_CUDA_NEST_FULL,
    };
    uint64_t sum = 0;

    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
        sum += seep_word_load(&view->counters[lost[i]]);
    }
    return sum;
}

static uint64_t end_tick_of(const struct seep_rec_header *header,
                            enum seep_process_state state,
                            const struct when *when)
{
    uint64_t end = 0;

    if (load32(&header->exited) != 0) {
        end = load32(&header->exit_tick);
    } else if (state == SEEP_STATE_RUNNING) {
        end = when->now_tick;
    }
    end = end > when->last_tick ? end : when->last_tick;
    return end < TICK_MOST ? end : TICK_MOST;
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
    vitals->sample_bytes = UINT64_C(1) << (load32(&header->sample_log2) & 63);
    vitals->units = seep_word_load(&header->progress_units);
    if (header->executable < copy->view.string_bytes) {
        size_t bytes = copy->view.string_bytes - header->executable;

        bytes = bytes < sizeof(vitals->executable) ? bytes
                                                   : sizeof(vitals->executable);
        memcpy(vitals->executable, copy->view.strings + header->executable,
               bytes);
        vitals->executable[bytes - 1] = '\0';
    }
}

static void add_figures(struct seep_vitals *vitals,
                        const struct seep_vitals_copy *copy,
                        enum seep_process_presence presence)
{
    struct when when = {.now_tick = now_tick_of(copy->view.header)};
    struct seep_vitals_series series;
    uint64_t end_tick;

    vitals->lost_events = lost_events(&copy->view);
    note_moments(&when, &copy->view);
    add_sites(vitals, &when, &copy->view);
    end_tick = end_tick_of(copy->view.header, vitals->state, &when);
    vitals->duration_s = seep_vitals_seconds((double)end_tick);
    vitals->age_s =
        when.now_tick > when.last_tick
            ? seep_vitals_seconds((double)(when.now_tick - when.last_tick))
            : 0;
    seep_vitals_sum(copy, end_tick, &series);
    vitals->host_growth = seep_vitals_growth_of(
        &series, series.host,
        vitals->sample_bytes > 1 ? UNSEEN_SAMPLES * (double)vitals->sample_bytes
                                 : 0);
    seep_vitals_add_devices(copy, &series, when.now_tick, vitals);
    seep_vitals_add_room(copy, presence, vitals);
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
    int error = seep_vitals_copy_init(fd, size_bytes, ret_refusal, &copy);

    if (error != 0) {
        return error;
    }
    presence = seep_process_look(copy.view.header, &vitals.stopped);
    add_process(&vitals, &copy, presence);
    if (!only_alive || seep_vitals_is_alive(vitals.state)) {
        error = seep_vitals_copy_fill(&copy, ret_refusal);
        if (error == 0) {
            add_figures(&vitals, &copy, presence);
        }
    }
    seep_vitals_copy_fini(&copy);
    if (error == 0) {
        *ret_vitals = vitals;
    }
    return error;
}

int seep_vitals_open(const char *path, bool only_alive,
                     struct seep_refusal *ret_refusal,
                     struct seep_vitals *ret_vitals)
{
    uint64_t size_bytes;
    int fd;
    int error = seep_open_file(path, ret_refusal, &fd, &size_bytes);

    if (error == 0) {
        error = seep_vitals_read(fd, size_bytes, only_alive, ret_refusal,
                                 ret_vitals);
        close(fd);
    }
    return error;
}
