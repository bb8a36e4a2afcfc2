/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * GPUs and what lies on them, in words. Invariant: memory of the host is never
 * called that of a device, nor the other way round.
 */
#include <stdio.h>

#include "words.h"

void seep_words_gpu(int device, char text[SEEP_WORDS_GPU_BYTES])
{
    if (device < 0) {
        snprintf(text, SEEP_WORDS_GPU_BYTES, "a GPU");
    } else {
        snprintf(text, SEEP_WORDS_GPU_BYTES, "GPU %d", device);
    }
}

/* The driver is asked when it has served a call, which may be long ago. */
bool seep_words_is_followed(const struct seep_report_device *device)
{
    return device->forecast.answer != SEEP_FORECAST_UNKNOWN;
}

bool seep_words_is_gpu(enum seep_space space)
{
    return space == SEEP_SPACE_DEVICE || space == SEEP_SPACE_TENSOR ||
           space == SEEP_SPACE_MANAGED;
}

const char *seep_words_memory(const struct seep_report_site *site,
                              char text[SEEP_WORDS_GPU_BYTES])
{
    static const char *const of_one[] = {
        [SEEP_SPACE_MANAGED] = "managed memory of GPU",
        [SEEP_SPACE_DEVICE] = "memory of GPU",
        [SEEP_SPACE_TENSOR] = "tensor memory of GPU",
    };
    static const char *const of_any[SEEP_SPACE_COUNT] = {
        [SEEP_SPACE_PINNED] = "pinned host memory",
        [SEEP_SPACE_MANAGED] = "managed memory",
        [SEEP_SPACE_DEVICE] = "device memory",
        [SEEP_SPACE_TENSOR] = "tensor memory",
        [SEEP_SPACE_REGISTERED] = "registered host memory",
        [SEEP_SPACE_RESERVED] = "reserved address space",
        [SEEP_SPACE_IMPORTED] = "imported memory",
    };

    if (site == NULL || site->space >= SEEP_SPACE_COUNT ||
        of_any[site->space] == NULL) {
        return "host memory";
    }
    if (!seep_words_is_gpu(site->space) || site->device < 0) {
        return of_any[site->space];
    }
    snprintf(text, SEEP_WORDS_GPU_BYTES, "%s %d", of_one[site->space],
             site->device);
    return text;
}

/* Where a site grows: the device, -1 for the host. */
static int place_of(const struct seep_report_site *site)
{
    return seep_words_is_gpu(site->space) ? site->device : -1;
}

const char *seep_words_growing(const struct seep_report *report,
                               const struct seep_report_site *first,
                               char text[SEEP_WORDS_GPU_BYTES])
{
    bool elsewhere = false;
    bool host = first == NULL || !seep_words_is_gpu(first->space);
    bool gpu = !host;

    for (size_t i = 0; first != NULL && i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (site->class == first->class && site->suppressed_by == NULL &&
            !site->backs_tensors) {
            host = host || !seep_words_is_gpu(site->space);
            gpu = gpu || seep_words_is_gpu(site->space);
            elsewhere = elsewhere || place_of(site) != place_of(first);
        }
    }
    if (host && gpu) {
        return "memory of the host and of GPUs";
    }
    return elsewhere ? "memory of several GPUs"
                     : seep_words_memory(first, text);
}

static uint64_t live_in(const struct seep_report *report, unsigned spaces)
{
    uint64_t live = 0;

    for (size_t i = 0; i < report->space_count; i++) {
        const struct seep_report_space *space = &report->spaces[i];

        if (space->space < SEEP_SPACE_COUNT &&
            (spaces >> space->space & 1U) != 0) {
            live += space->live_bytes;
        }
    }
    return live;
}

uint64_t seep_words_host_bytes(const struct seep_report *report)
{
    return live_in(report, 1U << SEEP_SPACE_HEAP | 1U << SEEP_SPACE_MAPPED |
                               1U << SEEP_SPACE_PYTHON |
                               1U << SEEP_SPACE_PINNED);
}

/* Tensors lie in memory of devices, if that was recorded. */
uint64_t seep_words_gpu_bytes(const struct seep_report *report)
{
    uint64_t driver =
        live_in(report, 1U << SEEP_SPACE_DEVICE | 1U << SEEP_SPACE_MANAGED);
    uint64_t tensors = live_in(report, 1U << SEEP_SPACE_TENSOR);

    return driver > tensors ? driver : tensors;
}

/* Devices that the driver was not asked about have sites all the same. */
static bool has_several(const struct seep_report *report)
{
    bool several = report->device_count > 1;
    int first = -1;

    for (size_t i = 0; i < report->site_count && !several; i++) {
        int device = place_of(&report->sites[i]);

        if (device >= 0) {
            several = first >= 0 && device != first;
            first = device;
        }
    }
    return several;
}

const char *seep_words_place(const struct seep_report *report,
                             const struct seep_report_site *site,
                             char text[SEEP_WORDS_GPU_BYTES])
{
    const char *name = seep_words_space(site->space);

    if (place_of(site) < 0 || !has_several(report)) {
        return name;
    }
    snprintf(text, SEEP_WORDS_GPU_BYTES, "%s %d", name, site->device);
    return text;
}
