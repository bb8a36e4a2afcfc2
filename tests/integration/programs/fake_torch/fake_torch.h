/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** What fake_torch.py calls of libc10_cuda.so: sizes in bytes, one device. */
#ifndef SEEP_TESTS_FAKE_TORCH_H
#define SEEP_TESTS_FAKE_TORCH_H

#include <stdint.h>

/** By value, as PyTorch passes it. */
struct device {
    int8_t type;
    int8_t index;
};

#define DEVICE_CUDA 1

/** What libc10.so defines and every allocator of PyTorch calls. */
void report_memory(void *block, int64_t size_bytes, uint64_t allocated_bytes,
                   uint64_t reserved_bytes,
                   struct device device) __asm__("_ZN3c1027reportMemoryUsageToP"
                                                 "rofilerEPvlmmNS_6DeviceE");

/** How often that was called. */
uint64_t fake_torch_reports(void);

/** 0, or the driver's error. */
int fake_torch_open(void);

/** A tensor of its own; 0: out of memory. */
uint64_t fake_torch_empty(uint64_t size_bytes);
void fake_torch_free(uint64_t tensor);

/** What the report was told of that tensor. */
uint64_t fake_torch_size(uint64_t tensor);
/** Segments without a tensor go back to the driver. */
void fake_torch_empty_cache(void);

uint64_t fake_torch_allocated_bytes(void);
uint64_t fake_torch_reserved_bytes(void);
uint64_t fake_torch_segment_count(void);
/** Of all segments that were ever asked for. */
uint64_t fake_torch_segments_made(void);
uint64_t fake_torch_segments_made_bytes(void);

#endif
