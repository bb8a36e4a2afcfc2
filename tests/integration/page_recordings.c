/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recordings of 100 s for the tests of the page, made in a moment:
 *
 *     page_recordings leak FILE      a leak, a cache, churn, marks, labels
 *     page_recordings fixed FILE     the same program without leak and labels
 *     page_recordings sample FILE    something of everything, with a GPU
 *     page_recordings hostile FILE   2,000 call sites whose names are HTML, and
 *                                    every tenth of 10,000 characters
 *     page_recordings large FILE     256 MiB: 40,000 call sites that hold
 *                                    1,200,000 blocks
 *     page_recordings stacks FILE COUNT
 *                                    COUNT stacks of 43 frames that differ in
 *                                    all but the outermost
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording_builder.h"

#define RUN_S 100
#define TICKS(s) ((uint32_t)((s)*BUILDER_TICKS_PER_S))
#define SITES 2000
#define LONG_NAME 10000
#define LARGE_SITES 40000
#define LARGE_BLOCKS 33

struct world {
    struct recording_builder builder;
    uint32_t module;
    uint32_t program; /* that calls it */
    uint64_t next;    /* address of the next block */
};

static uint64_t born(struct world *world, uint32_t site, uint64_t size,
                     double second)
{
    uint64_t address = world->next;

    world->next += 0x100000;
    builder_alloc(&world->builder, address, size, site, TICKS(second));
    return address;
}

static uint32_t site_at(struct world *world, uint32_t code, uint32_t line,
                        uint64_t offset)
{
    const uint64_t frames[] = {
        builder_frame(world->module, 0x100 + offset),
        builder_code_frame(code, line),
        builder_frame(world->program, 0x200),
    };

    return builder_site(&world->builder,
                        builder_stack(&world->builder, frames, 3),
                        SEEP_SPACE_HEAP);
}

static void moments(struct world *world, double mib_per_s)
{
    for (uint32_t i = 0; i < 100; i++) {
        double rss = (60 + mib_per_s * i) * 1048576;

        builder_moment(&world->builder, i, TICKS(i + 1), (uint64_t)rss,
                       10 * (i + 1));
        atomic_store_explicit(&world->builder.view.timeline[i].cgroup_bytes,
                              (uint64_t)rss, memory_order_relaxed);
        atomic_store_explicit(
            &world->builder.view.timeline[i].cgroup_limit_bytes,
            UINT64_C(256) << 20, memory_order_relaxed);
    }
}

/* Two lines share what leaks, so that a row is not a stack. */
static void serve(struct world *world, bool leaks)
{
    struct recording_builder *builder = &world->builder;
    uint32_t code = builder_code(builder, SEEP_CODE_PYTHON, "/srv/serve.py",
                                 "Model.remember", 30);
    uint32_t other = builder_code(builder, SEEP_CODE_PYTHON, "/srv/cache.py",
                                  "Cache.fill", 10);
    uint32_t leak[] = {site_at(world, code, 31, 0),
                       site_at(world, code, 31, 8)};
    uint32_t cache = site_at(world, other, 12, 16);
    uint32_t churn = site_at(world, other, 40, 24);

    builder_mark(builder, SEEP_MARK_MOMENT, TICKS(5), "load", "");
    builder_mark(builder, SEEP_MARK_MOMENT, TICKS(40), "serve <b>", "");
    for (uint32_t i = 0; i < 2000; i++) {
        double second = i * 0.05;
        uint64_t block;

        block = born(world, leak[i % 2], 50000, second);
        if (!leaks) {
            builder_free(builder, block, TICKS(second + 0.02));
        }
        if (i < 300) {
            born(world, cache, 20000, second);
        }
        block = born(world, churn, 200000, second);
        builder_free(builder, block, TICKS(second + 0.01));
    }
    moments(world, leaks ? 1 : 0);
}

/* What would end an element, a string or a document, and what is not seen. */
static void name_hostile(uint32_t i, char *name)
{
    static const char *const parts[] = {
        "<script>window.pwned=1</script>",
        "</script><img src=x onerror=window.pwned=1>",
        "\"'><svg onload=window.pwned=1>",
        "<!--<script>",
        "]]>\xe2\x80\xa8\xe2\x80\xae\x1b[2J\xff\x01",
        "${window.pwned=1}`\\u003cscript\\u003e&lt;b&gt;",
        "javascript:window.pwned=1",
    };
    size_t length = (size_t)sprintf(
        name, "%s_%u", parts[i % (sizeof(parts) / sizeof(*parts))], i);

    while (i % 10 == 0 && length + 40 < LONG_NAME) {
        length += (size_t)sprintf(name + length, "std::map<std::pair<int,%zu>>",
                                  length);
    }
}

static void attack(struct world *world)
{
    static char name[LONG_NAME + 64];
    static char file[256];

    for (uint32_t i = 0; i < SITES; i++) {
        uint32_t code;
        uint32_t site;

        name_hostile(i, name);
        snprintf(file, sizeof(file), "/srv/</title><script>%u.py", i);
        code = builder_code(&world->builder, SEEP_CODE_PYTHON, file, name, 1);
        site = site_at(world, code, 1 + i % 40, i * 8);
        for (uint32_t j = 0; j < 20; j++) {
            uint64_t block =
                born(world, site, 100 + 13 * i, (i * 7 + j * 5) % 100);

            if (j % 3 == 0) {
                builder_free(&world->builder, block,
                             TICKS((i * 7 + j * 5) % 100 + 0.5));
            }
        }
    }
    builder_mark(&world->builder, SEEP_MARK_MOMENT, TICKS(40),
                 "<img src=x onerror=window.pwned=1>", "");
    moments(world, 0.1);
}

/* Most that an exact recording has room for. */
static void fill(struct world *world)
{
    for (uint32_t i = 0; i < LARGE_SITES; i++) {
        char name[64];
        uint32_t code;
        uint32_t site;

        snprintf(name, sizeof(name), "handle_%u", i / 40);
        code = builder_code(&world->builder, SEEP_CODE_PYTHON, "/srv/serve.py",
                            name, 1);
        site = site_at(world, code, 1 + i % 40, i * 8);
        for (uint32_t j = 0; j < LARGE_BLOCKS; j++) {
            double second = (i * 7 + j * 3) % 97;
            uint64_t block = born(world, site, 600 + i % 900, second);

            if (j % 16 == 0) {
                builder_free(&world->builder, block, TICKS(second + 1));
            }
        }
    }
    moments(world, 1);
}

#define STACK_FRAMES 43
#define STACK_BITS 3 /* of the stack's number, in a frame */

/* As a program that goes down in many ways: 300 places make all of them. */
static int write_stacks(const char *path, uint32_t count)
{
    struct recording_builder builder;
    uint32_t module;
    uint64_t frames[STACK_FRAMES];

    builder_init_shared(&builder, path, UINT64_C(1) << 32, true);
    module = builder_module(&builder, "/opt/app/libmodel.so", 0xab);
    builder_seal(&builder);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t site;

        for (uint32_t at = 0; at < STACK_FRAMES; at++) {
            uint32_t way = i >> at % 11 * STACK_BITS & 7;

            frames[at] = builder_frame(module, 0x100 + at * 64 + way * 8);
        }
        site = builder_site(&builder,
                            builder_stack(&builder, frames, STACK_FRAMES),
                            SEEP_SPACE_HEAP);
        builder_alloc(&builder, 0x100000 + (uint64_t)i * 64, 1 + i % 63, site,
                      i % TICKS(RUN_S - 1));
    }
    builder_exit(&builder, TICKS(RUN_S));
    builder_fini(&builder);
    return 0;
}

/* With a GPU, tensors, a mapping, losses, and what was pending. */
static int write_sample(const char *path)
{
    struct recording_builder builder;

    builder_init_sample(&builder);
    builder_write(&builder, path);
    builder_fini(&builder);
    return 0;
}

/* What kinds there are besides the sample. */
static const struct kind {
    const char *name;
    unsigned size_log2;
    const char *labels; /* "": none */
} kinds[] = {
    {"leak", 24, "model=bert,version=13"},
    {"fixed", 24, ""},
    {"hostile", 27, "model=<script>window.pwned=1"},
    {"large", 28, ""},
};

static void play(struct world *world, const char *kind)
{
    if (strcmp(kind, "hostile") == 0) {
        attack(world);
    } else if (strcmp(kind, "large") == 0) {
        fill(world);
    } else {
        serve(world, strcmp(kind, "leak") == 0);
    }
}

static void write_kind(const struct kind *kind, const char *path)
{
    struct world world = {.next = 0x100000};
    struct recording_builder *builder = &world.builder;
    struct seep_rec_header *header;

    builder_init(builder, UINT64_C(1) << kind->size_log2, true);
    world.module = builder_module(builder, "/opt/app/libmodel.so", 0xab);
    world.program = builder_module(builder, "/usr/bin/worker", 0xac);
    header = builder->view.header;
    header->allocator = builder_string(builder, "/lib/libc.so.6");
    if (*kind->labels != '\0') {
        header->labels = builder_string(builder, kind->labels);
    }
    builder_seal(builder);
    play(&world, kind->name);
    builder_exit(builder, TICKS(RUN_S));
    builder_write(builder, path);
    builder_fini(builder);
}

int main(int count, char **arguments)
{
    if (count == 4 && strcmp(arguments[1], "stacks") == 0) {
        return write_stacks(arguments[2], (uint32_t)atoi(arguments[3]));
    }
    if (count != 3) {
        return 2;
    }
    if (strcmp(arguments[1], "sample") == 0) {
        return write_sample(arguments[2]);
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (strcmp(arguments[1], kinds[i].name) == 0) {
            write_kind(&kinds[i], arguments[2]);
            return 0;
        }
    }
    return 2;
}
