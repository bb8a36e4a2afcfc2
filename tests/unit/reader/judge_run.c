/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See judge_run.h. */
#include "judge_run.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int set_up(void **state, bool exact)
{
    struct judge_run *f = calloc(1, sizeof(*f));

    builder_temporary(f->path);
    builder_init(&f->builder, UINT64_C(16) << 20, exact);
    f->module = builder_module(&f->builder, "/opt/app/worker", 0xab);
    f->next = 0x10000;
    *state = f;
    return 0;
}

int judge_set_up_exact(void **state)
{
    return set_up(state, true);
}

int judge_set_up_sampled(void **state)
{
    int error = set_up(state, false);
    struct judge_run *f = *state;

    atomic_store_explicit(&f->builder.view.header->sample_log2, 16,
                          memory_order_relaxed);
    return error;
}

int judge_tear_down(void **state)
{
    struct judge_run *f = *state;

    seep_report_close(f->report);
    builder_fini(&f->builder);
    unlink(f->path);
    free(f);
    return 0;
}

uint32_t judge_site(struct judge_run *f, uint64_t offset)
{
    uint64_t frame = builder_frame(f->module, offset);

    return builder_site(&f->builder, builder_stack(&f->builder, &frame, 1),
                        SEEP_SPACE_HEAP);
}

uint64_t judge_born(struct judge_run *f, uint32_t site, uint64_t size,
                    double second)
{
    uint64_t address = f->next;

    f->next += 0x10000;
    builder_alloc(&f->builder, address, size, site, JUDGE_TICKS(second));
    return address;
}

void judge_died(struct judge_run *f, uint64_t address, double second)
{
    builder_free(&f->builder, address, JUDGE_TICKS(second));
}

const struct seep_report *judge_report(struct judge_run *f, double seconds)
{
    static const struct seep_report_options options = {.symbols = false};

    builder_exit(&f->builder, JUDGE_TICKS(seconds));
    builder_write(&f->builder, f->path);
    seep_report_close(f->report);
    f->report = NULL;
    assert_int_equal(seep_report_open(f->path, &options, NULL, &f->report), 0);
    return f->report;
}

const struct seep_report_site *judge_first(struct judge_run *f)
{
    return &judge_report(f, JUDGE_RUN_S)->sites[0];
}

void judge_assert_class(const struct seep_report_site *site, const char *class)
{
    assert_string_equal(seep_class_name(site->class), class);
}

void judge_leak(struct judge_run *f, uint32_t site, uint64_t size,
                double period)
{
    for (double second = 0; second < JUDGE_RUN_S; second += period) {
        judge_born(f, site, size, second);
    }
}

void judge_work(struct judge_run *f)
{
    uint32_t site = judge_site(f, 0x9000);

    for (double second = 0; second < JUDGE_RUN_S; second += 0.05) {
        judge_died(f, judge_born(f, site, 200000, second), second + 0.01);
    }
}
