/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From what was asked for to what it takes of memory; see footprint.h.
 *
 * Invariant: a block takes no less than was asked for, and nothing that a
 * damaged file says makes a figure go round.
 */
#include "reader/recording/footprint.h"

#include <errno.h>
#include <stdlib.h>

#include "format/live.h"
#include "reader/recording/series.h"

#define GRAIN UINT64_C(16)
#define PAGE UINT64_C(4096)

/*
 * The size classes. Of those that share one (a slab's own header, guards)
 * nothing is told: it is less than 2 %.
 */

static uint64_t up_to(uint64_t bytes, uint64_t grain)
{
    return (bytes + grain - 1) & ~(grain - 1);
}

#define GLIBC_HEADER UINT64_C(8)
#define GLIBC_LEAST UINT64_C(32)
/* It never maps a smaller one by itself (DEFAULT_MMAP_THRESHOLD_MIN). */
#define GLIBC_MAPPED_LEAST (UINT64_C(128) << 10)

/* What it has mapped for this block alone begins 16 bytes behind a page. */
static uint64_t glibc_takes(uint64_t address, uint64_t bytes)
{
    uint64_t chunk = up_to(bytes + GLIBC_HEADER, GRAIN);

    if (chunk >= GLIBC_MAPPED_LEAST && address % PAGE == GRAIN) {
        return up_to(chunk + GLIBC_HEADER, PAGE);
    }
    return chunk < GLIBC_LEAST ? GLIBC_LEAST : chunk;
}

/* jemalloc, mimalloc: multiples of 16 up to 128, then as many classes from one
 * power of two to the next; tcmalloc has eight. What is large is pages, of
 * which those behind its end are never written to. */
#define CLASSES_LOG2 2U
#define TCMALLOC_CLASSES_LOG2 3U
#define TINY_MOST UINT64_C(8)
#define SPACED_LEAST UINT64_C(128)
#define LARGE_LEAST (UINT64_C(14) << 10)
#define TCMALLOC_LARGE_LEAST (UINT64_C(32) << 10)

static uint64_t class_of(uint64_t bytes, unsigned classes_log2,
                         uint64_t large_least)
{
    unsigned power;

    if (bytes <= TINY_MOST) {
        return TINY_MOST;
    }
    if (bytes > large_least) {
        return up_to(bytes, PAGE);
    }
    if (bytes <= SPACED_LEAST) {
        return up_to(bytes, GRAIN);
    }
    power = 63 - (unsigned)__builtin_clzll(bytes - 1);
    return up_to(bytes, UINT64_C(1) << (power - classes_log2));
}

static uint64_t malloc_takes(enum seep_allocator_kind allocator,
                             uint64_t address, uint64_t bytes)
{
    switch (allocator) {
    case SEEP_ALLOCATOR_GLIBC:
        return glibc_takes(address, bytes);
    case SEEP_ALLOCATOR_JEMALLOC:
    case SEEP_ALLOCATOR_MIMALLOC:
        return class_of(bytes, CLASSES_LOG2, LARGE_LEAST);
    case SEEP_ALLOCATOR_TCMALLOC:
        return class_of(bytes, TCMALLOC_CLASSES_LOG2, TCMALLOC_LARGE_LEAST);
    default:
        return bytes;
    }
}

#define PYMALLOC_MOST UINT64_C(512) /* SMALL_REQUEST_THRESHOLD */

uint64_t seep_footprint_of(enum seep_allocator_kind allocator,
                           enum seep_space space, uint64_t address,
                           uint64_t size_bytes)
{
    if (size_bytes > SEEP_SIZE_MASK ||
        (space != SEEP_SPACE_HEAP && space != SEEP_SPACE_PYTHON)) {
        return size_bytes;
    }
    if (space == SEEP_SPACE_PYTHON && size_bytes <= PYMALLOC_MOST) {
        return size_bytes == 0 ? GRAIN : up_to(size_bytes, GRAIN);
    }
    return malloc_takes(allocator, address, size_bytes);
}

/*
 * The totals and series of a site, which have bytes alone: those that live are
 * known block by block, those that are gone by their mean. What is still there
 * of any moment is taken to be what lives now, as far as that goes.
 */

struct rates {
    double live;
    double gone;
};

static uint64_t times(uint64_t bytes, double rate)
{
    double product = (double)bytes * rate;

    return (int64_t)bytes < 0 || !(product < 0x1p62)
               ? bytes
               : (uint64_t)(product + 0.5);
}

/* What @more adds to *@sum, charged: the sum of these is the charged sum. */
static uint64_t add_times(uint64_t *sum, uint64_t more, double rate)
{
    uint64_t before = times(*sum, rate);

    *sum += more;
    return times(*sum, rate) - before;
}

static uint64_t blend(uint64_t bytes, uint64_t live, const struct rates *rates)
{
    uint64_t living = bytes < live ? bytes : live;

    return times(living, rates->live) + times(bytes - living, rates->gone);
}

static void charge_word(_Atomic uint64_t *word, uint64_t live,
                        const struct rates *rates)
{
    seep_word_store(word, blend(seep_word_load(word), live, rates));
}

/* So far, of the buckets of a series. */
struct sums {
    uint64_t kept;
    uint64_t born_freed;
    uint64_t freed;
    uint64_t died;
};

static void charge_bucket(struct seep_rec_bucket *bucket, struct sums *sums,
                          uint64_t live, const struct rates *rates)
{
    uint64_t born_freed = seep_word_load(&bucket->born_freed_bytes);
    uint64_t kept = seep_word_load(&bucket->allocated_bytes) - born_freed;

    born_freed = add_times(&sums->born_freed, born_freed, rates->gone);
    kept = add_times(&sums->kept, kept, rates->live);
    seep_word_store(&bucket->born_freed_bytes, born_freed);
    seep_word_store(&bucket->allocated_bytes, kept + born_freed);
    seep_word_store(&bucket->freed_bytes,
                    add_times(&sums->freed,
                              seep_word_load(&bucket->freed_bytes),
                              rates->gone));
    seep_word_store(&bucket->died_bytes,
                    add_times(&sums->died, seep_word_load(&bucket->died_bytes),
                              rates->gone));
    charge_word(&bucket->low_bytes, live, rates);
}

static void charge_buckets(struct seep_rec_bucket *buckets, uint32_t count,
                           uint64_t live, const struct rates *rates,
                           _Atomic uint64_t *base_bytes)
{
    struct sums sums = {0};
    uint64_t base = seep_word_load(base_bytes);
    uint64_t base_freed;

    for (uint32_t i = 0; i < count; i++) {
        charge_bucket(&buckets[i], &sums, live, rates);
    }
    base_freed = sums.freed - sums.born_freed;
    base_freed = base_freed < base ? base_freed : base;
    seep_word_store(base_bytes, times(base - base_freed, rates->live) +
                                    times(base_freed, rates->gone));
}

static void charge_series(const struct seep_view *view, uint32_t index,
                          uint64_t live, const struct rates *rates)
{
    struct seep_series_source source = seep_series_source_of(view, index);

    if (source.kind == SEEP_SERIES_WHOLE) {
        charge_buckets(source.from.series->buckets, SEEP_BUCKET_COUNT, live,
                       rates, &source.from.series->base_bytes);
    } else if (source.kind == SEEP_SERIES_BRIEF) {
        struct seep_rec_brief *brief =
            (struct seep_rec_brief *)(uintptr_t)source.from.brief;

        charge_buckets(brief->buckets, SEEP_BRIEF_BUCKETS, live, rates,
                       &brief->base_bytes);
    }
}

static void charge_totals(struct seep_rec_site *site,
                          enum seep_allocator_kind allocator, uint64_t live,
                          const struct rates *rates)
{
    uint64_t freed = times(seep_word_load(&site->freed_bytes), rates->gone);
    uint64_t largest = seep_word_load(&site->largest_bytes);

    charge_word(&site->peak_bytes, live, rates);
    seep_word_store(
        &site->largest_bytes,
        seep_footprint_of(allocator, (enum seep_space)site->space, 0, largest));
    if (live > 0) {
        seep_word_store(&site->allocated_bytes,
                        times(live, rates->live) + freed);
    } else {
        seep_word_store(
            &site->allocated_bytes,
            times(seep_word_load(&site->allocated_bytes), rates->gone));
    }
    seep_word_store(&site->freed_bytes, freed);
}

/* Of the blocks that live of a site. */
struct living {
    double requested;
    double taken;
};

static double rate_of_mean(const struct seep_rec_site *site,
                           enum seep_allocator_kind allocator, double bytes,
                           double count)
{
    double mean = count > 0 ? bytes / count : 0;
    uint64_t size = mean < 0x1p47 ? (uint64_t)(mean + 0.5) : 0;

    return size == 0 ? 1
                     : (double)seep_footprint_of(
                           allocator, (enum seep_space)site->space, 0, size) /
                           (double)size;
}

static struct rates rates_of(struct seep_rec_site *site,
                             enum seep_allocator_kind allocator,
                             const struct living *living)
{
    double count =
        (double)seep_word_load(&site->freed_count_q16) / (double)SEEP_COUNT_ONE;
    double freed = (double)seep_word_load(&site->freed_bytes);
    struct rates rates = {1, rate_of_mean(site, allocator, freed, count)};

    if (living->requested > 0) {
        rates.live = living->taken / living->requested;
    } else {
        rates.live = rate_of_mean(
            site, allocator, (double)seep_word_load(&site->allocated_bytes),
            (double)seep_word_load(&site->allocated_count_q16) /
                (double)SEEP_COUNT_ONE);
    }
    return rates;
}

static void add_living(const struct seep_view *view,
                       enum seep_allocator_kind allocator,
                       struct living *living)
{
    for (uint32_t i = 0; i < view->live_capacity; i++) {
        struct seep_block block = seep_live_read(&view->live[i]);
        double share;

        if (block.address == 0 || block.site >= view->site_capacity) {
            continue;
        }
        share = seep_weight_probability(block.size, block.sample_log2);
        living[block.site].requested += (double)block.size / share;
        living[block.site].taken +=
            (double)seep_footprint_of(
                allocator, (enum seep_space)view->sites[block.site].space,
                block.address, block.size) /
            share;
    }
}

static void charge_site(struct seep_snapshot *snapshot, uint32_t index,
                        enum seep_allocator_kind allocator,
                        const struct living *living)
{
    struct seep_rec_site *site = &snapshot->view.sites[index];
    uint64_t allocated = seep_word_load(&site->allocated_bytes);
    uint64_t freed = seep_word_load(&site->freed_bytes);
    uint64_t live = allocated > freed ? allocated - freed : 0;
    struct rates rates;

    snapshot->requested[index] =
        (struct seep_report_requested){live, allocated, freed};
    if ((site->space != SEEP_SPACE_HEAP && site->space != SEEP_SPACE_PYTHON) ||
        allocated == 0) {
        return;
    }
    rates = rates_of(site, allocator, living);
    charge_series(&snapshot->view, index, live, &rates);
    charge_totals(site, allocator, live, &rates);
}

int seep_footprint_charge(struct seep_snapshot *snapshot,
                          enum seep_allocator_kind allocator, double *ret_rate)
{
    const struct seep_view *view = &snapshot->view;
    size_t count = (size_t)view->site_capacity + 1;
    struct living all = {0};
    struct living *living = calloc(count, sizeof(*living));

    snapshot->requested = calloc(count, sizeof(*snapshot->requested));
    if (living == NULL || snapshot->requested == NULL) {
        free(living);
        return -ENOMEM;
    }
    snapshot->allocator = allocator;
    add_living(view, allocator, living);
    for (uint32_t i = 0; i < view->site_capacity; i++) {
        if (seep_sites_is_used(&view->sites[i], i)) {
            charge_site(snapshot, i, allocator, &living[i]);
        }
        all.requested += living[i].requested;
        all.taken += living[i].taken;
    }
    *ret_rate = all.requested > 0 ? all.taken / all.requested : 1;
    free(living);
    return 0;
}
