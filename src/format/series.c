/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A site's time series; see series.h for what always holds. */
#include "format/series.h"

#include "base/word.h"

#include <stdbool.h>
#include <stddef.h>

static uint32_t load32(const _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void store32(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

uint32_t seep_series_width_for(uint64_t tick)
{
    uint32_t width = SEEP_FIRST_WIDTH_LOG2;

    while (tick >> width >= SEEP_BUCKET_COUNT) {
        width++;
    }
    return width;
}

/* Of a private copy of a damaged file the fields may be anything. */
static uint32_t width_of(const struct seep_rec_series *series)
{
    return load32(&series->width_log2) & 31;
}

static uint32_t last_of(const struct seep_rec_series *series)
{
    uint32_t last = load32(&series->last);

    return last < SEEP_BUCKET_COUNT ? last : SEEP_BUCKET_COUNT - 1;
}

void seep_series_start(struct seep_rec_series *series, uint32_t site,
                       uint32_t tick, uint64_t live_bytes)
{
    uint32_t width = seep_series_width_for(tick);
    uint32_t last = tick >> width;

    store32(&series->site, site);
    store32(&series->width_log2, width);
    store32(&series->last, last);
    /* What was born in this very tick may be in the base already: its cohort
     * begins with the next. */
    store32(&series->first_tick, live_bytes != 0 ? tick + 1 : tick);
    seep_word_store(&series->base_bytes, live_bytes);
    seep_word_store(&series->buckets[last].low_bytes, live_bytes);
}

static void store_sum(_Atomic uint64_t *into, const _Atomic uint64_t *left,
                      const _Atomic uint64_t *right)
{
    seep_word_store(into, seep_word_load(left) + seep_word_load(right));
}

static void merge(struct seep_rec_bucket *into,
                  const struct seep_rec_bucket *left,
                  const struct seep_rec_bucket *right, bool right_touched)
{
    uint64_t low = seep_word_load(&left->low_bytes);
    uint64_t right_low = seep_word_load(&right->low_bytes);

    seep_word_store(&into->low_bytes,
                    right_touched && right_low < low ? right_low : low);
    store_sum(&into->allocated_bytes, &left->allocated_bytes,
              &right->allocated_bytes);
    store_sum(&into->freed_bytes, &left->freed_bytes, &right->freed_bytes);
    store_sum(&into->born_count_q16, &left->born_count_q16,
              &right->born_count_q16);
    store_sum(&into->born_freed_bytes, &left->born_freed_bytes,
              &right->born_freed_bytes);
    store_sum(&into->born_freed_count_q16, &left->born_freed_count_q16,
              &right->born_freed_count_q16);
    store_sum(&into->died_bytes, &left->died_bytes, &right->died_bytes);
    store_sum(&into->died_count_q16, &left->died_count_q16,
              &right->died_count_q16);
}

static void clear(struct seep_rec_bucket *bucket)
{
    seep_word_store(&bucket->allocated_bytes, 0);
    seep_word_store(&bucket->freed_bytes, 0);
    seep_word_store(&bucket->low_bytes, 0);
    seep_word_store(&bucket->born_count_q16, 0);
    seep_word_store(&bucket->born_freed_bytes, 0);
    seep_word_store(&bucket->born_freed_count_q16, 0);
    seep_word_store(&bucket->died_bytes, 0);
    seep_word_store(&bucket->died_count_q16, 0);
}

static void widen_once(struct seep_rec_series *series)
{
    struct seep_rec_bucket *buckets = series->buckets;
    uint32_t last = last_of(series);

    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT / 2; i++) {
        merge(&buckets[i], &buckets[2 * i], &buckets[2 * i + 1],
              2 * i + 1 <= last);
    }
    for (uint32_t i = SEEP_BUCKET_COUNT / 2; i < SEEP_BUCKET_COUNT; i++) {
        clear(&buckets[i]);
    }
    store32(&series->last, last / 2);
    store32(&series->width_log2, width_of(series) + 1);
}

void seep_series_widen(struct seep_rec_series *series, uint32_t width_log2)
{
    while (width_of(series) < width_log2 && width_of(series) < 31) {
        widen_once(series);
    }
}

/* The bucket of @tick, with every bucket up to it given its low. */
static struct seep_rec_bucket *bucket_at(struct seep_rec_series *series,
                                         uint32_t tick, uint64_t live_bytes)
{
    uint32_t index;
    uint32_t last;

    seep_series_widen(series, seep_series_width_for(tick));
    index = tick >> width_of(series);
    last = last_of(series);
    for (uint32_t i = last + 1; i <= index; i++) {
        seep_word_store(&series->buckets[i].low_bytes, live_bytes);
    }
    if (index > last) {
        store32(&series->last, index);
    }
    return &series->buckets[index];
}

/* The bucket of a birth; NULL for one from before the series began. */
static struct seep_rec_bucket *cohort_of(struct seep_rec_series *series,
                                         uint32_t birth_tick)
{
    uint32_t index = birth_tick >> width_of(series);

    if (birth_tick < load32(&series->first_tick) ||
        index >= SEEP_BUCKET_COUNT) {
        return NULL;
    }
    return &series->buckets[index];
}

/*
 * The bucket of ages of a block that died at @tick. Every block has a birth,
 * also one from before the series began. Events of other shards may be folded
 * late, so that one dies before it was born: it was young.
 */
static struct seep_rec_bucket *ages_of(struct seep_rec_series *series,
                                       uint32_t tick, uint32_t birth_tick)
{
    uint32_t age = tick > birth_tick ? tick - birth_tick : 0;
    uint32_t index = age >> width_of(series);

    return &series->buckets[index < SEEP_BUCKET_COUNT ? index
                                                      : SEEP_BUCKET_COUNT - 1];
}

static void lower(struct seep_rec_bucket *bucket, uint64_t live_bytes)
{
    if (live_bytes < seep_word_load(&bucket->low_bytes)) {
        seep_word_store(&bucket->low_bytes, live_bytes);
    }
}

void seep_series_allocated(struct seep_rec_series *series, uint32_t tick,
                           uint64_t live_bytes, struct seep_weight weight)
{
    struct seep_rec_bucket *bucket;

    /* An event of another shard, folded late, can be from before the one that
     * began the series. */
    if (tick < load32(&series->first_tick)) {
        if (seep_word_load(&series->base_bytes) != 0) {
            seep_word_add(&series->base_bytes, weight.bytes);
            return;
        }
        store32(&series->first_tick, tick);
    }
    bucket = bucket_at(series, tick, live_bytes);
    seep_word_add(&bucket->allocated_bytes, weight.bytes);
    seep_word_add(&bucket->born_count_q16, weight.count_q16);
}

/* What a free adds, or takes back with @weight negative. */
static void account_death(struct seep_rec_series *series,
                          struct seep_rec_bucket *bucket, uint32_t tick,
                          uint32_t birth_tick, struct seep_weight weight)
{
    struct seep_rec_bucket *cohort = cohort_of(series, birth_tick);
    struct seep_rec_bucket *ages = ages_of(series, tick, birth_tick);

    seep_word_add(&bucket->freed_bytes, weight.bytes);
    seep_word_add(&ages->died_bytes, weight.bytes);
    seep_word_add(&ages->died_count_q16, weight.count_q16);
    if (cohort != NULL) {
        seep_word_add(&cohort->born_freed_bytes, weight.bytes);
        seep_word_add(&cohort->born_freed_count_q16, weight.count_q16);
    }
}

void seep_series_freed(struct seep_rec_series *series, uint32_t tick,
                       uint32_t birth_tick, uint64_t live_bytes,
                       struct seep_weight weight)
{
    struct seep_rec_bucket *bucket = bucket_at(series, tick, live_bytes);

    account_death(series, bucket, tick, birth_tick, weight);
    lower(bucket, live_bytes - weight.bytes);
    /* Events of other shards may be folded late, behind the last bucket. */
    lower(&series->buckets[last_of(series)], live_bytes - weight.bytes);
}

void seep_series_restored(struct seep_rec_series *series, uint32_t tick,
                          uint32_t birth_tick, struct seep_weight weight)
{
    uint32_t index = tick >> width_of(series);

    if (index < SEEP_BUCKET_COUNT) {
        account_death(
            series, &series->buckets[index], tick, birth_tick,
            (struct seep_weight){0 - weight.bytes, 0 - weight.count_q16});
    }
}

void seep_series_found(struct seep_rec_series *series,
                       struct seep_weight weight)
{
    seep_word_add(&series->base_bytes, weight.bytes);
}

void seep_series_reweighed(struct seep_rec_series *series, uint32_t birth_tick,
                           struct seep_weight before, struct seep_weight after)
{
    struct seep_rec_bucket *cohort = cohort_of(series, birth_tick);

    if (cohort == NULL) {
        seep_word_add(&series->base_bytes, after.bytes - before.bytes);
        return;
    }
    seep_word_add(&cohort->allocated_bytes, after.bytes - before.bytes);
    seep_word_add(&cohort->born_count_q16, after.count_q16 - before.count_q16);
}
