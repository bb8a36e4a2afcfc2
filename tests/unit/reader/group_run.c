/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See group_run.h. */
#include "group_run.h"

#include <string.h>

uint32_t group_stack(struct judge_run *f, uint32_t code, uint32_t line,
                     uint64_t offset)
{
    const uint64_t frames[] = {
        builder_frame(f->module, 0x100 + offset),
        builder_code_frame(code, line),
        builder_frame(f->module, 0x200 + offset),
    };

    return builder_stack(&f->builder, frames, 3);
}

void group_begin(struct group_run *run, struct judge_run *f, uint32_t count)
{
    run->f = f;
    run->count = count;
    run->turn = 0;
    run->code = builder_code(&f->builder, SEEP_CODE_PYTHON, "/srv/serve.py",
                             "handle", 30);
    for (uint32_t i = 0; i < count; i++) {
        run->sites[i] = builder_site(
            &f->builder, group_stack(f, run->code, 31, i), SEEP_SPACE_HEAP);
    }
}

uint64_t group_born(struct group_run *run, uint64_t size, double second)
{
    return judge_born(run->f, run->sites[run->turn++ % run->count], size,
                      second);
}

const struct seep_report *group_read(struct judge_run *f,
                                     const struct seep_report_options *how)
{
    builder_exit(&f->builder, JUDGE_TICKS(JUDGE_RUN_S));
    builder_write(&f->builder, f->path);
    seep_report_close(f->report);
    f->report = NULL;
    assert_int_equal(seep_report_open(f->path, how, NULL, &f->report), 0);
    assert_int_equal(f->report->by, how->by);
    return f->report;
}

const struct seep_report *group_report(struct judge_run *f,
                                       enum seep_grouping by)
{
    const struct seep_report_options how = {.by = by};

    return group_read(f, &how);
}

const struct seep_report_site *group_find(const struct seep_report *report,
                                          const char *where)
{
    for (size_t i = 0; i < report->site_count; i++) {
        if (strcmp(report->sites[i].where, where) == 0) {
            return &report->sites[i];
        }
    }
    fail_msg("no row %s", where);
    return NULL;
}
