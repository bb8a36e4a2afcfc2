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
#include "reader/open.h"
#include "reader/vitals_parts.h"

#define TICK_MOST UINT64_C(0xffffffff)
#define AHEAD_TICKS 2048U /* the worker's clock is coarse; 2 s */
#define UNSEEN_SAMPLES 3U /* that live and were never sampled, at 95 % */

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

void seep_vitals_note(struct seep_vitals_when *when, uint64_t tick)
{
    if (tick > when->last_tick && tick <= when->now_tick + AHEAD_TICKS) {
        when->last_tick = tick;
    }
}

static void note_moments(struct seep_vitals_when *when,
                         const struct seep_view *view)
{
    uint32_t moments =
        view->header->sections[SEEP_SECTION_TIMELINE].entry_count;

    for (uint32_t i = 0; i < moments; i++) {
        seep_vitals_note(when, seep_word_load(&view->timeline[i].tick));
    }
    for (uint32_t i = 0; i < view->device_count * SEEP_BUCKET_COUNT; i++) {
        seep_vitals_note(when, seep_word_load(&view->devices[i].tick));
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
                            const struct seep_vitals_when *when)
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

static uint64_t bytes_of(double bytes)
{
    return bytes > 0 ? (uint64_t)bytes : 0;
}

static void add_totals(struct seep_vitals *vitals,
                       const struct seep_vitals_totals *totals)
{
    double host = 0;

    for (uint32_t i = 0; i < SEEP_SPACE_COUNT; i++) {
        vitals->live_bytes[i] = bytes_of(totals->live_bytes[i]);
        host += seep_vitals_is_on_host(i) ? totals->live_bytes[i] : 0;
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
    uint64_t end_tick = end_tick_of(copy->view.header, vitals->state, when);
    struct seep_vitals_series series;

    vitals->duration_s = seep_vitals_seconds((double)end_tick);
    seep_vitals_sum(copy, end_tick, &series);
    vitals->host_growth = seep_vitals_growth_of(
        &series, series.host,
        vitals->sample_bytes > 1 ? UNSEEN_SAMPLES * (double)vitals->sample_bytes
                                 : 0);
    seep_vitals_add_devices(copy, &series, when->now_tick, vitals);
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
    note_moments(when, &copy->view);
    vitals->age_s =
        when->now_tick > when->last_tick
            ? seep_vitals_seconds((double)(when->now_tick - when->last_tick))
            : 0;
    vitals->lost_events = lost_events(&copy->view);
    add_totals(vitals, &totals);
    add_growth(vitals, copy, when);
    seep_vitals_add_room(copy, presence, vitals);
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
    int error = seep_vitals_copy_init(fd, size_bytes, ret_refusal, &copy);

    if (error != 0) {
        return error;
    }
    presence = seep_process_look(copy.view.header, &vitals.stopped);
    add_process(&vitals, &copy, presence);
    if (!only_alive || seep_vitals_is_alive(vitals.state)) {
        error = seep_vitals_copy_fill(&copy);
        if (error == 0) {
            error = add_figures(&vitals, &copy, presence);
        }
        error = error == 0 ? 0 : seep_vitals_copy_refuse(ret_refusal, error);
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
