/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two libraries in one file, as PyTorch has them: the one that defines the
 * report of memory and, with FIXTURE_CALLER, the one whose allocator makes it.
 */
#include <stdint.h>

struct device {
    int8_t type;
    int8_t index;
};

void report(void *block, int64_t size_bytes, uint64_t allocated_bytes,
            uint64_t reserved_bytes,
            struct device device) __asm__("_ZN3c1027reportMemoryUsageToProfiler"
                                          "EPvlmmNS_6DeviceE");

#ifdef FIXTURE_CALLER
void fixture_report(void *block, int64_t size_bytes, uint64_t allocated_bytes,
                    uint64_t reserved_bytes, int8_t type, int8_t index);

void fixture_report(void *block, int64_t size_bytes, uint64_t allocated_bytes,
                    uint64_t reserved_bytes, int8_t type, int8_t index)
{
    report(block, size_bytes, allocated_bytes, reserved_bytes,
           (struct device){type, index});
    __asm__ volatile(""); /* so that the call is none by a jump */
}
#else
uint64_t fixture_seen[6];

/* What a profiler would have been told. */
void report(void *block, int64_t size_bytes, uint64_t allocated_bytes,
            uint64_t reserved_bytes, struct device device)
{
    fixture_seen[0]++;
    fixture_seen[1] = (uintptr_t)block;
    fixture_seen[2] = (uint64_t)size_bytes;
    fixture_seen[3] = allocated_bytes;
    fixture_seen[4] = reserved_bytes;
    fixture_seen[5] =
        (uint64_t)(uint8_t)device.type << 8 | (uint8_t)device.index;
}
#endif
