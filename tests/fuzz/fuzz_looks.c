/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer's entry for what is read of looks. The first byte says as what the
 * rest is read: the text of /proc/PID/smaps, of maps, or a file of looks, of
 * which growth is then told.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "reader/process/sample.h"

#define SMAPS 's'
#define MAPS 'm'
#define ENTRIES 16
#define SMAPS_LEFT 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_tracked(void *context, uint64_t start, uint64_t end)
{
    (void)context;
    if (start >= end) {
        abort(); /* nothing empty may be asked for */
    }
    return (start >> 12) % 3 == 0;
}

static void read_smaps(const char *text, size_t length,
                       enum seep_smaps_kind kind)
{
    struct seep_smaps smaps;
    FILE *file = fmemopen((void *)(uintptr_t)text, length, "r");

    if (file != NULL && seep_smaps_read(file, kind, &smaps) == 0) {
        smaps.count =
            seep_smaps_select(smaps.mappings, smaps.count, SMAPS_LEFT);
        seep_smaps_fini(&smaps);
    }
    if (file != NULL) {
        fclose(file);
    }
}

static void read_samples(const char *text, size_t length)
{
    struct seep_report_mapping grown[ENTRIES];
    struct seep_external_samples samples;
    size_t count = 0;

    if (seep_external_samples_parse(text, length, "/nowhere", &samples) != 0) {
        return;
    }
    if (seep_external_growth(&samples, 0.5, is_tracked, NULL, grown, ENTRIES,
                             &count) != 0 ||
        count > ENTRIES) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        if (!(grown[i].last_bytes - grown[i].first_bytes >=
              SEEP_EXTERNAL_GROWTH_LEAST_BYTES) ||
            grown[i].slope_bytes_per_s != grown[i].slope_bytes_per_s) {
            abort();
        }
    }
    seep_external_samples_fini(&samples);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    if (data[0] == SMAPS || data[0] == MAPS) {
        read_smaps((const char *)data + 1, size - 1,
                   data[0] == SMAPS ? SEEP_SMAPS : SEEP_MAPS);
    } else {
        read_samples((const char *)data + 1, size - 1);
    }
    return 0;
}
