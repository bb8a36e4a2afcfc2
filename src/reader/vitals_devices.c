/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the GPUs have left; see vitals_parts.h.
 *
 * The driver is asked as memory is taken, every tenth of a second at most, and
 * not as it is given back. What calls of the process hold is known at any
 * time: what they took and gave back since then is counted.
 *
 * Invariant: free is never more than total.
 */
#include <math.h>

#include "base/word.h"
#include "reader/vitals_parts.h"

static struct seep_rec_device *last_of(struct seep_rec_device *moments,
                                       uint64_t now_tick)
{
    struct seep_rec_device *last = NULL;

    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        uint64_t tick = seep_word_load(&moments[i].tick);

        if (tick != 0 && tick <= now_tick &&
            seep_word_load(&moments[i].total_bytes) != 0 &&
            (last == NULL || tick >= seep_word_load(&last->tick))) {
            last = &moments[i];
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

    device->told = true;
    device->total_bytes = seep_word_load(&last->total_bytes);
    device->free_bytes = (uint64_t)fmax(0, fmin(left, total));
    device->told_age_s =
        seep_vitals_seconds((double)(now_tick - seep_word_load(&last->tick)));
}

void seep_vitals_add_devices(const struct seep_vitals_copy *copy,
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
