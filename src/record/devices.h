/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the GPUs have left, over time: one sample a bucket and device.
 *
 * Invariant: whoever writes is alone in it (try, never wait); a sample that
 * comes while another is being written is left out. No system call.
 */
#ifndef SEEP_RECORD_DEVICES_H
#define SEEP_RECORD_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "format/view.h"

/** In bytes, as in struct seep_rec_device; 0: not told. */
struct seep_devices_sample {
    uint64_t free_bytes;
    uint64_t total_bytes;
    uint64_t pool_reserved_bytes;
    uint64_t pool_used_bytes;
    uint64_t graph_reserved_bytes;
    uint64_t graph_used_bytes;
    uint64_t tensor_reserved_bytes;
    uint64_t tensor_allocated_bytes;
    uint64_t held_bytes;
};

/** Forget everything, in a new recording's process. */
void seep_devices_start(void);

/** @sample is that of device @ordinal at @tick. */
void seep_devices_take(const struct seep_view *view, uint32_t ordinal,
                       uint32_t tick, const struct seep_devices_sample *sample);

#endif
