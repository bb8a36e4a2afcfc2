/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer's entry: the input is a catalogue of patterns, as a user may give
 * it. What is taken is asked for a site, so that each condition is met.
 */
#include <stddef.h>
#include <stdint.h>

#include "reader/compare/catalogue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct seep_report_frame frames[] = {
        {.module = "/lib/libc.so.6", .function = "malloc", .file = ""},
        {.module = "/opt/libfoo.so", .function = "foo", .file = "/s/f.c"},
    };
    const struct seep_report_frame *list[] = {&frames[0], &frames[1]};
    const struct seep_report_site site = {
        .space = SEEP_SPACE_HEAP,
        .class = SEEP_CLASS_LEAK,
        .allocated_bytes = 64,
        .allocated_count = 1,
        .frames = list,
        .frame_count = 2,
    };
    const struct seep_report report = {
        .executable = "/srv/app", .sites = &site, .site_count = 1};
    struct seep_catalogue *catalogue = NULL;
    struct seep_refusal refusal;

    if (seep_catalogue_add_text(&catalogue, (const char *)data, size,
                                &refusal) == 0) {
        (void)seep_catalogue_find(catalogue, &site);
        (void)seep_catalogue_find_process(catalogue, &report);
    }
    seep_catalogue_close(catalogue);
    return 0;
}
