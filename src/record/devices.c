/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the GPUs have left, one sample a bucket and device; when the last
 * bucket is passed neighbours are merged, those of all devices at once. */
#include "record/devices.h"

#include <string.h>

#include "base/word.h"
#include "format/series.h"

/* Who writes for so long is gone, by a jump or a cancellation. */
#define GONE_TICKS 4096U

static _Atomic uint32_t busy; /* tick + 1 of who writes; 0: nobody */

/* Only touched by who holds busy. */
static uint32_t width_log2 = SEEP_FIRST_WIDTH_LOG2;

void seep_devices_start(void)
{
    seep_word_store(&busy, 0);
    width_log2 = SEEP_FIRST_WIDTH_LOG2;
}

static bool try_enter(uint32_t tick)
{
    uint32_t since = seep_word_load(&busy);

    if (since != 0 && tick < since + GONE_TICKS) {
        return false;
    }
    /* Acquire: the width of who wrote last; pairs with the release at the end
     * of seep_devices_take(). */
    return atomic_compare_exchange_strong_explicit(
        &busy, &since, tick + 1, memory_order_acquire, memory_order_relaxed);
}

/* Of two neighbours the later sample stays, with the lower low. */
static void merge(struct seep_rec_device *into,
                  const struct seep_rec_device *left,
                  const struct seep_rec_device *right)
{
    bool has_right = seep_word_load(&right->tick) != 0;
    uint64_t low = seep_word_load(&left->low_free_bytes);
    struct seep_rec_device copy;

    memcpy((void *)&copy, (const void *)(has_right ? right : left),
           sizeof(copy));
    if (has_right && seep_word_load(&left->tick) != 0 &&
        low < seep_word_load(&copy.low_free_bytes)) {
        seep_word_store(&copy.low_free_bytes, low);
    }
    memcpy((void *)into, (const void *)&copy, sizeof(copy));
}

static void widen(struct seep_rec_device *moments)
{
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT / 2; i++) {
        merge(&moments[i], &moments[2 * i], &moments[2 * i + 1]);
    }
    memset((void *)&moments[SEEP_BUCKET_COUNT / 2], 0,
           SEEP_BUCKET_COUNT / 2 * sizeof(moments[0]));
}

/* Of a device that was never told of there is nothing, nor may be touched. */
static bool is_there(const struct seep_view *view, uint32_t ordinal)
{
    const struct seep_rec_device *first =
        &view->devices[(size_t)ordinal * SEEP_BUCKET_COUNT];

    return seep_view_has(view, first, SEEP_BUCKET_COUNT * sizeof(*first));
}

static void widen_all(const struct seep_view *view, uint32_t width)
{
    for (; width_log2 < width; width_log2++) {
        for (uint32_t i = 0; i < view->device_count; i++) {
            if (is_there(view, i)) {
                widen(&view->devices[(size_t)i * SEEP_BUCKET_COUNT]);
            }
        }
    }
}

/* Who was kept waiting on the way has seen a low, and no last. */
static void put(struct seep_rec_device *entry, uint32_t tick,
                const struct seep_devices_sample *sample)
{
    uint64_t low = seep_word_load(&entry->low_free_bytes);
    uint64_t last = seep_word_load(&entry->tick);

    if (last == 0 || sample->free_bytes < low) {
        seep_word_store(&entry->low_free_bytes, sample->free_bytes);
    }
    if (tick < last) {
        return;
    }
    seep_word_store(&entry->free_bytes, sample->free_bytes);
    seep_word_store(&entry->total_bytes, sample->total_bytes);
    seep_word_store(&entry->pool_reserved_bytes, sample->pool_reserved_bytes);
    seep_word_store(&entry->pool_used_bytes, sample->pool_used_bytes);
    seep_word_store(&entry->graph_reserved_bytes, sample->graph_reserved_bytes);
    seep_word_store(&entry->graph_used_bytes, sample->graph_used_bytes);
    seep_word_store(&entry->tensor_reserved_bytes,
                    sample->tensor_reserved_bytes);
    seep_word_store(&entry->tensor_allocated_bytes,
                    sample->tensor_allocated_bytes);
    seep_word_store(&entry->held_bytes, sample->held_bytes);
    seep_word_store(&entry->tick, tick == 0 ? 1 : tick);
}

static bool reserve(const struct seep_view *view, uint32_t ordinal)
{
    const struct seep_rec_device *first =
        &view->devices[(size_t)ordinal * SEEP_BUCKET_COUNT];
    size_t bytes = SEEP_BUCKET_COUNT * sizeof(*first);

    return seep_view_reserve(view, first, bytes, first, bytes);
}

void seep_devices_take(const struct seep_view *view, uint32_t ordinal,
                       uint32_t tick, const struct seep_devices_sample *sample)
{
    uint32_t bucket;

    if (ordinal >= view->device_count || !reserve(view, ordinal)) {
        seep_view_count(view, SEEP_COUNT_DEVICES_FULL, 1);
        return;
    }
    if (!try_enter(tick)) {
        return;
    }
    widen_all(view, seep_series_width_for(tick));
    bucket = tick >> width_log2;
    if (bucket < SEEP_BUCKET_COUNT) {
        put(&view->devices[(size_t)ordinal * SEEP_BUCKET_COUNT + bucket], tick,
            sample);
    }
    /* Release: the width; pairs with the acquire in try_enter(). */
    atomic_store_explicit(&busy, 0, memory_order_release);
}
