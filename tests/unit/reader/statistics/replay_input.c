/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See replay_input.h. */
#include "replay_input.h"

#include <stdlib.h>
#include <string.h>

double *replay_numbers(const json_t *array)
{
    size_t count = json_array_size(array);
    double *values = calloc(count + 1, sizeof(*values));

    for (size_t i = 0; values != NULL && i < count; i++) {
        values[i] = json_number_value(json_array_get(array, i));
    }
    return values;
}

bool replay_read_survivors(const json_t *site,
                           struct seep_survivor **ret_survivors,
                           size_t *ret_count)
{
    const json_t *births = json_object_get(site, "birth");
    const json_t *weights = json_object_get(site, "weight");
    const json_t *variances = json_object_get(site, "variance");
    size_t count = json_array_size(births);
    struct seep_survivor *survivors = calloc(count + 1, sizeof(*survivors));

    *ret_survivors = survivors;
    *ret_count = count;
    if (survivors == NULL || !json_is_array(births) ||
        json_array_size(weights) != count ||
        (variances != NULL && json_array_size(variances) != count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        survivors[i] = (struct seep_survivor){
            .birth = json_number_value(json_array_get(births, i)),
            .weight = json_number_value(json_array_get(weights, i)),
            .variance = json_number_value(json_array_get(variances, i)),
        };
    }
    return true;
}

static bool read_series(const json_t *json, struct replay_site *site)
{
    static const char *const names[] = {"bucket_end", "live", "low"};
    size_t count = json_array_size(json_object_get(json, names[0]));

    for (size_t i = 0; i < 3; i++) {
        const json_t *array = json_object_get(json, names[i]);
        if (!json_is_array(array) || json_array_size(array) != count) {
            return false;
        }
        site->series[i] = replay_numbers(array);
    }
    site->series[3] = calloc(count + 1, sizeof(double));
    for (size_t i = 0; i < 4; i++) {
        if (site->series[i] == NULL) {
            return false;
        }
    }
    if (count > 0) { /* only the last is looked at */
        site->series[3][count - 1] =
            json_number_value(json_object_get(json, "allocations"));
    }
    site->input.bucket_end = site->series[0];
    site->input.live_bytes = site->series[1];
    site->input.low_bytes = site->series[2];
    site->input.allocations = site->series[3];
    site->input.bucket_count = count;
    return true;
}

bool replay_read_site(const json_t *site, struct replay_site *ret_site)
{
    struct seep_growth_input *input = &ret_site->input;

    memset(ret_site, 0, sizeof(*ret_site));
    input->died_old = json_number_value(json_object_get(site, "died_old"));
    input->live_old = json_number_value(json_object_get(site, "live_old"));
    input->live_count = json_number_value(json_object_get(site, "live_count"));
    if (!replay_read_survivors(site, &ret_site->survivors,
                               &input->survivor_count)) {
        return false;
    }
    input->survivors = ret_site->survivors;
    return read_series(site, ret_site);
}

void replay_site_fini(struct replay_site *site)
{
    free(site->survivors);
    for (size_t i = 0; i < 4; i++) {
        free(site->series[i]);
    }
}

static uint64_t whole(const json_t *array, size_t i)
{
    double value = json_number_value(json_array_get(array, i));

    return value >= 0 && value < 0x1p63 ? (uint64_t)value : 0;
}

/* A moment at the end of each bucket, as a worker takes them. */
static void fill_units(const json_t *units, uint64_t end_tick, uint32_t width,
                       struct seep_view *view)
{
    uint64_t told = 0;

    for (size_t i = 0; i < json_array_size(units); i++) {
        uint64_t tick = (uint64_t)(i + 1) << width;

        told += whole(units, i);
        view->timeline[i].tick = tick < end_tick ? tick : end_tick;
        view->timeline[i].progress_units = told;
    }
    view->header->progress_units = told;
}

bool replay_read_clock(const json_t *clock, struct seep_clock *ret_clock)
{
    static struct seep_rec_header header;
    static struct seep_rec_moment timeline[SEEP_BUCKET_COUNT];
    static struct seep_rec_shard shard;
    struct seep_view view = {
        .header = &header,
        .timeline = timeline,
        .shards = &shard,
        .shard_count = 1,
    };
    double end = json_number_value(json_object_get(clock, "end_tick"));
    const json_t *units = json_object_get(clock, "units");
    const json_t *bytes = json_object_get(clock, "bytes");
    uint64_t end_tick = (uint64_t)end;

    if (!(end >= 1 && end <= (double)SEEP_SITES_TICK_MAX) ||
        json_array_size(units) > SEEP_BUCKET_COUNT ||
        json_array_size(bytes) > SEEP_BUCKET_COUNT) {
        return false;
    }
    memset(&header, 0, sizeof(header));
    memset(timeline, 0, sizeof(timeline));
    memset(&shard, 0, sizeof(shard));
    header.sections[SEEP_SECTION_TIMELINE].entry_count = SEEP_BUCKET_COUNT;
    shard.flow_width_log2 = seep_series_width_for(end_tick);
    fill_units(units, end_tick, shard.flow_width_log2, &view);
    for (size_t i = 0; i < json_array_size(bytes); i++) {
        shard.flow[i].allocated_bytes = whole(bytes, i);
    }
    seep_clock_init(ret_clock, &view, seep_series_grid_of(end_tick));
    return true;
}

const char *replay_clock_name(const struct seep_clock *clock)
{
    return clock->kind == SEEP_CLOCK_UNITS   ? "units"
           : clock->kind == SEEP_CLOCK_BYTES ? "bytes"
                                             : "wall";
}

void replay_apply_clock(const struct seep_clock *clock,
                        struct replay_site *site)
{
    for (size_t i = 0; i < site->input.survivor_count; i++) {
        site->survivors[i].birth =
            seep_clock_at(clock, site->survivors[i].birth);
    }
    for (size_t i = 0; i < site->input.bucket_count; i++) {
        site->series[0][i] = seep_clock_at(clock, site->series[0][i]);
    }
}
