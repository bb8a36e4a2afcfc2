/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Totals and series of the sites as they were; see rewind.h.
 *
 * What is known: by buckets what was allocated and freed since the moment; of
 * the deaths since, those of blocks born before it, by their birth. The others
 * are of blocks born since. An edge of an era is an edge of buckets; of exit(),
 * which is not, the site has its totals.
 */
#include <math.h>

#include "format/account.h"
#include "format/series.h"
#include "reader/recording/rewind.h"
#include "reader/recording/series.h"

/* Buckets before the moment that tell what is kept of what was just born. */
#define RECENT 4U

/* What happened to one site since the moment. */
struct since {
    uint32_t width; /* of its series, log2 of ticks */
    uint32_t first; /* bucket that the moment is in, or begins */
    bool inside;    /* it is inside: part of the bucket stays */
    uint64_t allocated_bytes;
    uint64_t freed_bytes;
    uint64_t born_count_q16;
    double old_bytes; /* of the freed: born before the moment */
    double old_blocks;
    double died_bytes[SEEP_BUCKET_COUNT]; /* the same by bucket of birth */
    double died_blocks[SEEP_BUCKET_COUNT];
};

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t whole(double value)
{
    return value > 0 ? (uint64_t)fmin(round(value), 1e18) : 0;
}

/* Take up to @most away from @word. @return what was taken */
static uint64_t take(_Atomic uint64_t *word, uint64_t most)
{
    uint64_t had = seep_word_load(word);

    seep_word_store(word, less(had, most));
    return least(had, most);
}

static void scale(_Atomic uint64_t *word, double share)
{
    seep_word_store(word, whole((double)seep_word_load(word) * share));
}

struct seep_rec_series *seep_rewind_series_of(const struct seep_view *view,
                                              uint32_t index)
{
    uint32_t number = seep_word_load(&view->sites[index].series);

    return number != 0 && number <= view->series_capacity
               ? &view->series[number - 1]
               : NULL;
}

/* Who died since and was born before. */
static void read_eras(struct seep_rec_series *series, uint32_t moment,
                      struct since *since)
{
    for (uint32_t era = 0; era < SEEP_ERAS_KEPT; era++) {
        if (seep_word_load(&series->era_edges[era]) < moment) {
            continue;
        }
        for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
            struct seep_series_died died =
                seep_series_died(seep_word_load(&series->eras[era].died[i]));

            /* Of a damaged file it may be anything. */
            if ((uint64_t)i << since->width >= moment || !(died.bytes > 0) ||
                !(died.bytes < 1e15F) || !(died.blocks >= 0) ||
                !(died.blocks < 1e15F)) {
                continue;
            }
            since->died_bytes[i] += (double)died.bytes;
            since->died_blocks[i] += (double)died.blocks;
            since->old_bytes += (double)died.bytes;
            since->old_blocks += (double)died.blocks;
        }
    }
}

/* By buckets; that which the moment is inside of by the totals that the site
 * had then. */
static void read_flows(struct seep_rec_site *site,
                       struct seep_rec_series *series, uint32_t moment,
                       struct since *since)
{
    uint64_t allocated;

    for (uint32_t i = since->first + since->inside; i < SEEP_BUCKET_COUNT;
         i++) {
        struct seep_rec_bucket *bucket = &series->buckets[i];

        since->allocated_bytes += seep_word_load(&bucket->allocated_bytes);
        since->freed_bytes += seep_word_load(&bucket->freed_bytes);
        since->born_count_q16 += seep_word_load(&bucket->born_count_q16);
    }
    if (!since->inside) {
        return;
    }
    if (seep_word_load(&site->edge_tick) != moment) {
        since->first++; /* nothing happened in the rest of the bucket */
        since->inside = false;
        return;
    }
    allocated = less(seep_word_load(&site->allocated_bytes),
                     seep_word_load(&site->edge_allocated_bytes));
    since->freed_bytes = less(seep_word_load(&site->freed_bytes),
                              seep_word_load(&site->edge_freed_bytes));
    if (since->first < SEEP_BUCKET_COUNT) {
        struct seep_rec_bucket *bucket = &series->buckets[since->first];
        double born = (double)seep_word_load(&bucket->allocated_bytes);
        double late = (double)less(allocated, since->allocated_bytes);

        since->born_count_q16 +=
            whole((double)seep_word_load(&bucket->born_count_q16) *
                  (born > 0 ? fmin(late / born, 1) : 0));
    }
    since->allocated_bytes = allocated;
}

/* Take deaths out of the bins of ages from @high down to @low, then wherever
 * there are any below. */
static void take_ages(struct seep_rec_series *series, uint64_t high,
                      double bytes, double blocks)
{
    uint64_t left = whole(bytes);
    uint64_t count = whole(blocks * (double)SEEP_COUNT_ONE);

    for (uint64_t i = least(high, SEEP_BUCKET_COUNT - 1) + 1; i-- > 0;) {
        struct seep_rec_bucket *bucket = &series->buckets[i];

        left -= take(&bucket->died_bytes, left);
        count -= take(&bucket->died_count_q16, count);
    }
}

/* Of the blocks born just before the moment, the share that lived at it. */
static double kept_share(struct seep_rec_series *series,
                         const struct since *since)
{
    double born = 0;
    double lived = 0;
    uint32_t end =
        since->first < SEEP_BUCKET_COUNT ? since->first : SEEP_BUCKET_COUNT;

    for (uint32_t i = end > RECENT ? end - RECENT : 0; i < end; i++) {
        struct seep_rec_bucket *bucket = &series->buckets[i];
        uint64_t allocated = seep_word_load(&bucket->allocated_bytes);

        born += (double)allocated;
        lived +=
            (double)less(allocated, seep_word_load(&bucket->born_freed_bytes));
    }
    return born > 0 ? lived / born : 0;
}

/*
 * Deaths since of blocks born since. Until the fall they came and went as
 * before it: of them such a share was kept, and died in it, at what age they
 * had by then. The others were as young as others are.
 */
static void take_young_ages(struct seep_rec_site *site,
                            struct seep_rec_series *series, uint32_t moment,
                            const struct since *since)
{
    double bytes = fmax((double)since->freed_bytes - since->old_bytes, 0);
    double old =
        fmin(kept_share(series, since) * (double)since->allocated_bytes, bytes);
    double blocks = (double)since->born_count_q16 / (double)SEEP_COUNT_ONE;

    if (since->allocated_bytes > 0) {
        take_ages(series,
                  less(seep_word_load(&site->last_tick), moment) >>
                      since->width,
                  old, blocks * old / (double)since->allocated_bytes);
    }
    bytes -= old;
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT && bytes >= 1; i++) {
        struct seep_rec_bucket *bucket = &series->buckets[i];
        double had = (double)seep_word_load(&bucket->died_bytes);
        double share = had > 0 ? fmin(bytes / had, 1) : 0;

        scale(&bucket->died_bytes, 1 - share);
        scale(&bucket->died_count_q16, 1 - share);
        bytes -= had * share;
    }
}

static void rewind_ages(const struct seep_rewind *rewind,
                        struct seep_rec_site *site,
                        struct seep_rec_series *series,
                        const struct since *since)
{
    uint64_t end = seep_word_load(&site->last_tick);

    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        uint64_t born = (uint64_t)i << since->width;

        if (since->died_bytes[i] > 0 && born < rewind->moment) {
            take_ages(series, less(end, born) >> since->width,
                      since->died_bytes[i], since->died_blocks[i]);
        }
    }
    take_young_ages(site, series, rewind->moment, since);
}

/* Those born before the moment live again. Of a bucket from before the series
 * they were in its base, of the first one some may have been. */
static void rewind_cohorts(struct seep_rec_series *series,
                           const struct since *since)
{
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        struct seep_rec_bucket *bucket = &series->buckets[i];

        take(&bucket->born_freed_bytes, whole(since->died_bytes[i]));
        take(&bucket->born_freed_count_q16,
             whole(since->died_blocks[i] * (double)SEEP_COUNT_ONE));
    }
}

static void clear_bucket(struct seep_rec_bucket *bucket)
{
    seep_word_store(&bucket->allocated_bytes, 0);
    seep_word_store(&bucket->freed_bytes, 0);
    seep_word_store(&bucket->low_bytes, 0);
    seep_word_store(&bucket->born_count_q16, 0);
    seep_word_store(&bucket->born_freed_bytes, 0);
    seep_word_store(&bucket->born_freed_count_q16, 0);
}

/* The bucket that the moment is inside of: its part before it. @later: what was
 * allocated and freed in the buckets behind */
static void cut_bucket(struct seep_rec_series *series,
                       const struct since *since, uint64_t later_allocated,
                       uint64_t later_freed,
                       const struct seep_rewind_young *young, uint64_t live)
{
    struct seep_rec_bucket *bucket = &series->buckets[since->first];
    uint64_t had = seep_word_load(&bucket->allocated_bytes);
    uint64_t kept = less(had, less(since->allocated_bytes, later_allocated));
    double share = had > 0 ? (double)kept / (double)had : 0;
    /* Its deaths of old are taken back already. */
    uint64_t gone = seep_word_load(&bucket->born_freed_bytes);
    uint64_t alive = less(less(had, gone), young->beside_bytes);
    double gone_share =
        gone > 0 ? fmin((double)less(kept, alive) / (double)gone, 1) : 0;

    uint64_t kept_freed = less(seep_word_load(&bucket->freed_bytes),
                               less(since->freed_bytes, later_freed));
    uint64_t started = less(live + kept_freed, kept); /* live at its start */

    seep_word_store(&bucket->allocated_bytes, kept);
    seep_word_store(&bucket->freed_bytes, kept_freed);
    scale(&bucket->born_count_q16, share);
    scale(&bucket->born_freed_bytes, gone_share);
    scale(&bucket->born_freed_count_q16, gone_share);
    /* It may have been lower behind the moment: not lower than both ends. */
    if (least(live, started) > seep_word_load(&bucket->low_bytes)) {
        seep_word_store(&bucket->low_bytes, least(live, started));
    }
}

static void rewind_buckets(struct seep_rec_series *series,
                           const struct since *since, uint32_t moment,
                           const struct seep_rewind_young *young, uint64_t live)
{
    uint64_t allocated = 0;
    uint64_t freed = 0;
    uint32_t last = (moment - 1) >> since->width;

    for (uint32_t i = since->first + since->inside; i < SEEP_BUCKET_COUNT;
         i++) {
        allocated += seep_word_load(&series->buckets[i].allocated_bytes);
        freed += seep_word_load(&series->buckets[i].freed_bytes);
        clear_bucket(&series->buckets[i]);
    }
    if (since->inside && since->first < SEEP_BUCKET_COUNT) {
        cut_bucket(series, since, allocated, freed, young, live);
    }
    if (seep_word_load(&series->last) > last) {
        seep_word_store(&series->last, last);
    }
}

static void put_back(struct seep_rewind *rewind, uint32_t index,
                     const struct since *since)
{
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        uint64_t from = (uint64_t)i << since->width;
        uint64_t to = least((uint64_t)(i + 1) << since->width, rewind->moment);

        if (since->died_bytes[i] >= 1 && from < to) {
            seep_rewind_put_back(rewind, index, (uint32_t)from, (uint32_t)to,
                                 since->died_bytes[i], since->died_blocks[i]);
        }
    }
}

static void rewind_totals(struct seep_rec_site *site, const struct since *since,
                          const struct seep_rewind_young *young)
{
    uint64_t allocated = seep_word_load(&site->allocated_count_q16);
    uint64_t freed = seep_word_load(&site->freed_count_q16);
    uint64_t live = less(allocated, freed);

    live = less(live, young->count_q16) +
           whole(since->old_blocks * (double)SEEP_COUNT_ONE);
    allocated = less(allocated, since->born_count_q16);
    seep_word_store(&site->allocated_count_q16, allocated);
    seep_word_store(&site->freed_count_q16, less(allocated, live));
    take(&site->allocated_bytes, since->allocated_bytes);
    take(&site->freed_bytes, since->freed_bytes);
}

static void rewind_with_series(struct seep_rewind *rewind, uint32_t index,
                               struct seep_rec_series *series)
{
    struct seep_rec_site *site = &rewind->snapshot->view.sites[index];
    const struct seep_rewind_young *young = &rewind->young[index];
    struct since since = {.width = seep_word_load(&series->width_log2) & 31};

    since.first = rewind->moment >> since.width;
    since.inside = since.first << since.width != rewind->moment;
    read_eras(series, rewind->moment, &since);
    read_flows(site, series, rewind->moment, &since);
    rewind_totals(site, &since, young);
    rewind_cohorts(series, &since);
    rewind_ages(rewind, site, series, &since);
    rewind_buckets(series, &since, rewind->moment, young,
                   seep_account_live_bytes(site));
    put_back(rewind, index, &since);
}

/* Its totals at the edge of its last era are all there is: of an era that began
 * later than the moment they are what is nearest. */
static void rewind_without_series(struct seep_rewind *rewind, uint32_t index)
{
    struct seep_rec_site *site = &rewind->snapshot->view.sites[index];
    const struct seep_rewind_young *young = &rewind->young[index];
    uint64_t allocated = seep_word_load(&site->edge_allocated_bytes);
    uint64_t live = less(allocated, seep_word_load(&site->edge_freed_bytes));
    uint64_t count = seep_word_load(&site->edge_live_count_q16);
    uint64_t had = less(seep_account_live_bytes(site), young->bytes);
    uint64_t had_count = less(less(seep_word_load(&site->allocated_count_q16),
                                   seep_word_load(&site->freed_count_q16)),
                              young->count_q16);
    uint32_t first = seep_word_load(&site->first_tick);
    double share;

    if (seep_word_load(&site->edge_tick) < rewind->moment ||
        allocated > seep_word_load(&site->allocated_bytes)) {
        return;
    }
    share = (double)allocated /
            fmax((double)seep_word_load(&site->allocated_bytes), 1);
    if (live > had && first < rewind->moment) {
        seep_rewind_put_back(
            rewind, index, first, first + 1, (double)(live - had),
            (double)less(count, had_count) / (double)SEEP_COUNT_ONE);
    }
    seep_word_store(&site->allocated_bytes, allocated);
    seep_word_store(&site->freed_bytes, less(allocated, live));
    allocated =
        whole((double)seep_word_load(&site->allocated_count_q16) * share);
    seep_word_store(&site->allocated_count_q16, allocated);
    seep_word_store(&site->freed_count_q16, less(allocated, count));
}

void seep_rewind_sites(struct seep_rewind *rewind)
{
    const struct seep_view *view = &rewind->snapshot->view;

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        struct seep_rec_site *site = &view->sites[i];
        struct seep_rec_series *series = seep_rewind_series_of(view, i);

        if (!seep_sites_is_used(site, i) ||
            seep_word_load(&site->last_tick) < rewind->moment) {
            continue;
        }
        if (series != NULL) {
            rewind_with_series(rewind, i, series);
        } else {
            rewind_without_series(rewind, i);
        }
        seep_word_store(&site->last_tick, rewind->moment - 1);
        if (seep_word_load(&site->first_tick) >= rewind->moment) {
            seep_word_store(&site->first_tick, rewind->moment - 1);
            seep_word_store(&site->event_count, 0); /* it was not there yet */
        }
    }
}
