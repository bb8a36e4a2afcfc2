/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the CUDA part into the recorder; see cuda_events.h. */
#include "preload/cuda_events.h"

#include <stddef.h>

#include "base/word.h"
#include "capture/native.h"
#include "cuda/counts.h"
#include "cuda/deep.h"
#include "cuda/driver.h"
#include "cuda/events.h"
#include "cuda/headroom.h"
#include "cuda/ledger.h"
#include "cuda/resolve.h"
#include "cuda/tensors.h"
#include "preload/identity.h"
#include "preload/options.h"
#include "preload/track.h"
#include "record/devices.h"
#include "record/recorder.h"

static void allocated(const struct seep_capture_start *from,
                      enum seep_space space, int device, uint64_t key,
                      uint64_t size_bytes)
{
    struct seep_place place = {space, device < 0 ? 0 : (uint32_t)device + 1};

    seep_track_key_allocated(from, place, key, size_bytes);
}

static struct seep_cuda_out freed(uint64_t key)
{
    struct seep_track_out out = seep_track_key_out(key);

    return (struct seep_cuda_out){out.recorded, out.tick};
}

static void restored(uint64_t key, struct seep_cuda_out out)
{
    seep_track_key_restored(key,
                            (struct seep_track_out){out.recorded, out.tick});
}

static void headroom(const struct seep_cuda_headroom *asked)
{
    const struct seep_view *view = seep_recorder_view();
    struct seep_cuda_tensor_totals totals = {0, 0};
    struct seep_devices_moment moment;

    if (view == NULL || asked->device < 0 || !seep_identity_is_ours()) {
        return;
    }
    seep_cuda_tensors_totals(asked->device, &totals);
    moment = (struct seep_devices_moment){
        .free_bytes = asked->free_bytes,
        .total_bytes = asked->total_bytes,
        .pool_reserved_bytes = asked->pool_reserved_bytes,
        .pool_used_bytes = asked->pool_used_bytes,
        .graph_reserved_bytes = asked->graph_reserved_bytes,
        .graph_used_bytes = asked->graph_used_bytes,
        .tensor_reserved_bytes = totals.reserved_bytes,
        .tensor_allocated_bytes = totals.allocated_bytes,
        .held_bytes = asked->held_bytes,
    };
    seep_devices_take(view, (uint32_t)asked->device, seep_recorder_tick(),
                      &moment);
}

static const struct seep_cuda_events asking = {allocated, freed, restored,
                                               headroom, seep_track_begin};
static const struct seep_cuda_events not_asking = {allocated, freed, restored,
                                                   NULL, seep_track_begin};

void seep_cuda_events_init(void)
{
    if (seep_options.cuda == SEEP_OPTIONS_CUDA_OFF) {
        return;
    }
    seep_cuda_tensors_set(seep_options.cuda == SEEP_OPTIONS_CUDA_TENSORS);
    seep_cuda_events_set(&asking);
}

void seep_cuda_events_restrict(void)
{
    seep_cuda_deep_restrict();
    if (seep_cuda_events() != NULL) {
        seep_cuda_events_set(&not_asking);
    }
}

/* Once the driver was used it is of no use to a child: what comes after a fork
 * is none of ours, and nothing of it may be closed. */
void seep_cuda_events_after_fork(void)
{
    if (seep_cuda_ledger_was_used()) {
        seep_cuda_ledger_abandon();
        seep_cuda_driver_forget();
    }
}

void seep_cuda_events_tell(const struct seep_view *view)
{
    static const struct {
        enum seep_counter counter;
        enum seep_cuda_door_count door;
    } doors[] = {
        {SEEP_COUNT_CUDA_LOOKUPS, SEEP_CUDA_LOOKUPS},
        {SEEP_COUNT_CUDA_WRAPPED, SEEP_CUDA_SUBSTITUTIONS},
        {SEEP_COUNT_CUDA_UNKNOWN_VARIANT, SEEP_CUDA_UNKNOWN_VARIANT},
        {SEEP_COUNT_CUDA_OTHER_DRIVER, SEEP_CUDA_OTHER_DRIVER},
        {SEEP_COUNT_CUDA_DEEP_OBJECTS, SEEP_CUDA_DEEP_OBJECTS},
        {SEEP_COUNT_CUDA_DEEP_MISSED, SEEP_CUDA_DEEP_MISSED},
    };

    for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
        seep_word_store(&view->counters[doors[i].counter],
                        seep_cuda_door_count(doors[i].door));
    }
#define TELL(symbol, words)                                    \
    seep_word_store(&view->counters[SEEP_COUNT_CUDA_##symbol], \
                    seep_cuda_count_get(SEEP_CUDA_COUNT_##symbol));
    SEEP_CUDA_COUNTS(TELL)
#undef TELL
}
