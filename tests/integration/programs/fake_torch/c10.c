/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A test double of PyTorch's libc10.so: the one function of it that a recorder
 * stands in front of. It tells nobody, and counts.
 */
#include "fake_torch.h"

static _Atomic uint64_t reports;

void report_memory(void *block, int64_t size_bytes, uint64_t allocated_bytes,
                   uint64_t reserved_bytes, struct device device)
{
    (void)block;
    (void)size_bytes;
    (void)allocated_bytes;
    (void)reserved_bytes;
    (void)device;
    reports++;
}

uint64_t fake_torch_reports(void)
{
    return reports;
}
