/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From words of the recording to figures that can be true; see series.h.
 *
 * Invariant: whatever a damaged file says, widths, buckets and ordinals are in
 * their bounds, and no live bytes are negative.
 */
#include "reader/recording/series.h"

#include <math.h>
#include <string.h>

#include "format/series.h"

#define ORDINAL_LIMIT 1024U /* no machine has so many devices */
#define FLOOR_BYTES (1024.0 * 1024.0)
#define FLOOR_SHARE 0.002 /* of the live bytes of the place */

bool seep_sites_space_holds(enum seep_space space)
{
    return space != SEEP_SPACE_REGISTERED && space != SEEP_SPACE_RESERVED &&
           space != SEEP_SPACE_IMPORTED && space != SEEP_SPACE_TENSOR &&
           space != SEEP_SPACE_FILE;
}

bool seep_sites_space_is_judged(enum seep_space space)
{
    return seep_sites_space_holds(space) || space == SEEP_SPACE_TENSOR ||
           space == SEEP_SPACE_FILE;
}

unsigned seep_sites_place_of(const struct seep_report_site *site)
{
    if (site->space == SEEP_SPACE_FILE) {
        return SEEP_PLACE_FILE;
    }
    if (site->space != SEEP_SPACE_DEVICE && site->space != SEEP_SPACE_TENSOR) {
        return SEEP_PLACE_HOST;
    }
    return site->device >= 0 && site->device < (int)SEEP_DEVICES_MAX
               ? SEEP_PLACE_DEVICE + (unsigned)site->device
               : SEEP_PLACE_OTHER;
}

double seep_sites_floor_bytes(uint64_t live_bytes)
{
    return fmax(FLOOR_BYTES, FLOOR_SHARE * (double)live_bytes);
}

int seep_sites_device_of(const struct seep_rec_site *site)
{
    bool has_none =
        site->space == SEEP_SPACE_HEAP || site->space == SEEP_SPACE_MAPPED ||
        site->space == SEEP_SPACE_PYTHON || site->space == SEEP_SPACE_FILE;

    return has_none || site->device == 0 || site->device > ORDINAL_LIMIT
               ? -1
               : (int)site->device - 1;
}

double seep_sites_seconds(double ticks)
{
    return ticks * (double)(UINT64_C(1) << SEEP_TICK_LOG2_NS) / 1e9;
}

double seep_sites_bucket_end_s(uint32_t i, uint32_t width_log2,
                               uint64_t end_tick)
{
    return seep_sites_seconds(
        fmin((double)((uint64_t)(i + 1) << width_log2), (double)end_tick));
}

bool seep_sites_is_used(struct seep_rec_site *site, uint32_t index)
{
    return (index == 0 || seep_word_load(&site->state) == SEEP_PUBLISHED) &&
           site->space < SEEP_SPACE_COUNT &&
           (seep_word_load(&site->event_count) != 0 ||
            seep_word_load(&site->allocated_bytes) != 0);
}

uint64_t seep_sites_last_sample(const struct seep_view *view, uint64_t most)
{
    uint32_t count = view->header->sections[SEEP_SECTION_TIMELINE].entry_count;
    uint64_t last = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t tick = seep_word_load(&view->timeline[i].tick);

        last = tick > last && tick <= most ? tick : last;
    }
    for (uint32_t i = 0; i < view->device_count * SEEP_BUCKET_COUNT; i++) {
        uint64_t tick = seep_word_load(&view->devices[i].tick);

        last = tick > last && tick <= most ? tick : last;
    }
    return last;
}

#define WIDTH_MAX 31U

/* Of a damaged file a sum may be negative. */
static uint64_t not_negative(uint64_t bytes)
{
    return (int64_t)bytes < 0 ? 0 : bytes;
}

/* A bucket of the recording into the one of the table that covers it. */
static void gather(struct seep_series_bucket *into,
                   struct seep_rec_bucket *from, bool has_low)
{
    uint64_t low = seep_word_load(&from->low_bytes);

    into->allocated_bytes += seep_word_load(&from->allocated_bytes);
    into->freed_bytes += seep_word_load(&from->freed_bytes);
    into->born_freed_bytes += seep_word_load(&from->born_freed_bytes);
    into->born_count_q16 += seep_word_load(&from->born_count_q16);
    into->born_freed_count_q16 += seep_word_load(&from->born_freed_count_q16);
    into->died_bytes += seep_word_load(&from->died_bytes);
    into->died_count_q16 += seep_word_load(&from->died_count_q16);
    if (has_low && low < into->low_bytes) {
        into->low_bytes = low;
    }
}

static void fill_live(struct seep_series_table *table, uint64_t base_bytes,
                      uint32_t site_first)
{
    uint64_t live = base_bytes;

    for (uint32_t i = 0; i < table->count; i++) {
        struct seep_series_bucket *bucket = &table->buckets[i];

        live += bucket->allocated_bytes - bucket->freed_bytes;
        bucket->live_bytes = i < site_first ? 0 : not_negative(live);
        /* Where nothing happened, a lower one is of an event that was
         * folded late: it was live already. */
        if (bucket->low_bytes > bucket->live_bytes ||
            (i > table->first && bucket->allocated_bytes == 0 &&
             bucket->freed_bytes == 0)) {
            bucket->low_bytes = bucket->live_bytes;
        }
    }
}

struct seep_series_grid seep_series_grid_of(uint64_t life_tick)
{
    return (struct seep_series_grid){life_tick,
                                     seep_series_width_for(life_tick)};
}

void seep_series_start_table(struct seep_series_grid grid,
                             struct seep_series_table *ret_table)
{
    memset(ret_table, 0, sizeof(*ret_table));
    ret_table->width_log2 = grid.width_log2;
    ret_table->count = (uint32_t)(grid.end_tick >> grid.width_log2) + 1;
    ret_table->first = ret_table->count - 1;
}

void seep_series_read(struct seep_rec_series *series, uint32_t site_first_tick,
                      struct seep_series_grid grid,
                      struct seep_series_table *ret_table)
{
    uint32_t width = seep_word_load(&series->width_log2) & WIDTH_MAX;
    uint32_t last = seep_word_load(&series->last) % SEEP_BUCKET_COUNT;
    uint32_t first_tick = seep_word_load(&series->first_tick);
    uint32_t shift = grid.width_log2 > width ? grid.width_log2 - width : 0;
    uint32_t end;

    memset(ret_table, 0, sizeof(*ret_table));
    ret_table->width_log2 = width + shift;
    end = (uint32_t)(grid.end_tick >> ret_table->width_log2);
    end = last >> shift > end ? last >> shift : end;
    ret_table->count = end + 1;
    ret_table->first = first_tick >> ret_table->width_log2;
    if (ret_table->first >= ret_table->count) {
        ret_table->first = ret_table->count - 1;
    }
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        ret_table->buckets[i].low_bytes = UINT64_MAX;
    }
    for (uint32_t i = 0; i <= last; i++) {
        gather(&ret_table->buckets[i >> shift], &series->buckets[i],
               i >= first_tick >> width);
    }
    fill_live(ret_table, seep_word_load(&series->base_bytes),
              site_first_tick >> ret_table->width_log2);
}
