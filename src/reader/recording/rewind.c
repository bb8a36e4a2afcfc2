/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where memory collapsed, the moment before it, and all that is not of a site.
 * The table of live blocks comes first, the search for the moment after it.
 *
 * Invariant: nothing is changed before the moment is found and the memory that
 * it takes is there.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/account.h"
#include "format/live.h"
#include "format/series.h"
#include "format/view.h"
#include "reader/recording/rewind.h"
#include "reader/recording/series.h"

/* A run that ends before is not judged: what it freed does not matter. */
#define SEEP_REWIND_LEAST_S 30.0

/*
 * The live table as it was.
 *
 * Invariant: it is read from its first to its last entry from here on, not
 * looked up in: entries lie where there is room.
 */

/* Not an address, and not one of the driver's keys. Blocks that are put back
 * lie side by side, as in a heap without gaps. */
#define GHOST_BASE (UINT64_C(0x5e) << 56)
#define GHOST_STEP 16U

static void note_young(struct seep_rewind *rewind,
                       const struct seep_block *block)
{
    const struct seep_view *view = &rewind->snapshot->view;
    struct seep_rewind_young *young = &rewind->young[block->site];
    struct seep_rec_series *series = seep_rewind_series_of(view, block->site);
    struct seep_weight weight = seep_account_weight(block);
    uint32_t width;

    young->bytes += weight.bytes;
    young->count_q16 += weight.count_q16;
    if (series != NULL) {
        width = seep_word_load(&series->width_log2) & 31;
        if (block->birth_tick >> width == rewind->moment >> width) {
            young->beside_bytes += weight.bytes;
        }
    }
}

/* Who was born since the moment is not in LIVE. */
static void rewind_drop_young(struct seep_rewind *rewind)
{
    const struct seep_view *view = &rewind->snapshot->view;

    for (uint32_t i = 0; i < view->live_capacity; i++) {
        struct seep_block block = seep_live_read(&view->live[i]);

        if (block.address == 0 || block.birth_tick < rewind->moment) {
            continue;
        }
        if (block.site < view->site_capacity) {
            note_young(rewind, &block);
        }
        seep_word_store(&view->live[i].address, 0);
    }
    rewind->free_slot = 0;
    rewind->ghost_address = GHOST_BASE;
}

/* Twice as many, of which none is used. NULL: no memory. */
static struct seep_rec_live *add_slot(struct seep_rewind *rewind)
{
    struct seep_view *view = &rewind->snapshot->view;
    size_t count = view->live_capacity;
    struct seep_rec_live *live =
        reallocarray(rewind->snapshot->live, 2 * count + 1, sizeof(*live));

    if (live == NULL) {
        return NULL;
    }
    memset((void *)&live[count], 0, (count + 1) * sizeof(*live));
    rewind->snapshot->live = live;
    view->live = live;
    view->live_capacity = (uint32_t)(2 * count + 1);
    rewind->free_slot = (uint32_t)count + 1;
    return &live[count];
}

/* NULL: there are as many as may be, as there may be in a damaged recording. */
static struct seep_rec_live *take_slot(struct seep_rewind *rewind)
{
    struct seep_view *view = &rewind->snapshot->view;
    const struct seep_rec_section *section =
        &view->header->sections[SEEP_SECTION_LIVE];

    while (rewind->free_slot < view->live_capacity) {
        struct seep_rec_live *live = &view->live[rewind->free_slot++];

        if (seep_word_load(&live->address) == 0) {
            return live;
        }
    }
    return view->live_capacity < section->entry_count ? add_slot(rewind) : NULL;
}

/* What was seen is sampled in the spaces of the allocators alone. */
static unsigned level_of(const struct seep_rewind *rewind, uint32_t site)
{
    const struct seep_view *view = &rewind->snapshot->view;
    uint32_t space = view->sites[site].space;

    return seep_view_is_sampled(space)
               ? seep_word_load(&view->header->sample_log2) & 63
               : 0;
}

/* The mark of pages for blocks that are put back, as the site's were when the
 * process last looked at them; 0: it is not known. */
static uint64_t touched_of(const struct seep_rewind *rewind, uint32_t site,
                           uint64_t size_bytes)
{
    const struct seep_view *view = &rewind->snapshot->view;
    struct seep_rec_series *series = seep_rewind_series_of(view, site);
    double looked =
        series == NULL ? 0 : (double)seep_word_load(&series->looked_bytes);

    if (!(looked > 0) || (view->sites[site].space != SEEP_SPACE_MAPPED &&
                          size_bytes < SEEP_TOUCHED_LEAST_BYTES)) {
        return 0;
    }
    return 1 +
           (uint64_t)(fmin(1, (double)seep_word_load(&series->touched_bytes) /
                                  looked) *
                      SEEP_TOUCHED_ALL);
}

bool seep_rewind_is_put_back(uint64_t address)
{
    return address >= GHOST_BASE;
}

void seep_rewind_put_back(struct seep_rewind *rewind, uint32_t site,
                          uint32_t from_tick, uint32_t to_tick, double bytes,
                          double blocks)
{
    unsigned level = level_of(rewind, site);
    bool fragment = blocks < 0.5;
    double size = fmin(fragment ? bytes : bytes / blocks, SEEP_SIZE_MASK);
    double seen =
        fragment ? 1 : blocks * seep_weight_probability((uint64_t)size, level);
    uint64_t count = (uint64_t)fmax(1, round(fmin(seen, 1e9)));
    uint64_t touched = touched_of(rewind, site, (uint64_t)size);

    for (uint64_t i = 0; i < count; i++) {
        struct seep_rec_live *live = take_slot(rewind);
        double at = ((double)i + 0.5) / (double)count;

        if (live == NULL) {
            return;
        }
        seep_word_store(&live->address, rewind->ghost_address);
        seep_word_store(&live->size_level,
                        seep_live_size_level(&(struct seep_block){
                            .size = (uint64_t)size,
                            .sample_log2 = fragment ? 0 : level,
                            .fragment = fragment,
                        }) | touched << SEEP_TOUCHED_SHIFT);
        seep_word_store(&live->site, site);
        seep_word_store(&live->birth_tick,
                        from_tick +
                            (uint32_t)(at * (double)(to_tick - from_tick)));
        rewind->ghost_address +=
            ((uint64_t)size + GHOST_STEP) & ~(uint64_t)(GHOST_STEP - 1);
    }
}

/* A site has collapsed if at its end it is lower than it ever was in so many
 * buckets before the first moment: a tooth of a saw and a pause are not. */
#define STEADY_BUCKETS 16U

/* At the moment all that collapsed must stand still: as high as it ever was in
 * so few buckets before the first moment, and nearly as high as it was at a
 * moment before. What was sampled goes up and down by itself. */
#define STANDS_BUCKETS 4U
#define STANDS_SHARE 0.98
#define RISES_SHARE 0.9

/* A fall that began before every moment: not before this share of the run, and
 * to so little of what had been live. */
#define LATE_FROM 0.7
#define FALLEN_TO 0.5

/* Who did not come to exit() was shut down only if so much of what stood went,
 * and that by so many times what had gone before in as long a time. */
#define COLLAPSE_SHARE (1.0 / 3)
#define COLLAPSE_TIMES 2.0

/* The moments that can be gone back to, the last one first. */
struct moments {
    uint32_t ticks[SEEP_ERAS_KEPT];
    uint32_t count;
    uint32_t final_tick;
};

/* Tensors lie in what their device's allocator keeps after them: they fall by
 * themselves, and what they lie in stays. */
#define TENSOR_PLACE SEEP_PLACE_COUNT /* and so on, one for each device */
#define FALL_PLACES (TENSOR_PLACE + SEEP_DEVICES_MAX)

/* Live bytes of what collapsed, by place. */
struct fall {
    double bytes[FALL_PLACES];
    double at[SEEP_ERAS_KEPT];     /* at each moment, of all places */
    double stands[SEEP_ERAS_KEPT]; /* of that, what stood before them all */
    double stood;
    double at_end;
    double before; /* what stood as long before the first moment as it is ago */
    /* And of everything, at the end of each bucket. */
    double live[FALL_PLACES][SEEP_BUCKET_COUNT];
    uint32_t buckets;
};

static void find_moments(struct seep_rec_header *header, uint64_t end_tick,
                         struct moments *ret_moments)
{
    struct moments moments = {
        .final_tick = seep_word_load(&header->final_tick),
    };
    uint32_t at = (uint32_t)end_tick;

    while (moments.count < SEEP_ERAS_KEPT) {
        uint32_t edge = seep_series_edge(at, moments.final_tick);

        if (edge == 0) {
            break;
        }
        moments.ticks[moments.count++] = edge;
        at = edge - 1;
    }
    *ret_moments = moments;
}

static unsigned place_of(const struct seep_rec_site *site)
{
    struct seep_report_site shown = {
        .space = (enum seep_space)site->space,
        .device = seep_sites_device_of(site),
    };

    if (shown.space == SEEP_SPACE_TENSOR && shown.device >= 0 &&
        shown.device < (int)SEEP_DEVICES_MAX) {
        return TENSOR_PLACE + (unsigned)shown.device;
    }
    return seep_sites_place_of(&shown);
}

static double live_now(const struct seep_rec_site *site)
{
    return (double)seep_account_live_bytes(site);
}

static double live_at_edge(struct seep_rec_site *site)
{
    uint64_t allocated = seep_word_load(&site->edge_allocated_bytes);
    uint64_t freed = seep_word_load(&site->edge_freed_bytes);

    return allocated > freed ? (double)(allocated - freed) : 0;
}

/* Live bytes at the end of each bucket. */
struct course {
    uint32_t width_log2;
    uint32_t count;
    uint64_t live_bytes[SEEP_BUCKET_COUNT];
};

static void read_course(struct seep_rec_site *site,
                        struct seep_series_source source, uint64_t end_tick,
                        struct course *ret_course)
{
    struct seep_series_course course;

    seep_series_read_course(source, seep_word_load(&site->first_tick),
                            seep_series_grid_of(end_tick), &course);
    ret_course->width_log2 = course.width_log2;
    ret_course->count = course.count;
    seep_series_fill_live(&course, ret_course->live_bytes);
}

/* Live bytes of a site with a series at @moment. */
static double live_at(struct seep_rec_site *site, const struct course *table,
                      uint32_t moment)
{
    uint32_t bucket = moment >> table->width_log2;

    if (seep_word_load(&site->last_tick) < moment) {
        return live_now(site);
    }
    if (seep_word_load(&site->edge_tick) == moment) {
        return live_at_edge(site);
    }
    return bucket > 0 && bucket <= table->count
               ? (double)table->live_bytes[bucket - 1]
               : 0;
}

/* The lowest that it was at the end of so many @buckets before @moment. (The
 * lowest inside of them counts what was folded late as not there yet.) */
static double low_before(const struct course *table, uint32_t moment,
                         uint32_t buckets)
{
    uint32_t end = moment >> table->width_log2;
    double low = INFINITY;

    end = end < table->count ? end : table->count;
    for (uint32_t i = end > buckets ? end - buckets : 0; i < end; i++) {
        low = fmin(low, (double)table->live_bytes[i]);
    }
    return isfinite(low) ? low : 0;
}

/* What stood as long before @first as the end is after it. */
static double stood_before(const struct course *table, uint32_t first,
                           uint64_t end_tick)
{
    uint64_t ago = end_tick - first;
    uint32_t bucket = 1U << table->width_log2;

    return low_before(table,
                      ago + bucket < first ? first - (uint32_t)ago : bucket,
                      STANDS_BUCKETS);
}

static void add_with_series(struct seep_rec_site *site,
                            struct seep_series_source source, uint64_t end_tick,
                            const struct moments *moments, struct fall *fall)
{
    struct course table;
    unsigned place = place_of(site);
    double end = live_now(site);
    uint32_t first = moments->ticks[moments->count - 1];
    double low;
    double stood;

    read_course(site, source, end_tick, &table);
    for (uint32_t i = 0; i < table.count; i++) {
        fall->live[place][i] += (double)table.live_bytes[i];
    }
    fall->buckets = table.count > fall->buckets ? table.count : fall->buckets;
    low = low_before(&table, first, STEADY_BUCKETS);
    if (low <= end) {
        return;
    }
    stood = low_before(&table, first, STANDS_BUCKETS);
    fall->bytes[place] += low - end;
    fall->stood += stood;
    fall->before += stood_before(&table, first, end_tick);
    fall->at_end += end;
    for (uint32_t i = 0; i < moments->count; i++) {
        double live = live_at(site, &table, moments->ticks[i]);

        fall->at[i] += live;
        fall->stands[i] += fmin(live, stood);
    }
}

static void add_without_series(struct seep_rec_site *site,
                               const struct moments *moments, struct fall *fall)
{
    uint32_t edge = seep_word_load(&site->edge_tick);
    double end = live_now(site);
    double before = live_at_edge(site);
    unsigned place = place_of(site);

    if (edge < moments->ticks[moments->count - 1] || before <= end) {
        return;
    }
    fall->bytes[place] += before - end;
    fall->at_end += end;
    fall->stood += before;
    fall->before += before;
    for (uint32_t i = 0; i < moments->count; i++) {
        double live = moments->ticks[i] <= edge ? before : end;

        fall->at[i] += live;
        fall->stands[i] += live;
    }
}

static void measure(const struct seep_snapshot *snapshot, uint64_t end_tick,
                    const struct moments *moments, struct fall *ret_fall)
{
    const struct seep_view *view = &snapshot->view;

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        struct seep_rec_site *site = &view->sites[i];
        struct seep_series_source source = seep_series_source_of(view, i);

        if (!seep_sites_is_used(site, i) ||
            !(seep_sites_space_holds((enum seep_space)site->space) ||
              site->space == SEEP_SPACE_TENSOR)) {
            continue;
        }
        if (source.kind != SEEP_SERIES_NONE) {
            add_with_series(site, source, end_tick, moments, ret_fall);
        } else {
            add_without_series(site, moments, ret_fall);
        }
    }
}

/* Tensors of the last request go at every end. */
#define TENSORS_SHARE 0.02

/* The share of one place's memory that no verdict looks at is no collapse. */
static bool is_material(const struct fall *fall, const struct moments *moments,
                        uint32_t width_log2)
{
    uint32_t bucket = moments->ticks[moments->count - 1] >> width_log2;

    bucket = bucket > 0 ? bucket - 1 : 0;
    for (unsigned i = 0; i < FALL_PLACES; i++) {
        double live = bucket < fall->buckets ? fall->live[i][bucket] : 0;
        double floor_bytes =
            seep_sites_floor_bytes((uint64_t)fmin(fmax(live, 0), 1e18));

        if (i >= TENSOR_PLACE) {
            floor_bytes = fmax(floor_bytes, TENSORS_SHARE * live);
        }
        if (fall->bytes[i] >= floor_bytes) {
            return true;
        }
    }
    return false;
}

/* A load that ebbs is no shutdown: memory falls as it fell before. */
static bool is_collapse(const struct fall *fall, const struct moments *moments)
{
    double freed = fall->stood - fall->at_end;

    return moments->final_tick != 0 ||
           (freed >= COLLAPSE_SHARE * fall->stood &&
            freed >= COLLAPSE_TIMES * (fall->before - fall->stood));
}

/* Of @before: all of it but for what was sampled, or for what is no leak at all
 * whatever it was. */
static bool is_there(double bytes, double before, double share)
{
    return bytes >= share * before ||
           before - bytes < seep_sites_floor_bytes(0);
}

/* The last moment at which all that collapsed stood. */
static uint32_t choose(const struct fall *fall, const struct moments *moments)
{
    for (uint32_t i = 0; i < moments->count; i++) {
        double most = 0;

        for (uint32_t j = i; j < moments->count; j++) {
            most = fmax(most, fall->at[j]);
        }
        if (is_there(fall->stands[i], fall->stood, STANDS_SHARE) &&
            is_there(fall->at[i], most, RISES_SHARE)) {
            return i;
        }
    }
    return moments->count - 1;
}

/* Had it fallen by much already at the first moment? */
static bool fell_before(const struct fall *fall, uint32_t moment,
                        uint32_t width_log2)
{
    uint32_t first = moment >> width_log2;
    uint32_t from = (uint32_t)(LATE_FROM * fall->buckets);

    first = first < fall->buckets ? first : fall->buckets;
    for (unsigned i = 0; i < FALL_PLACES && first > 0; i++) {
        const double *live = fall->live[i];
        double peak = 0;

        for (uint32_t j = from; j < first; j++) {
            peak = fmax(peak, live[j]);
        }
        if (live[first - 1] <= FALLEN_TO * peak &&
            live[fall->buckets - 1] <= FALLEN_TO * peak &&
            peak - live[fall->buckets - 1] >= seep_sites_floor_bytes(0)) {
            return true;
        }
    }
    return false;
}

struct progress {
    double tick;
    double units;
};

/* Work told by the moment: it went on as between the last two moments of the
 * timeline before, and by the next one no more was told than it has. */
static void rewind_units(struct seep_rec_header *header,
                         struct seep_rec_moment *timeline, uint32_t count,
                         uint32_t moment)
{
    struct progress first = {0, 0};
    struct progress last = {0, 0};
    double most = (double)seep_word_load(&header->progress_units);
    double units;

    for (uint32_t i = 0; i < count; i++) {
        struct progress now = {
            (double)seep_word_load(&timeline[i].tick),
            (double)seep_word_load(&timeline[i].progress_units),
        };

        if (now.tick >= moment) {
            most = fmin(most, now.units);
        } else if (now.tick > last.tick) {
            first = last;
            last = now;
        }
    }
    units = last.units;
    if (last.tick > first.tick) {
        units += fmax(last.units - first.units, 0) * (moment - last.tick) /
                 (last.tick - first.tick);
    }
    seep_word_store(&header->progress_units,
                    (uint64_t)fmax(fmin(units, most), last.units));
}

static void rewind_moments(const struct seep_rewind *rewind)
{
    const struct seep_view *view = &rewind->snapshot->view;
    struct seep_rec_header *header = view->header;
    uint32_t count = header->sections[SEEP_SECTION_TIMELINE].entry_count;

    rewind_units(header, view->timeline, count, rewind->moment);
    for (uint32_t i = 0; i < count; i++) {
        if (seep_word_load(&view->timeline[i].tick) >= rewind->moment) {
            seep_word_store(&view->timeline[i].tick, 0);
        }
    }
    for (uint32_t i = 0; i < view->device_count * SEEP_BUCKET_COUNT; i++) {
        if (seep_word_load(&view->devices[i].tick) >= rewind->moment) {
            seep_word_store(&view->devices[i].tick, 0);
        }
    }
}

static void keep_share(_Atomic uint64_t *word, double share)
{
    seep_word_store(word, (uint64_t)((double)seep_word_load(word) * share));
}

/* What the process allocated since is not work of the run. */
static void rewind_flow(const struct seep_rewind *rewind)
{
    const struct seep_view *view = &rewind->snapshot->view;

    for (uint32_t i = 0; i < view->shard_count; i++) {
        struct seep_rec_shard *shard = &view->shards[i];
        uint32_t width = seep_word_load(&shard->flow_width_log2) & 31;

        for (uint32_t j = 0; j < SEEP_BUCKET_COUNT; j++) {
            struct seep_rec_flow *flow = &shard->flow[j];
            double start = ldexp(j, (int)width);
            double share =
                ((double)rewind->moment - start) / ldexp(1, (int)width);

            if (share < 1) {
                keep_share(&flow->allocated_bytes, fmax(share, 0));
                keep_share(&flow->freed_bytes, fmax(share, 0));
            }
        }
    }
}

static int undo(struct seep_snapshot *snapshot, uint32_t moment)
{
    struct seep_rewind rewind = {
        .snapshot = snapshot,
        .moment = moment,
        .young = calloc((size_t)snapshot->view.site_capacity + 1,
                        sizeof(*rewind.young)),
    };

    if (rewind.young == NULL) {
        return -ENOMEM;
    }
    rewind_drop_young(&rewind);
    seep_rewind_sites(&rewind);
    rewind_moments(&rewind);
    rewind_flow(&rewind);
    free(rewind.young);
    return 0;
}

static int rewind_to(struct seep_snapshot *snapshot, uint64_t end_tick,
                     const struct moments *moments, const struct fall *fall,
                     struct seep_report_end *ret_end, uint64_t *ret_end_tick)
{
    uint32_t chosen = choose(fall, moments);
    uint32_t moment = moments->ticks[chosen];
    int error = seep_snapshot_expand(snapshot);

    error = error == 0 ? undo(snapshot, moment) : error;
    if (error == 0) {
        ret_end->judged_before = true;
        ret_end->judged_to_s = seep_sites_seconds(moment);
        ret_end->freed_bytes = fmax(fall->at[chosen] - fall->at_end, 0);
        ret_end->took_s = seep_sites_seconds((double)(end_tick - moment));
        ret_end->by_exit = moment == moments->final_tick;
        *ret_end_tick = moment;
    }
    return error;
}

int seep_rewind(struct seep_snapshot *snapshot, uint64_t end_tick,
                struct seep_report_end *ret_end, uint64_t *ret_end_tick)
{
    struct seep_report_end end = {.judged_before = false};
    uint64_t judged = end_tick;
    struct moments moments;
    struct fall *fall;
    uint32_t width = seep_series_width_for(end_tick);
    int error = 0;

    find_moments(snapshot->view.header, end_tick, &moments);
    if (seep_sites_seconds((double)end_tick) >= SEEP_REWIND_LEAST_S &&
        moments.count > 0) {
        fall = calloc(1, sizeof(*fall));
        if (fall == NULL) {
            return -ENOMEM;
        }
        measure(snapshot, end_tick, &moments, fall);
        end.unreachable =
            fell_before(fall, moments.ticks[moments.count - 1], width);
        if (is_material(fall, &moments, width) && is_collapse(fall, &moments)) {
            error =
                rewind_to(snapshot, end_tick, &moments, fall, &end, &judged);
        }
        free(fall);
    }
    if (error == 0) {
        *ret_end = end;
        *ret_end_tick = judged;
    }
    return error;
}
