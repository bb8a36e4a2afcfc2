/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a process with GPUs is told besides. Invariant: each advice says what
 * was seen that it comes from; of a process without a driver nothing is said.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "reader/where.h"
#include "units.h"
#include "verdict_words.h"
#include "words.h"

#define OUTSIDE_LEAST_BYTES (32 << 20)
#define OUTSIDE_SHARE 0.02 /* of what is used of the device */
#define CACHE_SHARE 0.1    /* of the device, from which on a pool is told */

const struct seep_report_device *
seep_verdict_words_fragmented(const struct seep_report *report)
{
    if (report->verdict.class != SEEP_VERDICT_FRAGMENTATION) {
        return NULL;
    }
    for (size_t i = 0; i < report->device_count; i++) {
        const struct seep_report_device *device = &report->devices[i];

        if ((int)device->ordinal == report->verdict.device &&
            device->cache_fragments) {
            return device;
        }
    }
    return NULL;
}

static bool has_space(const struct seep_report *report, enum seep_space space)
{
    for (size_t i = 0; i < report->space_count; i++) {
        if (report->spaces[i].space == space) {
            return true;
        }
    }
    return false;
}

/* By a direct link there are no look-ups, but calls. */
static bool is_bypassed(const struct seep_report *report)
{
    bool called = report->device_count > 0;
    bool loaded = false;

    for (size_t i = 0; i < report->space_count; i++) {
        called = called || (report->spaces[i].space >= SEEP_SPACE_PINNED &&
                            report->spaces[i].allocated_bytes > 0);
    }
    for (size_t i = 0; i < report->module_count; i++) {
        loaded = loaded || strncmp(seep_where_base_name(report->modules[i]),
                                   "libcuda.so", strlen("libcuda.so")) == 0;
    }
    return loaded && !called &&
           seep_words_counter(report, SEEP_COUNT_CUDA_LOOKUPS) == 0;
}

/* Modules, contexts, or a neighbour: none of them is a call of the process. */
static bool grows_outside(const struct seep_report *report,
                          const struct seep_report_device *device)
{
    const struct seep_report_extent *outside = &device->unexplained;
    double least = (outside->slope_bytes_per_s - outside->slope_error) *
                   report->duration_s;

    return outside->valid && least >= OUTSIDE_LEAST_BYTES &&
           least >= OUTSIDE_SHARE * device->used.last_bytes;
}

static void tell_outside(const struct seep_report *report,
                         const struct seep_report_device *device,
                         struct seep_verdict_words *words)
{
    char rate[SEEP_UNITS_TEXT_BYTES];

    if (grows_outside(report, device)) {
        seep_units_rate(device->unexplained.slope_bytes_per_s, rate);
        seep_verdict_words_reason(
            words,
            "memory of GPU %u that no recorded call of this process holds "
            "grows %s: other processes there, or contexts and code",
            device->ordinal, rate + (*rate == '+'));
    }
}

static void tell_cache(const struct seep_report *report,
                       const struct seep_report_device *device,
                       struct seep_verdict_words *words)
{
    char rate[SEEP_UNITS_TEXT_BYTES];

    if (device->cache_fragments &&
        device != seep_verdict_words_fragmented(report)) {
        seep_units_rate(device->tensor_reserved.slope_bytes_per_s, rate);
        seep_verdict_words_reason(
            words,
            "PyTorch's cache on GPU %u grows %s and the tensors in it do not: "
            "it fragments",
            device->ordinal, rate + (*rate == '+'));
    }
}

static bool is_segment(const struct seep_report_site *site)
{
    for (size_t i = 0; i < site->frame_count; i++) {
        const struct seep_report_frame *frame = &site->frames[i];

        if (!frame->python &&
            (strncmp(seep_where_base_name(frame->module), "libc10_cuda.so",
                     strlen("libc10_cuda.so")) == 0 ||
             strstr(frame->function, "CUDACachingAllocator") != NULL)) {
            return true;
        }
    }
    return false;
}

/* A segment is charged to whoever missed the cache, not to who holds it. */
static bool is_without_tensors(const struct seep_report *report)
{
    const struct seep_report_site *site = seep_verdict_words_site(report);

    return site != NULL && site->space == SEEP_SPACE_DEVICE &&
           is_segment(site) && !has_space(report, SEEP_SPACE_TENSOR);
}

void seep_verdict_words_add_device_reasons(const struct seep_report *report,
                                           struct seep_verdict_words *words)
{
    if (is_without_tensors(report)) {
        seep_verdict_words_reason(
            words, "it is memory of PyTorch's cache: the line missed the cache "
                   "and need not be the one that keeps what is in it");
    }
    for (size_t i = 0; i < report->device_count; i++) {
        tell_outside(report, &report->devices[i], words);
        tell_cache(report, &report->devices[i], words);
    }
    if (is_bypassed(report)) {
        seep_verdict_words_reason(
            words, "the CUDA driver is loaded, and none of its functions was "
                   "looked up where seep sees it: memory of GPUs is not in "
                   "this report");
    }
}

/* Where segments can grow the cache has reserved address space for them. */
static void advise_cache(const struct seep_report *report,
                         const struct seep_report_device *device,
                         struct seep_verdict_words *words)
{
    double idle_bytes = device->tensor_reserved.last_bytes -
                        device->tensor_allocated.last_bytes;
    char idle[SEEP_UNITS_TEXT_BYTES];

    seep_units_bytes(idle_bytes, idle);
    if (!has_space(report, SEEP_SPACE_RESERVED)) {
        seep_verdict_words_advise(
            words,
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in its "
            "environment (PyTorch 2.1 or newer): the %s that lie idle on GPU "
            "%u are pieces of segments of fixed size, and those can grow "
            "instead",
            idle, device->ordinal);
    }
    seep_verdict_words_advise(
        words,
        "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128: blocks larger than "
        "that are not split, so small tensors cannot hold them; or requests of "
        "few, fixed shapes, so that what was freed fits the next");
}

void seep_verdict_words_add_segment_advice(const struct seep_report *report,
                                           struct seep_verdict_words *words)
{
    if (is_without_tensors(report)) {
        seep_verdict_words_advise(
            words, "seep run --cuda tensors -- COMMAND, or SEEP_CUDA=tensors: "
                   "PyTorch's tensors by the lines that keep them");
    }
}

static void advise_pool(const struct seep_report_device *device,
                        struct seep_verdict_words *words)
{
    const struct seep_report_extent *reserved = &device->pool_reserved;
    double idle_bytes = reserved->last_bytes - device->pool_used.last_bytes;
    char idle[SEEP_UNITS_TEXT_BYTES];

    if (reserved->valid && idle_bytes > 0 &&
        idle_bytes >= CACHE_SHARE * (double)device->total_bytes) {
        seep_verdict_words_advise(
            words,
            "the memory pool of GPU %u keeps %s that nobody uses: a lower "
            "cudaMemPoolAttrReleaseThreshold, or cudaMemPoolTrimTo when it is "
            "quiet, gives it back",
            device->ordinal, seep_units_bytes(idle_bytes, idle));
    }
}

void seep_verdict_words_add_device_advice(const struct seep_report *report,
                                          struct seep_verdict_words *words)
{
    for (size_t i = 0; i < report->device_count; i++) {
        if (report->devices[i].cache_fragments) {
            advise_cache(report, &report->devices[i], words);
        }
        advise_pool(&report->devices[i], words);
    }
    if (is_bypassed(report)) {
        seep_verdict_words_advise(
            words, "the program reaches the driver by a way that seep does not "
                   "see (dlmopen, RTLD_DEEPBIND): where that can be turned "
                   "off, its memory is recorded");
    }
}
