/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a wrapper into the ledger; see note.h. */
#include "cuda/note.h"

#include "cuda/driver.h"

void seep_cuda_note(const struct seep_capture_start *from,
                    enum seep_cuda_kind kind, enum seep_space space, int device,
                    uint64_t value, uint64_t size_bytes)
{
    seep_cuda_ledger_add(from, &(struct seep_cuda_block){
                                   .kind = kind,
                                   .space = space,
                                   .device = device,
                                   .value = value,
                                   .size_bytes = size_bytes,
                                   .context = seep_cuda_driver_context(),
                               });
}

void seep_cuda_note_pointer(const struct seep_capture_start *from,
                            enum seep_space space, uint64_t pointer,
                            uint64_t size_bytes)
{
    int device = seep_cuda_driver_device();

    seep_cuda_note(from, SEEP_CUDA_POINTER, space, device, pointer, size_bytes);
    seep_cuda_driver_look(device);
}

void seep_cuda_note_pooled(const struct seep_capture_start *from,
                           uint64_t pointer, uint64_t size_bytes, bool is_node)
{
    seep_cuda_ledger_add(from,
                         &(struct seep_cuda_block){
                             .kind = SEEP_CUDA_POINTER,
                             .space = SEEP_SPACE_DEVICE,
                             .device = seep_cuda_driver_device_of(pointer),
                             .silent = is_node,
                             .value = pointer,
                             .size_bytes = size_bytes,
                         });
    seep_cuda_driver_look(seep_cuda_driver_device());
}

void seep_cuda_note_refused(void)
{
    seep_cuda_driver_look(seep_cuda_driver_device());
}

struct seep_cuda_going seep_cuda_goes(uintptr_t frame, enum seep_cuda_kind kind,
                                      uint64_t value)
{
    struct seep_cuda_going going = {.nest = seep_cuda_nest_enter(frame)};

    if (going.nest.slot != 0) {
        going.leave = seep_cuda_ledger_leave(kind, value);
    }
    return going;
}

void seep_cuda_went(const struct seep_cuda_going *going, int result)
{
    if (going->nest.slot != 0) {
        seep_cuda_ledger_settle(&going->leave, result == SEEP_CUDA_SUCCESS);
        seep_cuda_nest_leave(going->nest);
    }
}
