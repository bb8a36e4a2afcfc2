/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A run of 100 s on GPUs, made by hand for the tests of reports: what calls
 * hold of each device, what PyTorch's cache says of itself, what the driver
 * tells once a second.
 */
#ifndef SEEP_TESTS_DEVICE_RUN_H
#define SEEP_TESTS_DEVICE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "reader/report/report.h"
#include "recording_builder.h"

#define DEVICE_RUN_S 100
#define DEVICE_RUN_MIB ((uint64_t)1 << 20)
#define DEVICE_RUN_GIB ((uint64_t)1 << 30)
#define DEVICE_RUN_TOTAL_BYTES (8 * DEVICE_RUN_GIB)
#define DEVICE_RUN_DEVICES 2
/* The object whose frames say that a segment is one. */
#define DEVICE_RUN_TORCH "/opt/torch/lib/libc10_cuda.so"

struct device_run {
    char path[BUILDER_PATH_BYTES];
    struct recording_builder builder;
    struct seep_report *report;
    struct seep_report_options options;
    uint64_t next; /* address, or offset of code */
    struct {
        uint64_t held[DEVICE_RUN_S]; /* at the end of each second */
        uint64_t reserved[DEVICE_RUN_S];
        uint64_t allocated[DEVICE_RUN_S];
    } devices[DEVICE_RUN_DEVICES];
};

/** For cmocka: *state is a struct device_run. */
int device_run_set_up(void **state);
int device_run_tear_down(void **state);

uint32_t device_run_tick(double second);
uint32_t device_run_stack(struct device_run *run, const char *module,
                          uint64_t offset);

/** A new site: the runtime, called by @module, called by the program. */
uint32_t device_run_site(struct device_run *run, const char *module,
                         enum seep_space space, uint32_t ordinal);

/** One allocation. @return its key */
uint64_t device_run_take(struct device_run *run, uint32_t site, uint64_t bytes,
                         double second);

/** Requests: what they allocate on the host is given back, and is the clock. */
void device_run_work(struct device_run *run);

/** @bytes of the host each tenth of a second, kept. */
void device_run_leak_host(struct device_run *run, uint64_t bytes);

/** @bytes of a device each tenth of a second from @from_s to @to_s, kept. */
uint32_t device_run_grow(struct device_run *run, const char *module,
                         uint32_t ordinal, uint64_t bytes, int from_s,
                         int to_s);

/** Tensors of 1 MiB on the first device, ten live at a time, and @kept bytes
 * more each tenth of a second. */
void device_run_tensors(struct device_run *run, uint64_t kept);

/** A segment of @bytes on the first device every @tenths until @to_s. */
void device_run_segments(struct device_run *run, const char *module,
                         uint64_t bytes, int tenths, int to_s);

/** The driver is asked each second; others hold @other bytes there, and @more
 * each second. */
void device_run_ask(struct device_run *run, uint32_t ordinal, uint64_t other,
                    uint64_t more);

/** It ended: what is said of it. */
const struct seep_report *device_run_report(struct device_run *run);

bool device_run_is_near(double value, double expected, double share);

#endif
