/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The work clock: how much of the run's work was done by a tick, 0 to 1.
 *
 * Work is what the program told of it (seep_progress); without that the bytes
 * allocated by the whole process; without those, time itself, and then no
 * site is called a leak.
 */
#ifndef SEEP_READER_SITES_CLOCK_H
#define SEEP_READER_SITES_CLOCK_H

#include <stdint.h>

#include "format/view.h"

/** Ticks are 32 bits in a recording: 52 days. */
#define SEEP_SITES_TICK_MAX UINT64_C(0xffffffff)

enum seep_clock_kind {
    SEEP_CLOCK_UNITS,
    SEEP_CLOCK_BYTES,
    SEEP_CLOCK_WALL,
};

struct seep_clock {
    enum seep_clock_kind kind;
    uint64_t units;
    uint64_t end_tick;
    uint32_t width_log2;              /* ticks */
    uint32_t count;                   /* buckets up to the end of the run */
    double at[SEEP_BUCKET_COUNT + 1]; /* share done at each bucket's edge */
};

/** The narrowest width, as log2 of ticks, with @tick on a grid of 128. */
uint32_t seep_clock_width_for(uint64_t tick);

/** @param end_tick  at most SEEP_SITES_TICK_MAX */
void seep_clock_init(struct seep_clock *ret_clock, const struct seep_view *view,
                     uint64_t end_tick);

/** Share of the work done by @tick; 1 behind the end. */
double seep_clock_at(const struct seep_clock *clock, double tick);

/** The first tick by which @share of the work was done. */
double seep_clock_tick_at(const struct seep_clock *clock, double share);

/** Work done per time in the last fifth of the run, over that of all of it. */
double seep_clock_late_pace(const struct seep_clock *clock);

/** Units of work per second, in the last fifth where units are the clock. */
double seep_clock_units_per_s(const struct seep_clock *clock);

#endif
