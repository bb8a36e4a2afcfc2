/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See begin_run.h. */
#include "begin_run.h"

#include "base/word.h"

#define PYTHON_3_11 0x030b0700

static uint64_t code_frame(struct judge_run *f, const char *file,
                           const char *function, uint32_t line)
{
    return builder_code_frame(
        builder_code(&f->builder, SEEP_CODE_PYTHON, file, function, 1), line);
}

static uint64_t importer(struct judge_run *f)
{
    return code_frame(f, "<frozen importlib._bootstrap>", "_load_unlocked",
                      680);
}

static uint32_t add_site(struct judge_run *f, const uint64_t *frames,
                         uint32_t count)
{
    struct recording_builder *builder = &f->builder;

    seep_word_store(&builder->view.header->python_version, PYTHON_3_11);
    return builder_site(builder, builder_stack(builder, frames, count),
                        SEEP_SPACE_HEAP);
}

uint32_t begin_import(struct judge_run *f, const char *module)
{
    const uint64_t frames[] = {
        builder_frame(f->module, 0x77),
        code_frame(f, module, "<module>", 3),
        importer(f),
        code_frame(f, "/srv/encode.py", "<module>", 7),
    };

    return add_site(f, frames, 4);
}

uint32_t begin_coarse(struct judge_run *f)
{
    const uint64_t frames[] = {
        importer(f),
        code_frame(f, "/srv/encode.py", "<module>", 7),
    };

    return add_site(f, frames, 2);
}

uint32_t begin_work(struct judge_run *f, uint32_t line, bool imported)
{
    const uint64_t frames[] = {
        code_frame(f, "/srv/encode.py", "encode", line),
        importer(f),
    };

    return add_site(f, frames, imported ? 2 : 1);
}

void begin_takes(struct judge_run *f, uint32_t site, uint64_t size,
                 double from_s, double to_s, bool keeps)
{
    for (int i = (int)(from_s * 10); i < (int)(to_s * 10); i++) {
        uint64_t address = judge_born(f, site, size, i / 10.0);

        if (!keeps) {
            judge_died(f, address, i / 10.0 + 0.01);
        }
    }
}
