/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The time series of a site, in full: a bucket is found by its tick, and when
 * the last one is passed neighbours are merged.
 *
 * Every sum over the buckets is the same before and after a merge.
 */
#include "format/series.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/word.h"

#define BUCKETS_LOG2 7U
static_assert(SEEP_BUCKET_COUNT == 1U << BUCKETS_LOG2, "a tick has its era");

/* Of a sum of floats that was taken back nothing is left. */
#define LEAST_BLOCKS 1e-3F

uint32_t seep_series_width_for(uint64_t tick)
{
    uint32_t width = SEEP_FIRST_WIDTH_LOG2;

    while (tick >> width >= SEEP_BUCKET_COUNT) {
        width++;
    }
    return width;
}

uint32_t seep_series_edge(uint32_t tick, uint32_t final_tick)
{
    /* As seep_series_width_for(), without its loop: it is asked at each event.
     * A tick of n bits has fewer than 128 buckets of 2^(n - 7). */
    uint32_t bits = tick != 0 ? 32 - (uint32_t)__builtin_clz(tick) : 0;
    uint32_t width = bits > SEEP_FIRST_WIDTH_LOG2 + BUCKETS_LOG2
                         ? bits - BUCKETS_LOG2
                         : SEEP_FIRST_WIDTH_LOG2;

    if (final_tick != 0 && tick >= final_tick) {
        return final_tick;
    }
    return tick & ~((SEEP_ERA_BUCKETS << width) - 1);
}

/* Of a private copy of a damaged file the fields may be anything. */
static uint32_t width_of(const struct seep_rec_series *series)
{
    return seep_word_load(&series->width_log2) & 31;
}

static uint32_t last_of(const struct seep_rec_series *series)
{
    uint32_t last = seep_word_load(&series->last);

    return last < SEEP_BUCKET_COUNT ? last : SEEP_BUCKET_COUNT - 1;
}

void seep_series_start(struct seep_rec_series *series, uint32_t site,
                       uint32_t tick, uint64_t live_bytes)
{
    uint32_t width = seep_series_width_for(tick);
    uint32_t last = tick >> width;

    seep_word_store(&series->site, site);
    seep_word_store(&series->width_log2, width);
    seep_word_store(&series->last, last);
    /* What was born in this very tick may be in the base already: its cohort
     * begins with the next. */
    seep_word_store(&series->first_tick, live_bytes != 0 ? tick + 1 : tick);
    seep_word_store(&series->base_bytes, live_bytes);
    seep_word_store(&series->buckets[last].low_bytes, live_bytes);
}

struct seep_series_died seep_series_died(uint64_t word)
{
    struct seep_series_died died;
    uint32_t bytes = (uint32_t)word;
    uint32_t blocks = (uint32_t)(word >> 32);

    memcpy(&died.bytes, &bytes, sizeof(bytes));
    memcpy(&died.blocks, &blocks, sizeof(blocks));
    return died;
}

static uint64_t died_word(struct seep_series_died died)
{
    uint32_t bytes;
    uint32_t blocks;

    memcpy(&bytes, &died.bytes, sizeof(bytes));
    memcpy(&blocks, &died.blocks, sizeof(blocks));
    return (uint64_t)blocks << 32 | bytes;
}

uint64_t seep_series_died_sum(uint64_t left, uint64_t right)
{
    struct seep_series_died sum = seep_series_died(left);
    struct seep_series_died one = seep_series_died(right);

    sum.bytes += one.bytes;
    sum.blocks += one.blocks;
    return died_word(sum);
}

uint64_t seep_series_died_add(uint64_t word, struct seep_weight weight,
                              float sign)
{
    struct seep_series_died died = seep_series_died(word);

    died.bytes += sign * (float)weight.bytes;
    died.blocks += sign * (float)weight.count_q16 / (float)SEEP_COUNT_ONE;
    if (died.bytes < 1 ||
        (sign < 0 && weight.count_q16 != 0 && died.blocks < LEAST_BLOCKS)) {
        return 0;
    }
    return died_word(died);
}

static void widen_era(struct seep_rec_era *era)
{
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        uint64_t sum = 0;

        for (uint32_t j = 2 * i; j < 2 * i + 2 && j < SEEP_BUCKET_COUNT; j++) {
            sum = seep_series_died_sum(sum, seep_word_load(&era->died[j]));
        }
        seep_word_store(&era->died[i], sum);
    }
}

void seep_series_add_bucket(struct seep_rec_bucket *into,
                            const struct seep_rec_bucket *from)
{
    seep_word_add(&into->allocated_bytes,
                  seep_word_load(&from->allocated_bytes));
    seep_word_add(&into->freed_bytes, seep_word_load(&from->freed_bytes));
    seep_word_add(&into->born_count_q16, seep_word_load(&from->born_count_q16));
    seep_word_add(&into->born_freed_bytes,
                  seep_word_load(&from->born_freed_bytes));
    seep_word_add(&into->born_freed_count_q16,
                  seep_word_load(&from->born_freed_count_q16));
    seep_word_add(&into->died_bytes, seep_word_load(&from->died_bytes));
    seep_word_add(&into->died_count_q16, seep_word_load(&from->died_count_q16));
}

void seep_series_lower(struct seep_rec_bucket *bucket, uint64_t live_bytes)
{
    if (live_bytes < seep_word_load(&bucket->low_bytes)) {
        seep_word_store(&bucket->low_bytes, live_bytes);
    }
}

static void widen_once(struct seep_rec_series *series)
{
    struct seep_rec_bucket *buckets = series->buckets;
    uint32_t last = last_of(series);

    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT / 2; i++) {
        if (i != 0) {
            memcpy((void *)&buckets[i], (void *)&buckets[2 * i],
                   sizeof(buckets[0]));
        }
        seep_series_add_bucket(&buckets[i], &buckets[2 * i + 1]);
        if (2 * i + 1 <= last) {
            seep_series_lower(&buckets[i],
                              seep_word_load(&buckets[2 * i + 1].low_bytes));
        }
    }
    memset((void *)&buckets[SEEP_BUCKET_COUNT / 2], 0,
           SEEP_BUCKET_COUNT / 2 * sizeof(buckets[0]));
    for (uint32_t i = 0; i < SEEP_ERAS_KEPT; i++) {
        widen_era(&series->eras[i]);
    }
    seep_word_store(&series->last, last / 2);
    seep_word_store(&series->width_log2, width_of(series) + 1);
}

/* Merge neighbours until the width is at least @width_log2, which for a tick of
 * 32 bits is 25 at most. */
static void series_widen(struct seep_rec_series *series, uint32_t width_log2)
{
    while (width_of(series) < width_log2) {
        widen_once(series);
    }
}

/* The bucket of @tick, with every bucket up to it given its low. */
static struct seep_rec_bucket *bucket_at(struct seep_rec_series *series,
                                         uint32_t tick, uint64_t live_bytes)
{
    uint32_t index;
    uint32_t last;

    series_widen(series, seep_series_width_for(tick));
    index = tick >> width_of(series);
    last = last_of(series);
    for (uint32_t i = last + 1; i <= index; i++) {
        seep_word_store(&series->buckets[i].low_bytes, live_bytes);
    }
    if (index > last) {
        seep_word_store(&series->last, index);
    }
    return &series->buckets[index];
}

/* The bucket of a birth; NULL for one from before the series began. */
static struct seep_rec_bucket *cohort_of(struct seep_rec_series *series,
                                         uint32_t birth_tick)
{
    uint32_t index = birth_tick >> width_of(series);

    if (birth_tick < seep_word_load(&series->first_tick) ||
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

void seep_series_allocated(struct seep_rec_series *series, uint32_t tick,
                           uint64_t live_bytes, struct seep_weight weight)
{
    struct seep_rec_bucket *bucket;

    /* An event of another shard, folded late, can be from before the one that
     * began the series. */
    if (tick < seep_word_load(&series->first_tick)) {
        if (seep_word_load(&series->base_bytes) != 0) {
            seep_word_add(&series->base_bytes, weight.bytes);
            return;
        }
        seep_word_store(&series->first_tick, tick);
    }
    bucket = bucket_at(series, tick, live_bytes);
    seep_word_add(&bucket->allocated_bytes, weight.bytes);
    seep_word_add(&bucket->born_count_q16, weight.count_q16);
}

/* Room for era @edge at @at, between those after and those before it: the
 * oldest one is not kept. */
static void insert_era(struct seep_rec_series *series, uint32_t at,
                       uint32_t edge)
{
    for (uint32_t i = SEEP_ERAS_KEPT - 1; i > at; i--) {
        seep_word_copy(&series->era_edges[i], &series->era_edges[i - 1]);
        for (uint32_t j = 0; j < SEEP_BUCKET_COUNT; j++) {
            seep_word_copy(&series->eras[i].died[j],
                           &series->eras[i - 1].died[j]);
        }
    }
    seep_word_store(&series->era_edges[at], edge);
    for (uint32_t j = 0; j < SEEP_BUCKET_COUNT; j++) {
        seep_word_store(&series->eras[at].died[j], 0);
    }
}

/* The era that begins at @edge, mostly the last one: events of other shards
 * may be folded late. NULL: it is over for too long. */
static struct seep_rec_era *era_of(struct seep_rec_series *series,
                                   uint32_t edge)
{
    for (uint32_t i = 0; i < SEEP_ERAS_KEPT; i++) {
        uint32_t kept = seep_word_load(&series->era_edges[i]);

        if (edge > kept) {
            insert_era(series, i, edge);
            return &series->eras[i];
        }
        if (edge == kept) {
            return &series->eras[i];
        }
    }
    return NULL;
}

/* @sign: 1, or -1 for a death that is taken back. Most die in the era that
 * they were born in: nothing is to be told of those. */
static void account_era(struct seep_rec_series *series, uint32_t edge,
                        uint32_t birth_tick, struct seep_weight weight,
                        float sign)
{
    uint32_t index = birth_tick >> width_of(series);
    struct seep_rec_era *era;

    if (birth_tick >= edge || index >= SEEP_BUCKET_COUNT) {
        return;
    }
    era = era_of(series, edge);
    if (era != NULL) {
        seep_word_store(&era->died[index],
                        seep_series_died_add(seep_word_load(&era->died[index]),
                                             weight, sign));
    }
}

void seep_series_add_died(struct seep_rec_series *series, uint32_t edge,
                          uint32_t bucket, uint64_t word)
{
    struct seep_rec_era *era = era_of(series, edge);

    if (era != NULL) {
        seep_word_store(
            &era->died[bucket],
            seep_series_died_sum(seep_word_load(&era->died[bucket]), word));
    }
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

void seep_series_freed(struct seep_rec_series *series,
                       struct seep_series_moment when, uint32_t birth_tick,
                       uint64_t live_bytes, struct seep_weight weight)
{
    struct seep_rec_bucket *bucket = bucket_at(series, when.tick, live_bytes);

    account_death(series, bucket, when.tick, birth_tick, weight);
    account_era(series, when.edge, birth_tick, weight, 1);
    seep_series_lower(bucket, live_bytes - weight.bytes);
    /* Events of other shards may be folded late, behind the last bucket. */
    seep_series_lower(&series->buckets[last_of(series)],
                      live_bytes - weight.bytes);
}

bool seep_series_passed(struct seep_rec_series *series, uint32_t birth_tick,
                        uint32_t tick, uint64_t live_bytes,
                        struct seep_weight weight)
{
    uint32_t width = width_of(series);
    uint32_t last = last_of(series);
    struct seep_rec_bucket *bucket = &series->buckets[last];

    if (tick >> width != last || birth_tick >> width != last ||
        birth_tick < seep_word_load(&series->first_tick)) {
        return false;
    }
    seep_word_add(&bucket->allocated_bytes, weight.bytes);
    seep_word_add(&bucket->born_count_q16, weight.count_q16);
    account_death(series, bucket, tick, birth_tick, weight);
    seep_series_lower(bucket, live_bytes);
    return true;
}

void seep_series_restored(struct seep_rec_series *series,
                          struct seep_series_moment when, uint32_t birth_tick,
                          struct seep_weight weight)
{
    uint32_t index = when.tick >> width_of(series);

    if (index < SEEP_BUCKET_COUNT) {
        account_death(
            series, &series->buckets[index], when.tick, birth_tick,
            (struct seep_weight){0 - weight.bytes, 0 - weight.count_q16});
        account_era(series, when.edge, birth_tick, weight, -1);
    }
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
