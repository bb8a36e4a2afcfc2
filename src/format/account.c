/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A site's totals and series by one event; see account.h. */
#include "format/account.h"

#include "base/word.h"
#include "format/series.h"

/* What a site must hold to be given a series when few are left, and how long
 * it must have been there, by how many quarters of the pool are used: what a
 * program makes as it starts comes once, and never grows. */
#define SERIES_AT_BYTES (UINT64_C(64) << 10)
#define SERIES_QUARTERS 4U
static const uint32_t series_after_ticks[SERIES_QUARTERS] = {0, 1000, 4000,
                                                             16000};

uint64_t seep_account_live_bytes(const struct seep_rec_site *site)
{
    uint64_t allocated = seep_word_load(&site->allocated_bytes);
    uint64_t freed = seep_word_load(&site->freed_bytes);

    /* An event that was under way when its folder was abandoned may have been
     * applied twice. */
    return freed < allocated ? allocated - freed : 0;
}

struct seep_weight seep_account_weight(const struct seep_block *block)
{
    struct seep_weight weight = seep_weight_of(block->size, block->sample_log2);

    if (block->fragment) {
        weight.count_q16 = 0;
    }
    return weight;
}

/* The series that a site has; NULL if none. */
static struct seep_rec_series *series_at(const struct seep_view *view,
                                         uint32_t index)
{
    uint32_t number =
        atomic_load_explicit(&view->sites[index].series, memory_order_relaxed);

    return number != 0 && number <= view->series_capacity
               ? &view->series[number - 1]
               : NULL;
}

/* Is it worth a series, at an event of @tick? What is charged to no call site
 * always is. */
static bool deserves_series(const struct seep_view *view, uint32_t index,
                            uint32_t tick, uint64_t live, uint32_t used)
{
    const struct seep_rec_site *site = &view->sites[index];
    uint32_t first =
        atomic_load_explicit(&site->first_tick, memory_order_relaxed);
    uint64_t quarter = (uint64_t)used * SERIES_QUARTERS / view->series_capacity;

    if (index == 0 || quarter == 0) {
        return true;
    }
    if (seep_word_load(&site->event_count) == 0 || tick < first ||
        tick - first < series_after_ticks[quarter]) {
        return false;
    }
    return quarter < SERIES_QUARTERS - 1 || live >= SERIES_AT_BYTES;
}

/* The series of a site, given from the pool if it is worth one. */
static struct seep_rec_series *series_of(const struct seep_view *view,
                                         uint32_t index, uint32_t tick)
{
    struct seep_rec_site *site = &view->sites[index];
    uint64_t live = seep_account_live_bytes(site);
    uint32_t used;

    if (atomic_load_explicit(&site->series, memory_order_relaxed) != 0) {
        return series_at(view, index);
    }
    used =
        atomic_load_explicit(&view->header->series_count, memory_order_relaxed);
    do {
        if (used >= view->series_capacity ||
            !deserves_series(view, index, tick, live, used)) {
            return NULL;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &view->header->series_count, &used, used + 1, memory_order_relaxed,
        memory_order_relaxed));
    seep_series_start(&view->series[used], index, tick, live);
    atomic_store_explicit(&site->series, used + 1, memory_order_relaxed);
    return &view->series[used];
}

/* Events of other shards may be folded late: neither tick is the last seen. */
static void touch(struct seep_rec_site *site, uint32_t tick)
{
    uint32_t first =
        atomic_load_explicit(&site->first_tick, memory_order_relaxed);
    uint32_t last =
        atomic_load_explicit(&site->last_tick, memory_order_relaxed);

    if (seep_word_load(&site->event_count) == 0 || tick < first) {
        atomic_store_explicit(&site->first_tick, tick, memory_order_relaxed);
    }
    if (tick > last) {
        atomic_store_explicit(&site->last_tick, tick, memory_order_relaxed);
    }
    seep_word_add(&site->event_count, 1);
}

void seep_account_allocated(const struct seep_view *view,
                            const struct seep_block *block)
{
    struct seep_rec_site *site = &view->sites[block->site];
    struct seep_rec_series *series =
        series_of(view, block->site, block->birth_tick);
    struct seep_weight weight = seep_account_weight(block);
    uint64_t live = seep_account_live_bytes(site);

    if (series != NULL) {
        seep_series_allocated(series, block->birth_tick, live, weight);
    } else if (live < SERIES_AT_BYTES &&
               live + weight.bytes >= SERIES_AT_BYTES &&
               atomic_load_explicit(&view->header->series_count,
                                    memory_order_relaxed) >=
                   view->series_capacity) {
        seep_view_count(view, SEEP_COUNT_SERIES_FULL, 1);
    }
    seep_word_add(&site->allocated_bytes, weight.bytes);
    seep_word_add(&site->allocated_count_q16, weight.count_q16);
    if (live + weight.bytes > seep_word_load(&site->peak_bytes)) {
        seep_word_store(&site->peak_bytes, live + weight.bytes);
    }
    if (block->size > seep_word_load(&site->largest_bytes)) {
        seep_word_store(&site->largest_bytes, block->size);
    }
    touch(site, block->birth_tick);
}

bool seep_account_freed(const struct seep_view *view, uint32_t site,
                        uint32_t tick, uint32_t birth_tick,
                        struct seep_weight weight)
{
    struct seep_rec_site *entry = &view->sites[site];
    struct seep_rec_series *series = series_of(view, site, tick);

    if (series != NULL) {
        seep_series_freed(series, tick, birth_tick,
                          seep_account_live_bytes(entry), weight);
    }
    seep_word_add(&entry->freed_bytes, weight.bytes);
    seep_word_add(&entry->freed_count_q16, weight.count_q16);
    touch(entry, tick);
    return series != NULL;
}

void seep_account_restored(const struct seep_view *view, uint32_t tick,
                           const struct seep_block *block)
{
    struct seep_rec_site *entry = &view->sites[block->site];
    struct seep_rec_series *series = series_at(view, block->site);
    struct seep_weight weight = seep_account_weight(block);

    if (series != NULL && block->in_series) {
        seep_series_restored(series, tick, block->birth_tick, weight);
    } else if (series != NULL) {
        seep_series_found(series, weight); /* it began in between */
    }
    seep_word_add(&entry->freed_bytes, 0 - weight.bytes);
    seep_word_add(&entry->freed_count_q16, 0 - weight.count_q16);
}

void seep_account_reweighed(const struct seep_view *view, uint32_t site,
                            uint32_t birth_tick, struct seep_weight before,
                            struct seep_weight after)
{
    struct seep_rec_site *entry = &view->sites[site];
    struct seep_rec_series *series = series_of(view, site, birth_tick);

    if (series != NULL) {
        seep_series_reweighed(series, birth_tick, before, after);
    }
    seep_word_add(&entry->allocated_bytes, after.bytes - before.bytes);
    seep_word_add(&entry->allocated_count_q16,
                  after.count_q16 - before.count_q16);
}
