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
        .function = "loads",
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
    for (size_t i = 0; i < 4; i++) {
        fake->frame_list[i] = &fake->frames[i];
    }
}

static void fill_sites(struct fake_report *fake)
{
    fake->points[0] = (struct seep_report_point){
        .width_s = 10, .live_bytes = 100, .allocated_bytes = 100};
    fake->points[1] = (struct seep_report_point){
        .start_s = 10, .width_s = 10, .live_bytes = 200, .low_bytes = 100};
    fake->sites[0] = (struct seep_report_site){
        .id = "3f9a00112233",
        .device = -1,
        .class = SEEP_CLASS_LEAK,
        .class_reason = "every tenth of the run keeps its share",
        .live_bytes = 562ULL << 20,
        .live_count = 48112,
        .allocated_bytes = 600ULL << 20,
        .freed_bytes = 38ULL << 20,
        .has_growth = true,
        .growth_bytes_per_s = {700000, 690000, 710000},
        .growth_now_bytes_per_s = 650000,
        .has_growth_per_unit = true,
        .growth_bytes_per_unit = {12251, 12076, 12426},
        .confidence = 0.99,
        .kept = {.since_s = 12, .share = 0.97},
        .where = "serve.py:31 handle",
        .stack_count = 3,
        .stack_live_bytes = 500ULL << 20,
        .thread = "MainThread",
        .where_frame = 2,
        .frames = fake->frame_list,
        .frame_count = 3,
        .series = fake->points,
        .point_count = 2,
    };
    fake->sites[1] = (struct seep_report_site){
        .id = "77aa00112233",
        .device = -1,
        .class = SEEP_CLASS_SUSPECT,
        .class_reason = "began late",
        .live_bytes = 14ULL << 20,
        .live_count = 3,
        .where = FAKE_HOSTILE_FUNCTION,
        .stack_count = 1,
        .thread = "",
        .frames = &fake->frame_list[3],
        .frame_count = 1,
        .cut = SEEP_CUT_NO_RULE,
    };
    fake->sites[2] = (struct seep_report_site){
        .id = "c0ffee112233",
        .device = -1,
        .class = SEEP_CLASS_STEP,
        .class_reason = "it came at once and stayed",
        .live_bytes = 4ULL << 20,
        .live_count = 1,
        .where = "serve.py:8 load",
        .stack_count = 1,
        .thread = "",
        .where_frame = 2,
        .frames = fake->frame_list,
        .frame_count = 3,
    };
}

static const struct seep_report_mark marks[] = {
    {12, "warm-up done", 100}, {600, "model \033[2Jloaded", 30000}};

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
    report->rejected = "";
    report->allocator = "/usr/lib/libjemalloc.so.2";
    report->start_realtime_ns = UINT64_C(1700000000123000000);
    report->duration_s = 842;
    report->sample_bytes = 512 << 10;
    report->by = SEEP_BY_LINE;
    report->python_state = SEEP_PYTHON_ON;
    report->python_version = 0x030b02f0;
    report->python_objects = SEEP_PYTHON_OBJECTS_ON;
    report->file_bytes = 16 << 20;
    report->most_bytes = 64 << 20;
    report->units = 48112;
    report->marks = marks;
    report->mark_count = 2;
    report->verdict = (struct seep_report_verdict){
        .class = SEEP_VERDICT_LEAK,
        .reason = "97 % of it is at one line",
        .has_growth = true,
        .growth_bytes_per_s = {721736, 700776, 742697},
        .has_growth_per_unit = true,
        .growth_bytes_per_unit = {12631, 12264, 12998},
        .first_share = 0.97,
        .growing_count = 1,
        .device = -1,
        .floor_bytes = 1 << 20,
        .forecast = {.answer = SEEP_FORECAST_TIME,
                     .what = "cgroup",
                     .limit_bytes = 8ULL << 30,
                     .used_bytes = 700 << 20,
                     .seconds = {10260, 9840, 10740},
                     .device = -1},
    };
    report->cost_s = 2.5;
    report->memory = (struct seep_report_memory){
        .valid = true,
        .rss = {true, 80 << 20, 680 << 20, 750000, 12000},
        .machine_bytes = 8ULL << 30,
    };
}

void fake_report_fill(struct fake_report *fake)
{
    memset(fake, 0, sizeof(*fake));
    fill_process(&fake->report);
    fill_frames(fake);
    fill_sites(fake);
    for (size_t i = 0; i < 3; i++) {
        fake->sites[i].touched_bytes = -1;
    }
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

const struct seep_pattern fake_report_pattern = {
    .id = "json-cache",
    .name = "json's cache of keys",
    .cause = "Each new key is kept.",
    .remedy = "Keep keys few.",
    .source = "https://example.org/issues/1",
};

static void fill_memory(struct fake_report *fake)
{
    struct seep_report_memory *memory = &fake->report.memory;

    memory->anonymous =
        (struct seep_report_extent){true, 70 << 20, 650 << 20, 745000, 11000};
    memory->shared =
        (struct seep_report_extent){true, 10 << 20, 30 << 20, 5000, 1000};
    memory->swap = (struct seep_report_extent){.valid = true};
    memory->cgroup =
        (struct seep_report_extent){true, 100 << 20, 700 << 20, 760000, 12000};
    memory->cgroup_limit_bytes = 8ULL << 30;
    memory->tracked =
        (struct seep_report_extent){true, 60 << 20, 576 << 20, 720000, 9000};
    memory->allocator_overhead =
        (struct seep_report_extent){true, 5 << 20, 50 << 20, 7000, 2000};
    memory->unexplained =
        (struct seep_report_extent){true, 5 << 20, 24 << 20, 18000, 9000};
    memory->allocator = SEEP_ALLOCATOR_GLIBC;
    memory->allocator_reported = true;
    memory->allocator_allocated_bytes = 577ULL << 20;
    memory->allocator_free_chunks = 4312;
    memory->has_samples = true;
    fake->mappings[0] = (struct seep_report_mapping){
        .start = 0x7f0000000000,
        .end = 0x7f0010000000,
        .name = "",
        .first_bytes = 1 << 20,
        .last_bytes = 200 << 20,
        .slope_bytes_per_s = 400000,
        .tracked = true,
    };
    fake->mappings[1] = (struct seep_report_mapping){
        .start = 0x7f1200000000,
        .end = 0x7f1210000000,
        .name = "",
        .first_bytes = 2 << 20,
        .last_bytes = 240 << 20,
        .slope_bytes_per_s = 300000,
    };
    memory->mappings = fake->mappings;
    memory->mapping_count = 2;
}

/* Live memory is flat: what was a leak is a step. */
static void become_flat(struct fake_report *fake)
{
    fake->sites[0].class = SEEP_CLASS_STEP;
    fake->sites[0].has_growth = false;
    fake->sites[0].has_growth_per_unit = false;
    fake->sites[1].class = SEEP_CLASS_STEADY;
    fake->report.memory.tracked.slope_bytes_per_s = 0;
    fake->report.verdict.has_growth_per_unit = false;
    fake->report.verdict.first_share = 0;
    fake->report.verdict.growing_count = 0;
}

static void become_still(struct fake_report *fake)
{
    become_flat(fake);
    fake->report.verdict.has_growth = false;
    fake->report.verdict.forecast.answer = SEEP_FORECAST_NEVER;
    fake->report.memory.rss.slope_bytes_per_s = 0;
    fake->report.memory.unexplained.slope_bytes_per_s = 0;
}

/* It was tested, and a leak of 2.1 MiB/min would have shown. */
static void become_sure(struct fake_report *fake)
{
    become_still(fake);
    fake->report.verdict.reassures = true;
    fake->report.verdict.hidden_bytes_per_s = 36700;
}

static void become_filling(struct fake_report *fake)
{
    fake->sites[0].class = SEEP_CLASS_WARMING;
    fake->sites[0].growth_now_bytes_per_s = 70000;
    fake->report.verdict.filling = true;
    fake->report.verdict.forecast.answer = SEEP_FORECAST_UNKNOWN;
}

void fake_report_become(struct fake_report *fake, enum seep_verdict_class class)
{
    struct seep_report_verdict *verdict = &fake->report.verdict;

    fake_report_fill(fake);
    fill_memory(fake);
    verdict->class = class;
    verdict->reason = "";
    switch (class) {
    case SEEP_VERDICT_SUSPECT:
        fake->sites[0].class = SEEP_CLASS_SUSPECT;
        verdict->forecast.if_suspect = true;
        break;
    case SEEP_VERDICT_UNEXPLAINED:
        become_flat(fake);
        fake->report.memory.unexplained.slope_bytes_per_s = 700000;
        break;
    case SEEP_VERDICT_FRAGMENTATION:
        become_flat(fake);
        break;
    case SEEP_VERDICT_BOUNDED:
        become_filling(fake);
        break;
    case SEEP_VERDICT_INSUFFICIENT:
        become_still(fake);
        fake->sites[0].class = SEEP_CLASS_INSUFFICIENT;
        fake->report.duration_s = 12;
        break;
    case SEEP_VERDICT_STEADY:
        fake->report.memory.anonymous.slope_bytes_per_s = 0;
        become_sure(fake);
        break;
    case SEEP_VERDICT_RETENTION:
        become_sure(fake);
        break;
    default:
        break;
    }
}

static const struct seep_report_device first_device = {
    .total_bytes = 80ULL << 30,
    .free_bytes = 70ULL << 30,
    .low_free_bytes = 69ULL << 30,
    .used = {true, 1 << 30, 10737418240.0, 2e6, 2e4},
    .tracked = {true, 512 << 20, 9663676416.0, 2e6, 1e4},
    .unexplained = {true, 512 << 20, 1 << 30, 100, 100},
    .pool_reserved = {true, 64 << 20, 96 << 20, 0, 0},
    .pool_used = {true, 32 << 20, 32 << 20, 0, 0},
    .graph_reserved = {true, 6 << 20, 6 << 20, 0, 0},
    .graph_used = {true, 4 << 20, 4 << 20, 0, 0},
    .tensor_reserved = {true, 256 << 20, 9126805504.0, 2e6, 1e4},
    .tensor_allocated = {true, 200 << 20, 8589934592.0, 2e6, 1e4},
    .forecast = {.answer = SEEP_FORECAST_TIME,
                 .what = "device",
                 .limit_bytes = 80ULL << 30,
                 .used_bytes = 10ULL << 30,
                 .seconds = {37580, 37000, 38000}},
};

static const struct seep_report_device second_device = {
    .ordinal = 1,
    .total_bytes = 80ULL << 30,
    .free_bytes = 79ULL << 30,
    .low_free_bytes = 79ULL << 30,
    .used = {true, 1 << 30, 1 << 30, 0, 0},
    .tracked = {.valid = true},
    .unexplained = {true, 1 << 30, 1 << 30, 0, 0},
    .forecast = {.answer = SEEP_FORECAST_NEVER,
                 .what = "device",
                 .limit_bytes = 80ULL << 30,
                 .used_bytes = 1ULL << 30,
                 .device = 1},
};

void fake_report_give_devices(struct fake_report *fake)
{
    fake->devices[0] = first_device;
    fake->devices[1] = second_device;
    fake->report.devices = fake->devices;
    fake->report.device_count = 2;
    fake->sites[0].space = SEEP_SPACE_DEVICE;
    fake->sites[0].device = 0;
    fake->sites[1].space = SEEP_SPACE_HEAP;
    fake->spaces[1] = (struct seep_report_space){
        .space = SEEP_SPACE_DEVICE,
        .live_bytes = 9ULL << 30,
        .allocated_bytes = 9ULL << 30,
        .slope_bytes_per_s = 2e6,
    };
    fake->spaces[2] = (struct seep_report_space){
        .space = SEEP_SPACE_TENSOR,
        .live_bytes = 8ULL << 30,
        .allocated_bytes = 8ULL << 30,
        .slope_bytes_per_s = 2e6,
    };
    fake->report.space_count = 3;
    fake->report.verdict.device = 0;
    fake->report.verdict.forecast = first_device.forecast;
}
