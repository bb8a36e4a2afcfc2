/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See device_run.h. */
#include "device_run.h"

#include "seep_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORDING_BYTES (8 * DEVICE_RUN_MIB)
#define TENTHS (DEVICE_RUN_S * 10)
#define KEY ((uint64_t)1 << 56)

int device_run_set_up(void **state)
{
    struct device_run *run = calloc(1, sizeof(*run));

    builder_temporary(run->path);
    builder_init(&run->builder, RECORDING_BYTES, true);
    run->next = 0x10000;
    *state = run;
    return 0;
}

int device_run_tear_down(void **state)
{
    struct device_run *run = *state;

    seep_report_close(run->report);
    builder_fini(&run->builder);
    unlink(run->path);
    free(run);
    return 0;
}

/* One entry a path: there is no room for one a site. */
static uint32_t module_of(struct device_run *run, const char *path)
{
    const struct seep_view *view = &run->builder.view;
    uint32_t count =
        atomic_load_explicit(&view->header->module_count, memory_order_relaxed);

    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(seep_view_string(view, view->modules[i].path), path) == 0) {
            return i + 1;
        }
    }
    return builder_module(&run->builder, path, 0xab);
}

uint32_t device_run_tick(double second)
{
    return (uint32_t)(second * BUILDER_TICKS_PER_S);
}

uint32_t device_run_stack(struct device_run *run, const char *module,
                          uint64_t offset)
{
    uint64_t frame = builder_frame(module_of(run, module), offset);

    return builder_stack(&run->builder, &frame, 1);
}

/* cudaMalloc of the runtime, called by @module, called by the program. */
uint32_t device_run_site(struct device_run *run, const char *module,
                         enum seep_space space, uint32_t ordinal)
{
    uint64_t offset = run->next++;
    const uint64_t frames[] = {
        builder_frame(module_of(run, "/opt/libcudart.so.12"), 0x10),
        builder_frame(module_of(run, module), offset),
        builder_frame(module_of(run, "/opt/app/worker"), offset),
    };

    return builder_site_of_device(
        &run->builder, builder_stack(&run->builder, frames, 3), space, ordinal);
}

uint64_t device_run_take(struct device_run *run, uint32_t site, uint64_t bytes,
                         double second)
{
    uint64_t key = KEY | run->next;

    run->next += 0x10000;
    builder_alloc(&run->builder, key, bytes, site, device_run_tick(second));
    return key;
}

static void hold(struct device_run *run, uint32_t ordinal, double second,
                 uint64_t bytes)
{
    for (int i = (int)second; i < DEVICE_RUN_S; i++) {
        run->devices[ordinal].held[i] += bytes;
    }
}

/* Requests: what they allocate on the host is given back, and is the clock. */
void device_run_work(struct device_run *run)
{
    uint32_t site =
        builder_site(&run->builder, device_run_stack(run, "/opt/app/work", 1),
                     SEEP_SPACE_HEAP);

    for (int i = 0; i < TENTHS; i++) {
        builder_alloc(&run->builder, run->next, 200000, site,
                      device_run_tick(i / 10.));
        builder_free(&run->builder, run->next, device_run_tick(i / 10.) + 1);
        run->next += 0x10000;
    }
}

void device_run_leak_host(struct device_run *run, uint64_t bytes)
{
    uint32_t site =
        builder_site(&run->builder, device_run_stack(run, "/opt/app/leak", 1),
                     SEEP_SPACE_HEAP);

    for (int i = 0; i < TENTHS; i++) {
        builder_alloc(&run->builder, run->next, bytes, site,
                      device_run_tick(i / 10.));
        run->next += 0x10000;
    }
}

/* @bytes each tenth of a second from @from_s to @to_s, kept. */
uint32_t device_run_grow(struct device_run *run, const char *module,
                         uint32_t ordinal, uint64_t bytes, int from_s, int to_s)
{
    uint32_t site = device_run_site(run, module, SEEP_SPACE_DEVICE, ordinal);

    for (int i = 10 * from_s; i < 10 * to_s; i++) {
        device_run_take(run, site, bytes, i / 10.);
        hold(run, ordinal, i / 10., bytes);
    }
    return site;
}

/* Tensors of 1 MiB: ten live for a second; and each tenth of a second @kept
 * bytes more stay. */
void device_run_tensors(struct device_run *run, uint64_t kept)
{
    uint32_t churn =
        device_run_site(run, "/opt/app/forward", SEEP_SPACE_TENSOR, 0);
    uint32_t leak = device_run_site(run, "/opt/app/keep", SEEP_SPACE_TENSOR, 0);

    for (int i = 0; i < TENTHS; i++) {
        uint64_t key = device_run_take(run, churn, DEVICE_RUN_MIB, i / 10.);

        builder_free(&run->builder, key, device_run_tick(i / 10. + 1));
        if (kept > 0) {
            device_run_take(run, leak, kept, i / 10.);
        }
    }
    for (uint32_t i = 0; i < DEVICE_RUN_S; i++) {
        run->devices[0].allocated[i] =
            10 * DEVICE_RUN_MIB + (i + 1) * 10 * kept;
    }
}

/* A segment of @bytes every @tenths of a second until @to_s. */
void device_run_segments(struct device_run *run, const char *module,
                         uint64_t bytes, int tenths, int to_s)
{
    uint32_t site = device_run_site(run, module, SEEP_SPACE_DEVICE, 0);

    for (int i = 0; i < 10 * to_s; i += tenths) {
        device_run_take(run, site, bytes, i / 10.);
        hold(run, 0, i / 10., bytes);
        for (int k = i / 10; k < DEVICE_RUN_S; k++) {
            run->devices[0].reserved[k] += bytes;
        }
    }
}

/* The driver is asked each second; others hold @other, and @more each second.
 */
void device_run_ask(struct device_run *run, uint32_t ordinal, uint64_t other,
                    uint64_t more)
{
    for (uint32_t i = 0; i < DEVICE_RUN_S; i++) {
        uint64_t used = run->devices[ordinal].held[i] + other + i * more;

        builder_device(&run->builder, ordinal, i, device_run_tick(i + .99),
                       DEVICE_RUN_TOTAL_BYTES, DEVICE_RUN_TOTAL_BYTES - used);
        builder_cache(&run->builder, ordinal, i,
                      run->devices[ordinal].reserved[i],
                      run->devices[ordinal].allocated[i]);
    }
}

const struct seep_report *device_run_report(struct device_run *run)
{
    builder_fold(&run->builder);
    builder_exit(&run->builder, device_run_tick(DEVICE_RUN_S));
    builder_write(&run->builder, run->path);
    seep_report_close(run->report);
    run->report = NULL;
    assert_int_equal(
        seep_report_open(run->path, &run->options, NULL, &run->report), 0);
    return run->report;
}

bool device_run_is_near(double value, double expected, double share)
{
    return fabs(value - expected) <= share * fabs(expected);
}
