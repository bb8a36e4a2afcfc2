/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A report made by hand. Invariant: every pointer in it stays inside it or is
 * static.
 */
#include "fake_report.h"

#include <string.h>

static const char *const arguments[] = {"/usr/bin/python3", "serve.py"};

static const struct seep_report_counter all_counters[] = {
#define FAKE_COUNTER(symbol, name, kind, words) \
    {name, words, SEEP_KIND_##kind, 0},
    SEEP_COUNTERS(FAKE_COUNTER)
#undef FAKE_COUNTER
};

static void fill_frames(struct fake_report *fake)
{
    fake->frames[0] = (struct seep_report_frame){
        .function = "",
        .file = "",
        .module = "/usr/lib/libpython3.11.so.1.0",
        .build_id = "abcdef",
        .offset = 0x1234,
    };
    fake->frames[1] = (struct seep_report_frame){
        .python = true,
        .function = "json.loads",
        .file = "json/__init__.py",
        .line = 346,
        .module = "",
        .build_id = "",
    };
    fake->frames[2] = (struct seep_report_frame){
        .python = true,
        .function = "handle",
        .file = "serve.py",
        .line = 31,
        .module = "",
        .build_id = "",
    };
    fake->frames[3] = (struct seep_report_frame){
        .function = FAKE_HOSTILE_FUNCTION,
        .file = "",
        .module = "/x/\033]0;owned\007.so",
        .build_id = "",
        .offset = 1,
    };
}

static void fill_sites(struct fake_report *fake)
{
    fake->points[0] = (struct seep_report_point){
        .width_s = 10, .live_bytes = 100, .allocated_bytes = 100};
    fake->points[1] = (struct seep_report_point){
        .start_s = 10, .width_s = 10, .live_bytes = 200, .low_bytes = 100};
    fake->sites[0] = (struct seep_report_site){
        .id = "3f9a00112233",
        .class = SEEP_CLASS_LEAK,
        .class_reason = "every tenth of the run keeps its share",
        .live_bytes = 562ULL << 20,
        .live_count = 48112,
        .allocated_bytes = 600ULL << 20,
        .freed_bytes = 38ULL << 20,
        .has_growth = true,
        .growth_bytes_per_s = {700000, 690000, 710000},
        .confidence = 0.99,
        .where = "serve.py:31 handle",
        .where_frame = 2,
        .frames = fake->frames,
        .frame_count = 3,
        .series = fake->points,
        .point_count = 2,
    };
    fake->sites[1] = (struct seep_report_site){
        .id = "77aa00112233",
        .class = SEEP_CLASS_SUSPECT,
        .class_reason = "began late",
        .live_bytes = 14ULL << 20,
        .live_count = 3,
        .where = FAKE_HOSTILE_FUNCTION,
        .frames = &fake->frames[3],
        .frame_count = 1,
        .cut = SEEP_CUT_NO_RULE,
    };
}

static void fill_process(struct seep_report *report)
{
    report->path = "/data/seep.python3.4242.seep";
    report->state = SEEP_STATE_KILLED;
    report->has_status = true;
    report->status = 9;
    report->pid = 4242;
    report->executable = "/usr/bin/python3";
    report->arguments = arguments;
    report->argument_count = 2;
    report->labels = "model=bert-13,role=worker";
    report->host = "node1";
    report->version = "0.1.0";
    report->allocator = "/usr/lib/libjemalloc.so.2";
    report->start_realtime_ns = UINT64_C(1700000000123000000);
    report->duration_s = 842;
    report->sample_bytes = 512 << 10;
    report->file_bytes = 16 << 20;
    report->units = 48112;
    report->verdict.class = SEEP_VERDICT_LEAK;
    report->verdict.reason = "97 % of it is at one line";
    report->cost_s = 2.5;
    report->memory = (struct seep_report_memory){
        .valid = true,
        .rss = {.valid = true,
                .first_bytes = 80 << 20,
                .last_bytes = 680 << 20,
                .slope_bytes_per_s = 750000},
        .machine_bytes = 8ULL << 30,
    };
}

void fake_report_fill(struct fake_report *fake)
{
    memset(fake, 0, sizeof(*fake));
    fill_process(&fake->report);
    fill_frames(fake);
    fill_sites(fake);
    memcpy(fake->counters, all_counters, sizeof(all_counters));
    for (size_t i = SEEP_COUNT_CUT_FIRST; i < SEEP_COUNTER_COUNT; i++) {
        fake->counters[i] =
            (struct seep_report_counter){"cut", "cut", SEEP_KIND_FACT, 0};
    }
    fake->spaces[0] = (struct seep_report_space){
        .live_bytes = 576ULL << 20,
        .live_bytes_error = 1 << 20,
        .slope_bytes_per_s = 720000,
    };
    fake->report.sites = fake->sites;
    fake->report.site_count = 2;
    fake->report.site_total = 2;
    fake->report.counters = fake->counters;
    fake->report.counter_count = SEEP_COUNTER_COUNT;
    fake->report.spaces = fake->spaces;
    fake->report.space_count = 1;
}
