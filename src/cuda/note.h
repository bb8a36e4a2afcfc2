/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the wrappers have in common: a thing that came, a thing that goes.
 *
 * Invariant: only the outermost wrapper of a thread notes anything; a thing
 * that goes is noted before the driver is asked, and put back if it refuses.
 */
#ifndef SEEP_CUDA_NOTE_H
#define SEEP_CUDA_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/native.h"
#include "cuda/abi.h"
#include "cuda/ledger.h"
#include "cuda/nesting.h"

/** Of the wrapper that this is written in. */
#define SEEP_CUDA_FRAME() ((uintptr_t)__builtin_frame_address(0))

/** The current device had too little: what it has left is worth a look. A
 * process that starves is served with nothing, and would never tell. */
void seep_cuda_note_refused(void);

/** Is what the driver gave in @result to be noted? If nobody is told, the
 * driver is not asked about it either. */
static inline bool seep_cuda_came(struct seep_cuda_nest nest, int result)
{
    if (nest.slot == 0 || seep_cuda_events() == NULL) {
        return false;
    }
    if (result == SEEP_CUDA_OUT_OF_MEMORY) {
        seep_cuda_note_refused();
    }
    return result == SEEP_CUDA_SUCCESS;
}

/** A thing in @space, on @device, that lives as long as the context that is
 * current. */
void seep_cuda_note(const struct seep_capture_start *from,
                    enum seep_cuda_kind kind, enum seep_space space, int device,
                    uint64_t value, uint64_t size_bytes);

/** Memory of the current device. */
void seep_cuda_note_pointer(const struct seep_capture_start *from,
                            enum seep_space space, uint64_t pointer,
                            uint64_t size_bytes);

/** Memory of a pool, which outlives contexts; @is_node: of a graph, so far. */
void seep_cuda_note_pooled(const struct seep_capture_start *from,
                           uint64_t pointer, uint64_t size_bytes, bool is_node);

/** Between the two halves of a wrapper that gives something back. */
struct seep_cuda_going {
    struct seep_cuda_nest nest;
    struct seep_cuda_leave leave;
};

struct seep_cuda_going seep_cuda_goes(uintptr_t frame, enum seep_cuda_kind kind,
                                      uint64_t value);
void seep_cuda_went(const struct seep_cuda_going *going, int result);

#endif
