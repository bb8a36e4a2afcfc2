/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a driver gave is exact in the report of a sampled recording. */
#include "seep_test.h"

#include <stdlib.h>
#include <unistd.h>

#include "format/layout.h"
#include "reader/report/report.h"
#include "recording_builder.h"

#define KEY(number) (UINT64_C(1) << 56 | (uint64_t)(number) << 9)
#define KEYS 300U
#define BYTES 4096U
#define SAMPLE_LOG2 19U

struct fixture {
    char path[BUILDER_PATH_BYTES];
    struct recording_builder builder;
    struct seep_report *report;
    uint32_t heap;
    uint32_t device;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    uint64_t frames[2];
    uint32_t module;

    builder_temporary(f->path);
    builder_init(&f->builder, SEEP_LAYOUT_LEAST_BYTES, false);
    atomic_store_explicit(&f->builder.view.header->sample_log2, SAMPLE_LOG2,
                          memory_order_relaxed);
    module = builder_module(&f->builder, "/opt/app/worker", 0xab);
    frames[0] = builder_frame(module, 0x10);
    frames[1] = builder_frame(module, 0x20);
    f->heap = builder_site(&f->builder, builder_stack(&f->builder, frames, 1),
                           SEEP_SPACE_HEAP);
    f->device =
        builder_site(&f->builder, builder_stack(&f->builder, frames + 1, 1),
                     SEEP_SPACE_DEVICE);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    seep_report_close(f->report);
    builder_fini(&f->builder);
    unlink(f->path);
    free(f);
    return 0;
}

static const struct seep_report_site *site_of(struct fixture *f,
                                              enum seep_space space)
{
    static const struct seep_report_options options = {.symbols = false};

    builder_write(&f->builder, f->path);
    seep_report_close(f->report);
    f->report = NULL;
    assert_int_equal(seep_report_open(f->path, &options, NULL, &f->report), 0);
    for (size_t i = 0; i < f->report->site_count; i++) {
        if (f->report->sites[i].space == space) {
            return &f->report->sites[i];
        }
    }
    fail();
    return NULL;
}

static void fill(struct fixture *f)
{
    for (uint64_t i = 0; i < KEYS; i++) {
        builder_alloc(&f->builder, KEY(i), BYTES, f->device, (uint32_t)i);
        builder_alloc(&f->builder, UINT64_C(0x100000) + i * 8192, BYTES,
                      f->heap, (uint32_t)i);
    }
    for (uint64_t i = 0; i < KEYS / 3; i++) {
        builder_free(&f->builder, KEY(i), KEYS);
    }
}

static void assert_exact(const struct seep_report_site *site)
{
    assert_int_equal(site->live_bytes, KEYS * 2 / 3 * BYTES);
    assert_true(site->live_count == KEYS * 2.0 / 3);
    assert_true(site->live_bytes_error == 0);
    assert_int_equal(site->allocated_bytes, KEYS * BYTES);
    assert_true(site->allocated_count == KEYS);
    assert_int_equal(site->freed_bytes, KEYS / 3 * BYTES);
}

static void a_device_is_exact_where_the_heap_is_sampled(void **state)
{
    struct fixture *f = *state;
    const struct seep_report_site *heap;

    fill(f);
    builder_fold(&f->builder);
    assert_exact(site_of(f, SEEP_SPACE_DEVICE));
    assert_false(f->report->exact);
    heap = site_of(f, SEEP_SPACE_HEAP);
    assert_true(heap->live_bytes > 100 * KEYS * BYTES);
    assert_true(heap->live_bytes_error > 0);
}

/* As after a kill: the reader folds the rest, also at a higher level. */
static void what_was_not_folded_is_exact_too(void **state)
{
    struct fixture *f = *state;

    fill(f);
    atomic_store_explicit(&f->builder.view.header->sample_log2, 25,
                          memory_order_relaxed);
    assert_exact(site_of(f, SEEP_SPACE_DEVICE));
    assert_true(f->report->pending_events > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_device_is_exact_where_the_heap_is_sampled),
        TEST(what_was_not_folded_is_exact_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
