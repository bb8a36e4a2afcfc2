/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the CUDA part into the recorder.
 *
 * Invariant: an event of the driver's is recorded whole, whatever the sampling
 * of its thread. Tensors are sampled as the host's blocks are: eager programs
 * make them ten thousands of times a second. The recording's counters are those
 * of the CUDA part.
 */
#include <stddef.h>

#include "base/word.h"
#include "capture/native/unwind.h"
#include "cuda/driver.h"
#include "cuda/hooks.h"
#include "cuda/ledger.h"
#include "preload/hooks.h"
#include "preload/identity.h"
#include "preload/options.h"
#include "preload/track.h"
#include "record/recorder.h"
#include "record/timeline.h"

/* Where the tensor of @key lies: its driver has one address space with us. */
static const void *tensor_at(uint64_t key)
{
    return (const void *)(uintptr_t)(key & SEEP_KEY_VALUE_MASK);
}

static void allocated(const struct seep_capture_start *from,
                      enum seep_space space, int device, uint64_t key,
                      uint64_t size_bytes)
{
    struct seep_place place = {space, device < 0 ? 0 : (uint32_t)device + 1};

    if (space == SEEP_SPACE_TENSOR) {
        seep_track_tensor_allocated(from, place.device, tensor_at(key),
                                    size_bytes);
        return;
    }
    seep_track_key_allocated(from, place, key, size_bytes);
}

static struct seep_cuda_out freed(uint64_t key)
{
    struct seep_track_out out;

    if (key >> SEEP_KEY_KIND_SHIFT == SEEP_CUDA_TENSOR) {
        if (!seep_track_ignores(tensor_at(key))) {
            seep_track_freed(tensor_at(key));
        }
        return (struct seep_cuda_out){false, 0};
    }
    out = seep_track_realloc_out((const void *)(uintptr_t)key);

    return (struct seep_cuda_out){out.recorded, out.tick};
}

static void restored(uint64_t key, struct seep_cuda_out out)
{
    seep_track_realloc_failed((const void *)(uintptr_t)key,
                              (struct seep_track_out){out.recorded, out.tick});
}

static void headroom(int device, struct seep_devices_sample *sample)
{
    const struct seep_view *view = seep_recorder_view();

    /* Not tested: a handler that forks in the middle of the question. */
    if (view != NULL && seep_identity_is_ours()) {
        seep_cuda_tensors_totals(device, &sample->tensor_allocated_bytes,
                                 &sample->tensor_reserved_bytes);
        seep_devices_take(view, (uint32_t)device, seep_recorder_tick(), sample);
    }
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
    if (seep_cuda_events() != NULL) {
        seep_cuda_events_set(&not_asking);
    }
}

/* Once the driver was used it is of no use to a child: what comes after a fork
 * is none of ours, nothing of it may be closed, and the driver, which the
 * child's refused calls would find again, is asked nothing. */
void seep_cuda_events_after_fork(void)
{
    if (seep_cuda_ledger_was_used()) {
        seep_cuda_ledger_abandon();
        seep_cuda_driver_forget();
        seep_cuda_events_restrict();
    }
}

void seep_cuda_events_count(const struct seep_view *view)
{
    for (enum seep_counter i = SEEP_COUNT_CUDA_LOOKUPS;
         i <= SEEP_COUNT_CUDA_NEST_FULL; i++) {
        seep_word_store(&view->counters[i], seep_cuda_count(i));
    }
}
