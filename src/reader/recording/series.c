/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From words of the recording to figures that can be true; see series.h.
 *
 * Invariant: whatever a damaged file says, widths, buckets and ordinals are in
 * their bounds, and no live bytes are negative.
 */
#include "reader/recording/series.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "format/account.h"
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
    uint64_t tick = (uint64_t)(i + 1) << width_log2;

    return seep_sites_seconds((double)(tick < end_tick ? tick : end_tick));
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

/*
 * What tells of a site's time, whichever it is.
 *
 * Invariant: a brief and totals read as the whole series would that they
 * expand to, to the byte, without one being made.
 */

#define WIDTH_MAX 31U

/* Of a damaged file a sum may be negative. */
static uint64_t not_negative(uint64_t bytes)
{
    return (int64_t)bytes < 0 ? 0 : bytes;
}

struct seep_series_source seep_series_source_of(const struct seep_view *view,
                                                uint32_t index)
{
    struct seep_rec_site *site = &view->sites[index];
    uint32_t number = seep_word_load(&site->series);
    uint32_t brief = number & ~SEEP_SERIES_IS_BRIEF;
    struct seep_series_source source = {SEEP_SERIES_NONE, {NULL}};

    if (number == 0) {
        if (index != 0 && seep_account_is_whole(site) &&
            seep_word_load(&site->state) == SEEP_PUBLISHED) {
            source.kind = SEEP_SERIES_TOTALS;
            source.from.site = site;
        }
    } else if (brief == number && number <= view->series_capacity) {
        source.kind = SEEP_SERIES_WHOLE;
        source.from.series = &view->series[number - 1];
    } else if (brief != number && brief != 0 && brief <= view->brief_capacity) {
        source.kind = SEEP_SERIES_BRIEF;
        source.from.brief = &view->briefs[brief - 1];
    }
    return source;
}

/* The brief that totals which say all would become. Of what died when nothing
 * but a rewind asks, which makes series first: so no era is told of. */
static void tell(struct seep_rec_site *site, struct seep_rec_brief *ret_brief)
{
    struct seep_weight weight = {seep_word_load(&site->allocated_bytes),
                                 seep_word_load(&site->allocated_count_q16)};
    uint32_t first = seep_word_load(&site->first_tick);
    struct seep_series_moment last = {seep_word_load(&site->last_tick), 0};

    memset((void *)ret_brief, 0, sizeof(*ret_brief));
    seep_brief_start(ret_brief, 0, first, 0);
    seep_brief_allocated(ret_brief, first, 0, weight);
    if (seep_word_load(&site->freed_bytes) != 0) {
        seep_brief_freed(ret_brief, last, first, weight.bytes, weight);
    }
}

struct seep_series_begin seep_series_begin_of(struct seep_series_source source)
{
    switch (source.kind) {
    case SEEP_SERIES_WHOLE:
        return (struct seep_series_begin){
            seep_word_load(&source.from.series->first_tick),
            seep_word_load(&source.from.series->base_bytes)};
    case SEEP_SERIES_BRIEF:
        return (struct seep_series_begin){
            seep_word_load(&source.from.brief->first_tick),
            seep_word_load(&source.from.brief->base_bytes)};
    case SEEP_SERIES_TOTALS:
        return (struct seep_series_begin){
            seep_word_load(&source.from.site->first_tick), 0};
    default:
        return (struct seep_series_begin){0, 0};
    }
}

/* A bucket of a brief, and its number. */
struct told {
    uint32_t number;
    const struct seep_rec_bucket *bucket;
};

/* By number; of two with one, which only a damaged file has, the later counts.
 */
static uint32_t list_told(const struct seep_rec_brief *brief,
                          struct told told[SEEP_BRIEF_BUCKETS])
{
    uint32_t count = 0;

    for (uint32_t slot = 0; slot < SEEP_BRIEF_BUCKETS; slot++) {
        struct told one = {seep_brief_number(brief, slot),
                           &brief->buckets[slot]};
        uint32_t at = count;

        while (at > 0 && told[at - 1].number > one.number) {
            at--;
        }
        if (one.number == UINT32_MAX) {
            continue;
        }
        if (at > 0 && told[at - 1].number == one.number) {
            told[at - 1] = one;
            continue;
        }
        memmove(&told[at + 1], &told[at], (count - at) * sizeof(*told));
        told[at] = one;
        count++;
    }
    return count;
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

/* How the buckets of a series lie in the grid of the run. */
struct shape {
    uint32_t own_width_log2;
    uint32_t last; /* of its own */
    uint32_t shift;
    uint32_t width_log2; /* of the buckets that they are read into */
    uint32_t count;
};

static struct shape shape_of(uint32_t width_log2, uint32_t last,
                             struct seep_series_grid grid)
{
    uint32_t width = width_log2 & WIDTH_MAX;
    uint32_t shift = grid.width_log2 > width ? grid.width_log2 - width : 0;
    uint32_t end = (uint32_t)(grid.end_tick >> (width + shift));

    last %= SEEP_BUCKET_COUNT;
    end = last >> shift > end ? last >> shift : end;
    return (struct shape){width, last, shift, width + shift, end + 1};
}

static struct shape shape_of_series(struct seep_rec_series *series,
                                    struct seep_series_grid grid)
{
    return shape_of(seep_word_load(&series->width_log2),
                    seep_word_load(&series->last), grid);
}

static struct shape shape_of_brief(const struct seep_rec_brief *brief,
                                   struct seep_series_grid grid)
{
    return shape_of(seep_word_load(&brief->width_log2),
                    seep_word_load(&brief->last), grid);
}

/* The course: where something changes. */

/* What bucket @i of its own has; .live_bytes is what it adds for now. */
static void add_step(struct seep_series_course *course,
                     const struct shape *shape, uint32_t i, uint64_t allocated,
                     uint64_t freed)
{
    uint32_t bucket = i >> shape->shift;
    struct seep_series_step *step;

    if ((allocated | freed) == 0) {
        return;
    }
    if (course->step_count == 0 ||
        course->steps[course->step_count - 1].bucket != bucket) {
        course->steps[course->step_count++] =
            (struct seep_series_step){bucket, 0, 0};
    }
    step = &course->steps[course->step_count - 1];
    step->allocated_bytes += allocated;
    step->live_bytes += allocated - freed;
}

static void add_bucket(struct seep_series_course *course,
                       const struct shape *shape, uint32_t i,
                       const struct seep_rec_bucket *bucket)
{
    add_step(course, shape, i, seep_word_load(&bucket->allocated_bytes),
             seep_word_load(&bucket->freed_bytes));
}

static void add_brief(struct seep_series_course *course,
                      const struct shape *shape,
                      const struct seep_rec_brief *brief)
{
    struct told told[SEEP_BRIEF_BUCKETS];
    uint32_t count = list_told(brief, told);

    for (uint32_t i = 0; i < count && told[i].number <= shape->last; i++) {
        add_bucket(course, shape, told[i].number, told[i].bucket);
    }
}

/* As the brief that tell() makes. */
static struct shape add_totals(struct seep_series_course *course,
                               struct seep_rec_site *site,
                               struct seep_series_grid grid)
{
    uint64_t allocated = seep_word_load(&site->allocated_bytes);
    uint64_t freed = seep_word_load(&site->freed_bytes) != 0 ? allocated : 0;
    uint32_t first = seep_word_load(&site->first_tick);
    uint32_t last = freed != 0 ? seep_word_load(&site->last_tick) : first;
    uint32_t end = last > first ? last : first;
    uint32_t width = seep_series_width_for(end);
    struct shape shape = shape_of(width, end >> width, grid);

    if (last < first) { /* of a damaged file */
        add_step(course, &shape, last >> width, 0, freed);
        add_step(course, &shape, first >> width, allocated, 0);
    } else {
        add_step(course, &shape, first >> width, allocated, 0);
        add_step(course, &shape, last >> width, 0, freed);
    }
    return shape;
}

/* A step for what was live before the first bucket of the site. */
static void begin_at(struct seep_series_course *course, uint32_t at,
                     uint32_t bucket)
{
    struct seep_series_step *step = &course->steps[at];

    if (bucket < course->count &&
        (at == course->step_count || step->bucket != bucket)) {
        memmove(step + 1, step, (course->step_count - at) * sizeof(*step));
        *step = (struct seep_series_step){bucket, 0, 0};
        course->step_count++;
    }
}

/* From what each step adds to what is live then. */
static void sum_steps(struct seep_series_course *course, uint64_t base_bytes,
                      uint32_t site_first)
{
    uint64_t live = base_bytes;
    uint32_t at = 0;

    for (; at < course->step_count && course->steps[at].bucket < site_first;
         at++) {
        live += course->steps[at].live_bytes;
        course->steps[at].live_bytes = 0;
    }
    if (not_negative(live) != 0) {
        begin_at(course, at, site_first);
    }
    for (; at < course->step_count; at++) {
        live += course->steps[at].live_bytes;
        course->steps[at].live_bytes = not_negative(live);
    }
}

void seep_series_read_course(struct seep_series_source source,
                             uint32_t site_first_tick,
                             struct seep_series_grid grid,
                             struct seep_series_course *ret_course)
{
    struct shape shape;

    ret_course->step_count = 0;
    if (source.kind == SEEP_SERIES_WHOLE) {
        shape = shape_of_series(source.from.series, grid);
        for (uint32_t i = 0; i <= shape.last; i++) {
            add_bucket(ret_course, &shape, i, &source.from.series->buckets[i]);
        }
    } else if (source.kind == SEEP_SERIES_BRIEF) {
        shape = shape_of_brief(source.from.brief, grid);
        add_brief(ret_course, &shape, source.from.brief);
    } else {
        shape = add_totals(ret_course, source.from.site, grid);
    }
    ret_course->width_log2 = shape.width_log2;
    ret_course->count = shape.count;
    sum_steps(ret_course, seep_series_begin_of(source).base_bytes,
              site_first_tick >> shape.width_log2);
}

uint32_t seep_series_span(const struct seep_series_course *course, uint32_t i,
                          struct seep_series_grid grid, uint32_t *ret_end)
{
    uint32_t wider = course->width_log2 - grid.width_log2;
    uint32_t count = (uint32_t)(grid.end_tick >> grid.width_log2) + 1;
    uint64_t from = (uint64_t)course->steps[i].bucket << wider;
    uint64_t end = i + 1 < course->step_count
                       ? (uint64_t)course->steps[i + 1].bucket << wider
                       : count;

    *ret_end = end < count ? (uint32_t)end : count;
    return from < *ret_end ? (uint32_t)from : *ret_end;
}

void seep_series_fill_live(const struct seep_series_course *course,
                           uint64_t live_bytes[SEEP_BUCKET_COUNT])
{
    uint64_t live = 0;
    uint32_t next = 0;

    for (uint32_t i = 0; i < course->count; i++) {
        if (next < course->step_count && course->steps[next].bucket == i) {
            live = course->steps[next++].live_bytes;
        }
        live_bytes[i] = live;
    }
}

uint64_t seep_series_live_at(const struct seep_series_course *course,
                             uint32_t bucket)
{
    uint64_t live = 0;

    for (uint32_t i = 0;
         i < course->step_count && course->steps[i].bucket <= bucket; i++) {
        live = course->steps[i].live_bytes;
    }
    return live;
}

/* The table. */

/* A bucket of the recording into the one of the table that covers it. */
static void gather(struct seep_series_bucket *into,
                   const struct seep_rec_bucket *from)
{
    into->allocated_bytes += seep_word_load(&from->allocated_bytes);
    into->freed_bytes += seep_word_load(&from->freed_bytes);
    into->born_freed_bytes += seep_word_load(&from->born_freed_bytes);
    into->born_count_q16 += seep_word_load(&from->born_count_q16);
    into->born_freed_count_q16 += seep_word_load(&from->born_freed_count_q16);
    into->died_bytes += seep_word_load(&from->died_bytes);
    into->died_count_q16 += seep_word_load(&from->died_count_q16);
}

static void lower(struct seep_series_bucket *into, uint64_t low)
{
    into->low_bytes = low < into->low_bytes ? low : into->low_bytes;
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

static void start_table(const struct shape *shape, uint32_t first_tick,
                        struct seep_series_table *ret_table)
{
    memset(ret_table, 0,
           offsetof(struct seep_series_table, buckets) +
               shape->count * sizeof(ret_table->buckets[0]));
    ret_table->width_log2 = shape->width_log2;
    ret_table->count = shape->count;
    ret_table->first = first_tick >> ret_table->width_log2;
    if (ret_table->first >= ret_table->count) {
        ret_table->first = ret_table->count - 1;
    }
    for (uint32_t i = 0; i < shape->count; i++) {
        ret_table->buckets[i].low_bytes = UINT64_MAX;
    }
}

static void read_whole(struct seep_rec_series *series,
                       struct seep_series_grid grid,
                       struct seep_series_table *ret_table)
{
    struct shape shape = shape_of_series(series, grid);
    uint32_t first_tick = seep_word_load(&series->first_tick);

    start_table(&shape, first_tick, ret_table);
    for (uint32_t i = 0; i <= shape.last; i++) {
        struct seep_series_bucket *into = &ret_table->buckets[i >> shape.shift];

        gather(into, &series->buckets[i]);
        if (i >= first_tick >> shape.own_width_log2) {
            lower(into, seep_word_load(&series->buckets[i].low_bytes));
        }
    }
}

/* In between nothing came and went. */
static void read_brief(const struct seep_rec_brief *brief,
                       struct seep_series_grid grid,
                       struct seep_series_table *ret_table)
{
    struct shape shape = shape_of_brief(brief, grid);
    uint32_t first_tick = seep_word_load(&brief->first_tick);
    uint64_t live = seep_word_load(&brief->base_bytes);
    struct told told[SEEP_BRIEF_BUCKETS];
    uint32_t count = list_told(brief, told);
    uint32_t next = 0;

    start_table(&shape, first_tick, ret_table);
    for (uint32_t i = 0; i <= shape.last; i++) {
        struct seep_series_bucket *into = &ret_table->buckets[i >> shape.shift];
        bool has_low = i >= first_tick >> shape.own_width_log2;

        if (has_low) {
            lower(into, live);
        }
        if (next < count && told[next].number == i) {
            const struct seep_rec_bucket *bucket = told[next++].bucket;

            gather(into, bucket);
            if (has_low) {
                lower(into, seep_word_load(&bucket->low_bytes));
            }
            live += seep_word_load(&bucket->allocated_bytes) -
                    seep_word_load(&bucket->freed_bytes);
        }
    }
}

void seep_series_read(struct seep_series_source source,
                      uint32_t site_first_tick, struct seep_series_grid grid,
                      struct seep_series_table *ret_table)
{
    struct seep_rec_brief brief;

    if (source.kind == SEEP_SERIES_WHOLE) {
        read_whole(source.from.series, grid, ret_table);
    } else if (source.kind == SEEP_SERIES_BRIEF) {
        read_brief(source.from.brief, grid, ret_table);
    } else {
        tell(source.from.site, &brief);
        read_brief(&brief, grid, ret_table);
    }
    fill_live(ret_table, seep_series_begin_of(source).base_bytes,
              site_first_tick >> ret_table->width_log2);
}
