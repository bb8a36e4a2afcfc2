/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the tests of cuda/ledger have in common: each begins with a recorder
 * that knows nothing, and ends with one that was told nothing impossible.
 */
#ifndef CUDA_LEDGER_TEST_H
#define CUDA_LEDGER_TEST_H

#include "seep_test.h"

#include "cuda/entry.h"
#include "cuda/ledger.h"
#include "cuda_recorder.h"

#define MIB (UINT64_C(1) << 20)

/* Whatever a test leaves live is no matter of the next: each takes its own
 * addresses. */
static inline uint64_t fresh(void)
{
    static uint64_t next = UINT64_C(0x7f0000000000);

    next += 64 * MIB;
    return next;
}

static inline int start(void **state)
{
    (void)state;
    cuda_recorder_start();
    return 0;
}

static inline int check(void **state)
{
    (void)state;
    return cuda_recorder_faults() == 0 ? 0 : -1;
}

static inline void add(enum seep_cuda_kind kind, enum seep_space space,
                       uint64_t value, uint64_t size_bytes, const void *context)
{
    seep_cuda_ledger_add(NULL,
                         &(struct seep_cuda_block){.kind = kind,
                                                   .space = space,
                                                   .device = 0,
                                                   .value = value,
                                                   .size_bytes = size_bytes,
                                                   .context = context});
}

static inline void add_pointer(uint64_t value, uint64_t size_bytes)
{
    add(SEEP_CUDA_POINTER, SEEP_SPACE_DEVICE, value, size_bytes, NULL);
}

static inline void drop(enum seep_cuda_kind kind, uint64_t value)
{
    struct seep_cuda_leave leave = seep_cuda_ledger_leave(kind, value);

    seep_cuda_ledger_settle(&leave, true);
}

/* Of blocks that have one, the ledger keeps the sum as well. */
static inline uint64_t device_bytes(void)
{
    uint64_t held = 0;
    uint64_t known = 0;

    for (int i = 0; i < (int)SEEP_DEVICES_MAX; i++) {
        held += seep_cuda_ledger_held_bytes(i);
        known += cuda_recorder_bytes(SEEP_SPACE_DEVICE, i);
    }
    assert_int_equal(held, known);
    return cuda_recorder_bytes(SEEP_SPACE_DEVICE, -1);
}

/* Slots of the table, whatever is in them. */
static inline uint64_t used_count(void)
{
    uint64_t count = 0;

    for (uint32_t slot = seep_cuda_slot_used(0); slot != SEEP_CUDA_SLOT_NONE;
         slot = seep_cuda_slot_used(slot + 1)) {
        count++;
    }
    return count;
}

static inline uint64_t imported_bytes(void)
{
    return cuda_recorder_bytes(SEEP_SPACE_IMPORTED, -1);
}

static inline void unmap(uint64_t address, uint64_t size_bytes, bool gone)
{
    struct seep_cuda_leave_range range =
        seep_cuda_ledger_unmap(address, size_bytes);

    seep_cuda_ledger_unmap_settle(&range, gone);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, check)

#endif
