/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The time series of a site, in brief: a bucket is found by the number that it
 * was given, and one that is not there was never told anything.
 *
 * Whatever is refused was not begun: each event asks for all of its buckets
 * before it changes one.
 */
#include <string.h>

#include "base/word.h"
#include "format/series.h"

#define NONE UINT32_MAX
/* The low of a bucket that was told no moment: what is live when it begins. */
#define LOW_UNKNOWN UINT64_MAX

/* Of a private copy of a damaged file the fields may be anything. */
static uint32_t width_of(const struct seep_rec_brief *brief)
{
    return seep_word_load(&brief->width_log2) & 31;
}

static uint32_t last_of(const struct seep_rec_brief *brief)
{
    return seep_word_load(&brief->last) % SEEP_BUCKET_COUNT;
}

/* The number of the bucket at @slot; NONE: it is not in use. */
static uint32_t number_of(const struct seep_rec_brief *brief, uint32_t slot)
{
    uint32_t number =
        (uint32_t)(seep_word_load(&brief->numbers) >> (8 * slot)) & 255;

    return number == 0 ? NONE : (number - 1) % SEEP_BUCKET_COUNT;
}

uint32_t seep_brief_number(const struct seep_rec_brief *brief, uint32_t slot)
{
    return number_of(brief, slot);
}

static void set_number(struct seep_rec_brief *brief, uint32_t slot,
                       uint32_t number)
{
    uint64_t others =
        seep_word_load(&brief->numbers) & ~(UINT64_C(255) << (8 * slot));
    uint64_t byte = number == NONE ? 0 : number + 1;

    seep_word_store(&brief->numbers, others | byte << (8 * slot));
}

static struct seep_rec_bucket *find(struct seep_rec_brief *brief,
                                    uint32_t number)
{
    for (uint32_t i = 0; i < SEEP_BRIEF_BUCKETS; i++) {
        if (number_of(brief, i) == number) {
            return &brief->buckets[i];
        }
    }
    return NULL;
}

static void clear(struct seep_rec_bucket *bucket)
{
    memset((void *)bucket, 0, sizeof(*bucket));
    seep_word_store(&bucket->low_bytes, LOW_UNKNOWN);
}

/* The bucket @number, begun if it is not there. NULL: no room. */
static struct seep_rec_bucket *take(struct seep_rec_brief *brief,
                                    uint32_t number)
{
    struct seep_rec_bucket *bucket = find(brief, number);

    for (uint32_t i = 0; i < SEEP_BRIEF_BUCKETS && bucket == NULL; i++) {
        if (number_of(brief, i) == NONE) {
            bucket = &brief->buckets[i];
            clear(bucket);
            set_number(brief, i, number);
        }
    }
    return bucket;
}

static uint32_t count_free(const struct seep_rec_brief *brief)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < SEEP_BRIEF_BUCKETS; i++) {
        count += number_of(brief, i) == NONE;
    }
    return count;
}

/* Are there, or is there room for, all of @count buckets? NONE is none. */
static bool fits(struct seep_rec_brief *brief, const uint32_t *numbers,
                 uint32_t count)
{
    uint32_t missing = 0;

    for (uint32_t i = 0; i < count; i++) {
        bool counts = numbers[i] != NONE && find(brief, numbers[i]) == NULL;

        for (uint32_t j = 0; j < i; j++) {
            counts = counts && numbers[j] != numbers[i];
        }
        missing += counts;
    }
    return missing <= count_free(brief);
}

static void widen_buckets(struct seep_rec_brief *brief)
{
    for (uint32_t i = 0; i < SEEP_BRIEF_BUCKETS; i++) {
        if (number_of(brief, i) != NONE) {
            set_number(brief, i, number_of(brief, i) / 2);
        }
    }
    for (uint32_t i = 0; i < SEEP_BRIEF_BUCKETS; i++) {
        for (uint32_t j = i + 1; j < SEEP_BRIEF_BUCKETS; j++) {
            if (number_of(brief, i) != NONE &&
                number_of(brief, i) == number_of(brief, j)) {
                seep_series_add_bucket(&brief->buckets[i], &brief->buckets[j]);
                seep_series_lower(&brief->buckets[i],
                                  seep_word_load(&brief->buckets[j].low_bytes));
                set_number(brief, j, NONE);
            }
        }
    }
}

static bool is_used(const struct seep_rec_brief_died *died)
{
    return seep_word_load(&died->died) != 0;
}

static void widen_died(struct seep_rec_brief *brief)
{
    struct seep_rec_brief_died *all = brief->died;

    for (uint32_t i = 0; i < SEEP_BRIEF_DIED; i++) {
        seep_word_store(&all[i].bucket, seep_word_load(&all[i].bucket) / 2);
    }
    for (uint32_t i = 0; i < SEEP_BRIEF_DIED; i++) {
        for (uint32_t j = i + 1; j < SEEP_BRIEF_DIED; j++) {
            if (is_used(&all[i]) && is_used(&all[j]) &&
                seep_word_load(&all[i].edge) == seep_word_load(&all[j].edge) &&
                seep_word_load(&all[i].bucket) ==
                    seep_word_load(&all[j].bucket)) {
                seep_word_store(
                    &all[i].died,
                    seep_series_died_sum(seep_word_load(&all[i].died),
                                         seep_word_load(&all[j].died)));
                seep_word_store(&all[j].died, 0);
            }
        }
    }
}

static void widen(struct seep_rec_brief *brief, uint32_t width_log2)
{
    while (width_of(brief) < width_log2) {
        widen_buckets(brief);
        widen_died(brief);
        seep_word_store(&brief->last, last_of(brief) / 2);
        seep_word_store(&brief->width_log2, width_of(brief) + 1);
    }
}

void seep_brief_start(struct seep_rec_brief *brief, uint32_t site,
                      uint32_t tick, uint64_t live_bytes)
{
    uint32_t width = seep_series_width_for(tick);

    seep_word_store(&brief->site, site);
    seep_word_store(&brief->width_log2, width);
    seep_word_store(&brief->last, tick >> width);
    /* As of a series: what was born in this tick may be in the base. */
    seep_word_store(&brief->first_tick, live_bytes != 0 ? tick + 1 : tick);
    seep_word_store(&brief->base_bytes, live_bytes);
}

/* Bucket @number, which is there or fits, at a moment with @live_bytes. */
static struct seep_rec_bucket *bucket_at(struct seep_rec_brief *brief,
                                         uint32_t number, uint64_t live_bytes)
{
    struct seep_rec_bucket *bucket = take(brief, number);

    if (seep_word_load(&bucket->low_bytes) == LOW_UNKNOWN) {
        seep_word_store(&bucket->low_bytes, live_bytes);
    }
    if (number > last_of(brief)) {
        seep_word_store(&brief->last, number);
    }
    return bucket;
}

bool seep_brief_allocated(struct seep_rec_brief *brief, uint32_t tick,
                          uint64_t live_bytes, struct seep_weight weight)
{
    bool is_early = tick < seep_word_load(&brief->first_tick);
    struct seep_rec_bucket *bucket;
    uint32_t number;

    if (is_early && seep_word_load(&brief->base_bytes) != 0) {
        seep_word_add(&brief->base_bytes, weight.bytes);
        return true;
    }
    widen(brief, seep_series_width_for(tick));
    number = tick >> width_of(brief);
    if (!fits(brief, &number, 1)) {
        return false;
    }
    if (is_early) {
        seep_word_store(&brief->first_tick, tick);
    }
    bucket = bucket_at(brief, number, live_bytes);
    seep_word_add(&bucket->allocated_bytes, weight.bytes);
    seep_word_add(&bucket->born_count_q16, weight.count_q16);
    return true;
}

/* Which buckets a death is told to. */
struct death {
    uint32_t tick;
    uint32_t cohort; /* NONE: of before the series */
    uint32_t age;
    uint32_t born;
    struct seep_rec_brief_died *died; /* NULL: in the era that it was born in */
};

static struct death death_of(const struct seep_rec_brief *brief, uint32_t tick,
                             uint32_t birth_tick)
{
    uint32_t width = width_of(brief);
    uint32_t age = (tick > birth_tick ? tick - birth_tick : 0) >> width;
    struct death death = {
        .tick = tick >> width,
        .cohort = birth_tick >> width,
        .age = age < SEEP_BUCKET_COUNT ? age : SEEP_BUCKET_COUNT - 1,
        .born = birth_tick >> width,
    };

    if (birth_tick < seep_word_load(&brief->first_tick) ||
        death.cohort >= SEEP_BUCKET_COUNT) {
        death.cohort = NONE;
    }
    return death;
}

/* @sign: 1, or -1 for a death that is taken back. */
static void account_death(struct seep_rec_brief *brief,
                          const struct death *death, struct seep_weight of,
                          int sign)
{
    struct seep_rec_bucket *ages = take(brief, death->age);
    struct seep_weight weight = of;

    if (sign < 0) {
        weight = (struct seep_weight){0 - of.bytes, 0 - of.count_q16};
    }
    seep_word_add(&take(brief, death->tick)->freed_bytes, weight.bytes);
    seep_word_add(&ages->died_bytes, weight.bytes);
    seep_word_add(&ages->died_count_q16, weight.count_q16);
    if (death->cohort != NONE) {
        struct seep_rec_bucket *cohort = take(brief, death->cohort);

        seep_word_add(&cohort->born_freed_bytes, weight.bytes);
        seep_word_add(&cohort->born_freed_count_q16, weight.count_q16);
    }
    if (death->died != NULL) {
        _Atomic uint64_t *died = &death->died->died;

        seep_word_store(
            died, seep_series_died_add(seep_word_load(died), of, (float)sign));
    }
}

/* Where the era at @edge has what was born in bucket @born: NULL: no room. */
static struct seep_rec_brief_died *take_died(struct seep_rec_brief *brief,
                                             uint32_t edge, uint32_t born)
{
    struct seep_rec_brief_died *unused = NULL;

    for (uint32_t i = 0; i < SEEP_BRIEF_DIED; i++) {
        struct seep_rec_brief_died *died = &brief->died[i];

        if (!is_used(died)) {
            unused = died;
        } else if (seep_word_load(&died->edge) == edge &&
                   seep_word_load(&died->bucket) == born) {
            return died;
        }
    }
    if (unused != NULL) {
        seep_word_store(&unused->edge, edge);
        seep_word_store(&unused->bucket, born);
    }
    return unused;
}

/* @return false: it does not fit */
static bool prepare(struct seep_rec_brief *brief,
                    struct seep_series_moment when, uint32_t birth_tick,
                    struct death *ret_death)
{
    struct death death = death_of(brief, when.tick, birth_tick);
    const uint32_t numbers[] = {death.tick, death.cohort, death.age};
    bool is_older = birth_tick < when.edge && death.born < SEEP_BUCKET_COUNT;

    if (death.tick >= SEEP_BUCKET_COUNT || !fits(brief, numbers, 3)) {
        return false;
    }
    if (is_older) {
        death.died = take_died(brief, when.edge, death.born);
    }
    *ret_death = death;
    return !is_older || death.died != NULL;
}

bool seep_brief_freed(struct seep_rec_brief *brief,
                      struct seep_series_moment when, uint32_t birth_tick,
                      uint64_t live_bytes, struct seep_weight weight)
{
    struct seep_rec_bucket *last;
    struct death death;

    widen(brief, seep_series_width_for(when.tick));
    if (!prepare(brief, when, birth_tick, &death)) {
        return false;
    }
    bucket_at(brief, death.tick, live_bytes);
    account_death(brief, &death, weight, 1);
    seep_series_lower(take(brief, death.tick), live_bytes - weight.bytes);
    last = find(brief, last_of(brief));
    if (last != NULL) {
        seep_series_lower(last, live_bytes - weight.bytes);
    }
    return true;
}

bool seep_brief_restored(struct seep_rec_brief *brief,
                         struct seep_series_moment when, uint32_t birth_tick,
                         struct seep_weight weight)
{
    struct death death;

    if (!prepare(brief, when, birth_tick, &death)) {
        return false;
    }
    account_death(brief, &death, weight, -1);
    return true;
}

bool seep_brief_reweighed(struct seep_rec_brief *brief, uint32_t birth_tick,
                          struct seep_weight before, struct seep_weight after)
{
    uint32_t number = birth_tick >> width_of(brief);
    struct seep_rec_bucket *cohort;

    if (birth_tick < seep_word_load(&brief->first_tick) ||
        number >= SEEP_BUCKET_COUNT) {
        seep_word_add(&brief->base_bytes, after.bytes - before.bytes);
        return true;
    }
    cohort = take(brief, number);
    if (cohort == NULL) {
        return false;
    }
    seep_word_add(&cohort->allocated_bytes, after.bytes - before.bytes);
    seep_word_add(&cohort->born_count_q16, after.count_q16 - before.count_q16);
    return true;
}

static void copy_bucket(struct seep_rec_bucket *into,
                        const struct seep_rec_bucket *from)
{
    uint64_t low = seep_word_load(&into->low_bytes);

    memcpy((void *)into, (const void *)from, sizeof(*into));
    if (seep_word_load(&into->low_bytes) > low) {
        seep_word_store(&into->low_bytes, low);
    }
}

/* In between nothing came and went. */
static void fill_buckets(const struct seep_rec_brief *brief,
                         struct seep_rec_series *series)
{
    uint64_t live = seep_word_load(&brief->base_bytes);
    uint32_t first = seep_word_load(&brief->first_tick) >> width_of(brief);
    uint32_t last = last_of(brief);
    uint8_t slots[SEEP_BUCKET_COUNT] = {0}; /* + 1; 0: it has none */

    for (uint32_t j = 0; j < SEEP_BRIEF_BUCKETS; j++) {
        if (number_of(brief, j) != NONE) {
            slots[number_of(brief, j)] = (uint8_t)(j + 1);
        }
    }
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        struct seep_rec_bucket *bucket = &series->buckets[i];

        if (i >= first && i <= last) {
            seep_word_store(&bucket->low_bytes, live);
        }
        if (slots[i] != 0) {
            copy_bucket(bucket, &brief->buckets[slots[i] - 1]);
            live += seep_word_load(&bucket->allocated_bytes) -
                    seep_word_load(&bucket->freed_bytes);
        }
    }
}

void seep_brief_expand(const struct seep_rec_brief *brief,
                       struct seep_rec_series *series)
{
    seep_word_copy(&series->site, &brief->site);
    seep_word_store(&series->width_log2, width_of(brief));
    seep_word_store(&series->last, last_of(brief));
    seep_word_copy(&series->first_tick, &brief->first_tick);
    seep_word_copy(&series->base_bytes, &brief->base_bytes);
    fill_buckets(brief, series);
    for (uint32_t i = 0; i < SEEP_BRIEF_DIED; i++) {
        const struct seep_rec_brief_died *died = &brief->died[i];

        if (is_used(died)) {
            seep_series_add_died(series, seep_word_load(&died->edge),
                                 seep_word_load(&died->bucket) %
                                     SEEP_BUCKET_COUNT,
                                 seep_word_load(&died->died));
        }
    }
}
